#include <headway/transfer/transfer_notes.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/format_error.hpp>
#include <utility>
#include <vector>

namespace headway::transfer {
/// Only where the user says so: UCX 1.13 ends an owner's process when one that gets from it dies (docs/decisions/0027).
/// Of what is very long pieces can be seen to move.
bool Transfers::goes_by_network(std::size_t other, std::uint64_t bytes) const {
  am::Engine& engine = pe_->engine();
  const NetworkMemory* const network = engine.endpoint().network_memory();
  return engine.transfer_settings().path == TransferPath::network && !network_refuses_ &&
         bytes <= sizes_.network_bytes_max && network != nullptr && network->reaches(other);
}

void Transfers::open(PeId source, const Note& note) {
  Exposure& given = exposure(source, note, Given::to_get);
  if (note.bytes != given.memory.size()) throw FormatError("a get opens what is no Source");
  NetworkMemory* const network = pe_->engine().endpoint().network_memory();  // nullptr: a damaged note asks for it
  if (given.exposed == nullptr && network != nullptr) given.exposed = network->expose(given.memory, given.network_key);
  if (given.exposed == nullptr) given.network_key.clear();
  send_note(source, {Word::opened, note.asker, 0, 0, 0}, given.network_key);
}

void Transfers::read_opened(PeId source, const Note& note, std::span<const std::byte> key) {
  Pull* const pull = pulls_.find(note.number);
  if (pull == nullptr || !pull->by_network || pull->key.pe != source || pull->received != 0) {
    throw FormatError("a key comes that nobody wants");
  }
  const std::uint64_t number = note.number, bytes = counted(pull->key);
  const bool reads = read_over_network(source, key, {pull->to, pull->key.bytes}, [this, source, number, bytes] {
    pulls_to_ask_.end(source, bytes);
    end_pull(number);
    want_more();
  });
  if (reads) {
    pull->received = pull->key.bytes;
    return;
  }
  network_refuses_ = true;
  pull->by_network = false;
  pull->wanted = 0;
  pulls_to_ask_.end(source, bytes);
  begin_waiting(pull->scope);
  pulls_to_ask_.add(number, source);
  want_more();
}

void Transfers::take_over_network(PeId source, const Note& note, std::span<const std::byte> key) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (note.bytes > memory.size()) throw FormatError("a put goes beyond its Destination");
  const Note in_place{Word::in_place, note.asker, 0, note.bytes, 0}, refused{Word::in_place, note.asker, 1, 0, 0};
  const std::span<std::byte> to(const_cast<std::byte*>(memory.data()), note.bytes);
  if (!read_over_network(source, key, to, [this, source, in_place] { send_note(source, in_place); })) {
    send_note(source, refused);
  }
}

/// `then` runs in the scope in which this is called, which stays open for it. False where the network refuses the key.
bool Transfers::read_over_network(PeId source, std::span<const std::byte> key, std::span<std::byte> to,
                                  std::function<void()> then) {
  am::Engine& engine = pe_->engine();
  const am::ScopeId scope = engine.scope();
  const auto done = [this, scope, then = std::move(then)] {
    pe_->engine().run_later(scope, [this, scope, then] {
      end_waiting(scope);
      then();
    });
  };
  NetworkMemory* const network = engine.endpoint().network_memory();  // nullptr: a damaged note asks for it
  if (key.empty() || network == nullptr || !network->read(source, key, to.data(), to.size(), done)) return false;
  begin_waiting(scope);
  return true;
}

}  // namespace headway::transfer
