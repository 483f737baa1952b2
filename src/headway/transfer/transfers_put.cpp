// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/transfer/control_messages.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace headway::transfer {
namespace {

[[noreturn]] void refuse_confirmation(PeId source, std::uint64_t number, std::uint64_t bytes, std::uint64_t expected) {
  throw FormatError(fmt::format("PE {} confirms {} of put number {}, of which it has {} to confirm", source.value,
                                base::counted(bytes, "byte"), number, expected));
}

}  // namespace

void refuse_put(PeId source, std::uint64_t offset, std::uint64_t bytes, std::size_t size) {
  throw FormatError(fmt::format("PE {} puts {} at offset {} of a Destination of {}", source.value,
                                base::counted(bytes, "byte"), offset, base::counted(size, "byte")));
}

void Transfers::put(std::span<const std::byte> from, const rma::BufferKey& to, am::WhenDone done) {
  rma::Reach& reach = this->reach();
  reach.check(to);
  if (from.size() > to.bytes) {
    throw UsageError(fmt::format("put of {} into {} of PE {}: they do not fit", base::counted(from.size(), "byte"),
                                 to.bytes, to.pe));
  }
  if (auto* const counted = count::CountedEndpoint::of(pe_->engine().endpoint())) counted->count_bulk();
  bool is_there = from.empty();
  if (std::byte* const mapped = is_there ? nullptr : reach.mapped(to)) {
    base::copy_bytes(mapped, from.data(), from.size());
    is_there = true;
  }
  if (!is_there && from.size() <= sizes_.small_put_bytes_max && path_ != base::TransferPath::cma) {
    send_control(to.pe, {Opcode::put_all, to.number, 0, 0, 0}, from);
    return done();
  }
  if (!is_there && !(reach.may_attach(to) && reach.copy_to(to, 0, from.data(), from.size()))) {
    rma::BufferKey key = to;
    key.bytes = from.size();
    const am::ScopeId scope = pe_->engine().scope();
    hold_scope_open(scope);
    const auto number = pushes_.add({.key = key, .scope = scope, .from = from.data(), .done = std::move(done)});
    pushes_to_send_.add(number, key.pe);
    mark_transfer(model::trace::MarkEnd::begin, key, 2 * number);
    return send_more_puts();
  }
  send_used(to, ExposedAs::destination, 0);
  done();
}

void Transfers::send_more_puts() {
  const auto next_bytes = [this](std::uint64_t number) {
    const Push& push = *pushes_.find(number);
    return std::min(piece_bytes(push.key.pe), push.key.bytes - push.sent);
  };
  while (const std::optional<std::uint64_t> first = pushes_to_send_.first(next_bytes)) {
    const std::uint64_t number = *first, n = next_bytes(number);
    Push& push = *pushes_.find(number);
    if (!is_in_scope(push.scope, pushes_later_, &Transfers::send_more_puts)) return;
    std::vector<std::byte> network_key;
    if (push.sent == 0 && uses_network(push.key.pe, push.key.bytes)) {
      push.exposed = pe_->engine().endpoint().network_memory()->expose({push.from, push.key.bytes}, network_key);
      network_refuses_ = push.exposed == nullptr;
    }
    const bool by_network = push.exposed != nullptr;
    const std::uint64_t from = std::exchange(push.sent, by_network ? push.key.bytes : push.sent + n);
    const bool last = push.sent == push.key.bytes;
    const am::ScopeId scope = push.scope;
    pushes_to_send_.begin(by_network ? window_bytes(push.key) : n, last);
    if (by_network)
      send_control(push.key.pe, {Opcode::take, push.key.number, 0, push.key.bytes, number}, network_key);
    else
      send_piece(push.key.pe, {Opcode::put, push.key.number, from, 0, number}, {push.from + from, n});
    if (last) release_scope(scope);
  }
}

void Transfers::handle_put(PeId source, const ControlMessage& message, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = find_exposure(source, message, ExposedAs::destination).memory;
  if (message.offset > memory.size() || content.size() > memory.size() - message.offset) {
    refuse_put(source, message.offset, content.size(), memory.size());
  }
  base::copy_bytes(const_cast<std::byte*>(memory.data()) + message.offset, content.data(), content.size());
  send_piece(source, {Opcode::in_place, message.requester, 0, content.size(), 0});
}

void Transfers::handle_small_put(PeId source, const ControlMessage& message, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = find_exposure(source, message, ExposedAs::destination).memory;
  if (content.size() > memory.size()) refuse_put(source, 0, content.size(), memory.size());
  base::copy_bytes(const_cast<std::byte*>(memory.data()), content.data(), content.size());
  handle_used(source, {Opcode::used, message.number, 0, 0, std::uint64_t(ExposedAs::destination)});
}

void Transfers::handle_in_place(PeId source, const ControlMessage& message) {
  Push* const push = pushes_.find(message.number);
  if (push == nullptr || push->key.pe != source || message.bytes > push->sent - push->in_place) {
    refuse_confirmation(source, message.number, message.bytes, push == nullptr ? 0 : push->sent - push->in_place);
  }
  const bool by_network = push->exposed != nullptr;
  if (by_network && message.offset == 0 && message.bytes != push->key.bytes) {
    refuse_confirmation(source, message.number, message.bytes, push->key.bytes);
  }
  pushes_to_send_.end(source, by_network ? window_bytes(push->key) : message.bytes);
  if (by_network && message.offset != 0) {  // in pieces then
    close(push->exposed);
    network_refuses_ = true;
    push->sent = 0;
    hold_scope_open(push->scope);
    pushes_to_send_.add(message.number, source);
    return send_more_puts();
  }
  push->in_place += message.bytes;
  if (push->in_place == push->key.bytes) {
    Push ended = pushes_.take(message.number);
    close(ended.exposed);
    mark_transfer(model::trace::MarkEnd::end, ended.key, 2 * message.number);
    send_used(ended.key, ExposedAs::destination, 0);
    ended.done();
  }
  send_more_puts();
}

}  // namespace headway::transfer
