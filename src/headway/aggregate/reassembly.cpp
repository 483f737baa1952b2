// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/aggregate/reassembly.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>

namespace headway::aggregate {
namespace {

// Largest memory kept for later messages, in budgets.
constexpr std::size_t kept_budgets = 8;

}  // namespace

Reassembly::Reassembly(am::Engine& engine, CopyCounts& copies)
    : engine_(&engine),
      copies_(&copies),
      memory_(std::min(kept_budgets * engine.store().budget_bytes(), engine.sizes().kept_bytes_max), engine.sizes()) {}

template <class Change>
void Reassembly::change_memory(Change change) {
  const bool kept_before = memory_.keeps_any();
  change(memory_);
  engine_->count_open_buffers(int(memory_.keeps_any()) - int(kept_before));
}

/// Reserves addresses for the whole message, or for a few times the arrived bytes if its stated length is very large.
/// The system provides memory as it is written.
void Reassembly::make_room(Partial& partial, std::uint64_t bytes) {
  if (bytes <= partial.memory.bytes()) return;
  const base::SizeConstants& sizes = engine_->sizes();
  const std::uint64_t wanted =
      std::min(partial.total, std::max(bytes * sizes.promised_growth, std::uint64_t(sizes.promised_bytes_max)));
  if (partial.received != 0) return partial.memory.grow(wanted);
  change_memory([&](PartMemory& memory) { partial.memory = memory.take(wanted); });
}

void Reassembly::release_whole() {
  change_memory([&](PartMemory& memory) { memory.give(std::move(whole_.memory), engine_->now()); });
  whole_ = {};
}

Mapping Reassembly::take(std::size_t bytes) {
  Mapping memory;
  change_memory([&](PartMemory& kept) { memory = kept.take(bytes); });
  return memory;
}

void Reassembly::give(Mapping memory) {
  if (memory.bytes() == 0) return;
  change_memory([&](PartMemory& kept) { kept.give(std::move(memory), engine_->now()); });
}

void Reassembly::forget() {
  change_memory([](PartMemory& memory) { memory.forget(); });
}

std::span<const std::byte> Reassembly::add(std::size_t source, const std::byte* part, std::size_t bytes) {
  PartHeader header;
  if (bytes < sizeof header) {
    throw FormatError(fmt::format("a part of a message has {}; its header alone has {}", base::counted(bytes, "byte"),
                                  sizeof header));
  }
  std::memcpy(&header, part, sizeof header);
  if (header.bytes != bytes - sizeof header || header.bytes == 0) {
    throw FormatError(fmt::format("a part of a message has {} after its header, which states {}; expected at least 1",
                                  base::counted(bytes - sizeof header, "byte"), header.bytes));
  }
  const auto key = std::pair(source, header.message);
  const auto found = partial_.find(key);
  const std::uint64_t received = found == partial_.end() ? 0 : found->second.received;
  if (header.total > ~std::uint64_t(0) / 2) {
    throw FormatError(fmt::format("a part of a message states {} bytes for all of it; at most 2^63 - 1", header.total));
  }
  if (header.offset != received || header.bytes > header.total - received ||
      (received != 0 && header.total != found->second.total)) {
    throw FormatError(fmt::format("a part of a message has {} at offset {} of {}; expected offset {} of {}",
                                  base::counted(header.bytes, "byte"), header.offset, header.total, received,
                                  received == 0 ? header.total : found->second.total));
  }
  Partial& partial = found == partial_.end() ? partial_[key] : found->second;
  partial.total = header.total;
  make_room(partial, received + header.bytes);
  base::copy_bytes(partial.memory.at() + header.offset, part + sizeof header, header.bytes);
  partial.received += header.bytes;
  const bool whole = partial.received == partial.total;
  copies_->add(whole ? 1 : 0, header.bytes);
  if (!whole) return {};
  whole_ = std::move(partial);
  partial_.erase(key);
  return {whole_.memory.at(), whole_.total};
}

}  // namespace headway::aggregate
