#include <fmt/format.h>

#include <algorithm>
#include <headway/transfer/transfer_notes.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace headway::transfer {

void Transfers::put(std::span<const std::byte> from, const rma::BufferKey& to, am::WhenDone done) {
  rma::Reach& reach = this->reach();
  reach.check(to);
  if (from.size() > to.bytes) {
    throw UsageError(fmt::format("put of {} into {} of PE {}: they do not fit", headway::counted(from.size(), "byte"), to.bytes, to.pe));
  }
  bool is_there = from.empty();
  if (std::byte* const mapped = is_there ? nullptr : reach.mapped(to)) {
    copy_bytes(mapped, from.data(), from.size());
    is_there = true;
  }
  if (!is_there && from.size() <= sizes_.small_put_bytes_max && path_ != TransferPath::cma) {
    send_note(to.pe, {Word::put_all, to.number, 0, 0, 0}, from);
    return done();
  }
  if (!is_there && !(reach.may_attach(to) && reach.copy_to(to, 0, from.data(), from.size()))) {
    rma::BufferKey key = to;
    key.bytes = from.size();
    const am::ScopeId scope = pe_->engine().scope();
    begin_waiting(scope);
    const auto number = pushes_.add({.key = key, .scope = scope, .from = from.data(), .done = std::move(done)});
    pushes_to_send_.add(number, key.pe);
    return push_more();
  }
  tell_used(to, Given::to_put, 0);
  done();
}

void Transfers::push_more() {
  const auto next_bytes = [this](std::uint64_t number) {
    const Push& push = *pushes_.find(number);
    return std::min(piece_bytes(push.key.pe), push.key.bytes - push.sent);
  };
  while (const std::optional<std::uint64_t> first = pushes_to_send_.first(next_bytes)) {
    const std::uint64_t number = *first, n = next_bytes(number);
    Push& push = *pushes_.find(number);
    if (!is_in_scope(push.scope, pushes_later_, &Transfers::push_more)) return;
    std::vector<std::byte> network_key;
    if (push.sent == 0 && goes_by_network(push.key.pe, push.key.bytes)) {
      push.exposed = pe_->engine().endpoint().network_memory()->expose({push.from, push.key.bytes}, network_key);
      network_refuses_ = push.exposed == nullptr;
    }
    const bool by_network = push.exposed != nullptr;
    const std::uint64_t from = std::exchange(push.sent, by_network ? push.key.bytes : push.sent + n);
    const bool last = push.sent == push.key.bytes;
    const am::ScopeId scope = push.scope;
    pushes_to_send_.begin(by_network ? counted(push.key) : n, last);
    if (by_network)
      send_note(push.key.pe, {Word::take, push.key.number, 0, push.key.bytes, number}, network_key);
    else
      send_piece(push.key.pe, {Word::put, push.key.number, from, 0, number}, {push.from + from, n});
    if (last) end_waiting(scope);
  }
}

void Transfers::take_put(PeId source, const Note& note, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (note.offset > memory.size() || content.size() > memory.size() - note.offset) {
    throw FormatError("a put goes beyond its Destination");
  }
  copy_bytes(const_cast<std::byte*>(memory.data()) + note.offset, content.data(), content.size());
  send_piece(source, {Word::in_place, note.asker, 0, content.size(), 0});
}

void Transfers::take_small_put(PeId source, const Note& note, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (content.size() > memory.size()) throw FormatError("a put goes beyond its Destination");
  copy_bytes(const_cast<std::byte*>(memory.data()), content.data(), content.size());
  end_use(source, {Word::used, note.number, 0, 0, std::uint64_t(Given::to_put)});
}

void Transfers::note_in_place(PeId source, const Note& note) {
  Push* const push = pushes_.find(note.number);
  if (push == nullptr || push->key.pe != source || note.bytes > push->sent - push->in_place) {
    throw FormatError("a piece is in place that was not put");
  }
  const bool by_network = push->exposed != nullptr;
  if (by_network && note.offset == 0 && note.bytes != push->key.bytes) throw FormatError("a part of a put is in place");
  pushes_to_send_.end(source, by_network ? counted(push->key) : note.bytes);
  if (by_network && note.offset != 0) {  // in pieces then
    close(push->exposed);
    network_refuses_ = true;
    push->sent = 0;
    begin_waiting(push->scope);
    pushes_to_send_.add(note.number, source);
    return push_more();
  }
  push->in_place += note.bytes;
  if (push->in_place == push->key.bytes) {
    Push ended = pushes_.take(note.number);
    close(ended.exposed);
    tell_used(ended.key, Given::to_put, 0);
    ended.done();
  }
  push_more();
}

}  // namespace headway::transfer
