// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>
#include <headway/transfer/control_messages.hpp>
#include <utility>
#include <vector>

namespace headway::transfer {
/// Only with HEADWAY_TRANSFER=network: UCX 1.13 ends the owner's process when a getter dies (docs/decisions/0027). Very
/// long content goes in pieces, which the stall report can see moving.
bool Transfers::uses_network(std::size_t other, std::uint64_t bytes) const {
  am::Engine& engine = pe_->engine();
  const transport::NetworkMemory* const network = engine.endpoint().network_memory();
  return engine.transfer_settings().path == base::TransferPath::network && !network_refuses_ &&
         bytes <= sizes_.network_bytes_max && network != nullptr && network->reaches(other);
}

void Transfers::handle_open(PeId source, const ControlMessage& message) {
  Exposure& exposure = find_exposure(source, message, ExposedAs::source);
  if (message.bytes != exposure.memory.size()) {
    throw FormatError(fmt::format("PE {} opens a Source of {} as one of {}", source.value,
                                  base::counted(exposure.memory.size(), "byte"), message.bytes));
  }
  transport::NetworkMemory* const network =
      pe_->engine().endpoint().network_memory();  // nullptr: a damaged message asks for it
  if (exposure.exposed == nullptr && network != nullptr) {
    exposure.exposed = network->expose(exposure.memory, exposure.network_key);
  }
  if (exposure.exposed == nullptr) exposure.network_key.clear();
  send_control(source, {Opcode::opened, message.requester, 0, 0, 0}, exposure.network_key);
}

void Transfers::handle_opened(PeId source, const ControlMessage& message, std::span<const std::byte> key) {
  Pull* const pull = pulls_.find(message.number);
  if (pull == nullptr || !pull->by_network || pull->key.pe != source || pull->received != 0) {
    throw FormatError(fmt::format("PE {} sends a key of the network for get number {}, which does not wait for one",
                                  source.value, message.number));
  }
  const std::uint64_t number = message.number, bytes = window_bytes(pull->key);
  const bool reads = read_over_network(source, key, {pull->to, pull->key.bytes}, [this, source, number, bytes] {
    pulls_to_request_.end(source, bytes);
    end_pull(number);
    request_more();
  });
  if (reads) {
    pull->received = pull->key.bytes;
    return;
  }
  network_refuses_ = true;
  pull->by_network = false;
  pull->requested = 0;
  pulls_to_request_.end(source, bytes);
  hold_scope_open(pull->scope);
  pulls_to_request_.add(number, source);
  request_more();
}

void Transfers::handle_take(PeId source, const ControlMessage& message, std::span<const std::byte> key) {
  const std::span<const std::byte> memory = find_exposure(source, message, ExposedAs::destination).memory;
  if (message.bytes > memory.size()) refuse_put(source, 0, message.bytes, memory.size());
  const ControlMessage in_place{Opcode::in_place, message.requester, 0, message.bytes, 0},
      refused{Opcode::in_place, message.requester, 1, 0, 0};
  const std::span<std::byte> to(const_cast<std::byte*>(memory.data()), message.bytes);
  if (!read_over_network(source, key, to, [this, source, in_place] { send_control(source, in_place); })) {
    send_control(source, refused);
  }
}

/// `then` runs in the current scope, which stays open until then. False if the network refuses the key.
bool Transfers::read_over_network(PeId source, std::span<const std::byte> key, std::span<std::byte> to,
                                  std::function<void()> then) {
  am::Engine& engine = pe_->engine();
  const am::ScopeId scope = engine.scope();
  const auto done = [this, scope, then = std::move(then)] {
    pe_->engine().run_later(scope, [this, scope, then] {
      release_scope(scope);
      then();
    });
  };
  transport::NetworkMemory* const network =
      engine.endpoint().network_memory();  // nullptr: a damaged message asks for it
  if (key.empty() || network == nullptr || !network->read(source, key, to.data(), to.size(), done)) return false;
  hold_scope_open(scope);
  return true;
}

}  // namespace headway::transfer
