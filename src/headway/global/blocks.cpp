// SPDX-License-Identifier: BSD-3-Clause
// Strided and indexed gets and puts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/global/memory.hpp>
#include <optional>
#include <type_traits>

namespace headway {
namespace {

/// Calls copy(offset of the block in memory, offset in the contiguous copy, bytes) for each block. For frequent short
/// lengths the compiler knows `bytes`.
template <class Copy>
void for_each_block(std::uint64_t count, std::uint64_t stride, std::uint64_t block,
                    std::span<const std::uint64_t> indices, Copy copy) {
  const auto of = [&](auto bytes) {
    if (indices.empty()) {
      for (std::uint64_t i = 0; i < count; ++i) copy(i * stride, i * bytes, bytes);
    } else {
      for (std::uint64_t i = 0; i < count; ++i) copy(indices[i] * stride, i * bytes, bytes);
    }
  };
  switch (block) {
    case 1: return of(std::integral_constant<std::uint64_t, 1>());
    case 2: return of(std::integral_constant<std::uint64_t, 2>());
    case 4: return of(std::integral_constant<std::uint64_t, 4>());
    case 8: return of(std::integral_constant<std::uint64_t, 8>());
    case 16: return of(std::integral_constant<std::uint64_t, 16>());
    case 24: return of(std::integral_constant<std::uint64_t, 24>());
    case 32: return of(std::integral_constant<std::uint64_t, 32>());
    default: return of(block);
  }
}

template <class Bytes>
void copy_block(std::byte* to, const std::byte* from, Bytes bytes) {
  if constexpr (std::is_integral_v<Bytes>)
    base::copy_bytes(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

/// The number of the first block outside a memory of `size` bytes.
template <class Blocks>
std::optional<std::uint64_t> first_outside(const Blocks& blocks, std::span<const std::uint64_t> indices,
                                           std::uint64_t size) {
  if (blocks.count == 0) return {};
  if (blocks.offset > size || blocks.block > size - blocks.offset) return indices.empty() ? 0 : indices[0];
  if (blocks.stride == 0) return {};
  const std::uint64_t last = (size - blocks.offset - blocks.block) / blocks.stride;
  if (indices.empty()) return blocks.count - 1 > last ? std::optional(last + 1) : std::nullopt;
  const auto outside = std::ranges::find_if(indices, [last](std::uint64_t k) { return k > last; });
  return outside == indices.end() ? std::nullopt : std::optional(*outside);
}

}  // namespace

// --- asking

void GlobalMemory::check_strides(const global::Strides& strides, std::size_t values, std::size_t element_bytes,
                                 bool put) {
  const auto [block, stride, count] = strides;
  if (put && count > 1 && stride < block) {
    throw UsageError(fmt::format(
        "put of blocks of {} at a stride of {}: they would overlap; a stride of at least the block is allowed",
        base::counted(block, "element"), base::counted(stride, "element")));
  }
  const bool fits = count == 0 || block == 0 ? values == 0 : values / block == count && values % block == 0;
  if (!fits)
    throw UsageError(fmt::format("{} of {} {} not {}", base::counted(count, "block"), base::counted(block, "element"),
                                 base::by_number(count, "is", "are"), base::counted(values, "element")));
  if (count > 1 && stride > (std::uint64_t(1) << GlobalPtr<std::byte>::offset_bits) / element_bytes) {
    throw UsageError(fmt::format("a stride of {} is longer than any shared memory", base::counted(stride, "element")));
  }
}

void GlobalMemory::check_indices(std::size_t indices, std::size_t values) {
  if (indices != values)
    throw UsageError(fmt::format("{} {} given for {}", base::counted(indices, "index", "indices"),
                                 base::by_number(indices, "is", "are"), base::counted(values, "element")));
}

/// The address of the PE's memory in this process. nullptr where it is reached by messages: the owner then checks the
/// blocks against its pool, and this PE only against the range of a GlobalPtr.
std::byte* GlobalMemory::find_blocks(PeId pe, const Blocks& blocks, Offsets indices) const {
  std::byte* const begin = local(GlobalPtr<std::byte>(pe, 0), bases_);
  const std::uint64_t size = begin != nullptr ? own_.size() : std::uint64_t(1) << GlobalPtr<std::byte>::offset_bits;
  if (const auto outside = first_outside(blocks, indices, size)) {
    throw UsageError(
        fmt::format("{}, number {} of those every {} from {} on, {} not in the {} of PE {}'s shared memory",
                    base::counted(blocks.block, "byte"), *outside, base::counted(blocks.stride, "byte"), blocks.offset,
                    base::by_number(blocks.block, "is", "are"), base::counted(size, "byte"), pe.value));
  }
  return begin;
}

void GlobalMemory::get_blocks(PeId pe, const Blocks& blocks, Offsets indices, std::byte* to) {
  if (const std::byte* const begin = find_blocks(pe, blocks, indices)) {
    const std::byte* const from = begin + blocks.offset;
    for_each_block(
        blocks.count, blocks.stride, blocks.block, indices,
        [&](std::uint64_t there, std::uint64_t here, auto bytes) { copy_block(to + here, from + there, bytes); });
    return;
  }
  const auto [offset, stride, block, count] = blocks;
  if (count == 0) return;
  if (indices.empty() && (stride == block || count == 1)) return get_bytes(pe, offset, to, count * block);
  if (block > piece_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) {
      transfers_.push_back({pe, offset + (indices.empty() ? i : indices[i]) * stride, to + i * block, block});
    }
  } else {
    transfers_.push_back({pe, offset, to, count * block, stride, block, {indices.begin(), indices.end()}});
  }
  ask_for_pieces();
}

/// Requests as many blocks of the first transfer as fit a piece.
void GlobalMemory::ask_for_blocks(Transfer& transfer) {
  std::uint64_t count = std::min(transfer.left, piece_bytes) / transfer.block;
  // A copy, because a handler may request the rest and end the transfer while send() waits for memory.
  std::array<std::uint64_t, batch_max> indices;
  std::size_t listed = 0;
  const Blocks before{transfer.offset, transfer.stride, transfer.block, 0};
  if (transfer.indices.empty()) {
    transfer.offset += count * transfer.stride;
  } else {
    count = listed = std::min<std::uint64_t>(count, batch_max);
    std::copy_n(transfer.indices.begin() + std::ptrdiff_t(transfer.indices_asked), listed, indices.begin());
    transfer.indices_asked += listed;
  }
  const std::size_t bytes = count * transfer.block;
  const std::uint64_t slot = take_slot(transfer.to, std::uint32_t(bytes));
  const PeId pe = transfer.pe;
  ++gets_in_flight_;
  pieces_in_flight_bytes_ += bytes;
  transfer.to += bytes;
  transfer.left -= bytes;
  if (transfer.left == 0) transfers_.pop_front();
  blocks_wanted_.send(pe, {before.offset, before.stride, before.block, count}, slot, Offsets(indices.data(), listed));
}

void GlobalMemory::put_blocks(PeId pe, const Blocks& blocks, Offsets indices, Bytes values) {
  if (std::byte* const begin = find_blocks(pe, blocks, indices)) {
    std::byte* const to = begin + blocks.offset;
    for_each_block(blocks.count, blocks.stride, blocks.block, indices,
                   [&](std::uint64_t there, std::uint64_t here, auto bytes) {
                     copy_block(to + there, values.data() + here, bytes);
                   });
    return;
  }
  const auto [offset, stride, block, count] = blocks;
  if (count == 0) return;
  if (indices.empty() && (stride == block || count == 1)) {
    return put_bytes(pe, offset, values, false);
  }
  if (block > piece_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) {
      put_bytes(pe, offset + (indices.empty() ? i : indices[i]) * stride, values.subspan(i * block, block), false);
    }
    return;
  }
  const std::uint64_t most = std::min(piece_bytes / block, indices.empty() ? piece_bytes : batch_max);
  for (std::uint64_t done = 0, n; done < count; done += n) {
    n = std::min(most, count - done);
    note_put(pe);
    const Offsets listed = indices.empty() ? indices : indices.subspan(done, n);
    blocks_put_.send(pe, {indices.empty() ? offset + done * stride : offset, stride, block, n}, listed,
                     values.subspan(done * block, n * block));
  }
}

// --- at the owner

/// The address of the first block. FormatError unless all blocks lie in this PE's memory and are one piece at most.
std::byte* GlobalMemory::checked(const Blocks& blocks, Offsets indices) const {
  if (blocks.block == 0 || blocks.count == 0 || blocks.block > piece_bytes ||
      blocks.count > piece_bytes / blocks.block || (!indices.empty() && indices.size() != blocks.count)) {
    throw FormatError(
        fmt::format("{} of {} with {} arrived, allowed are 1 to {} bytes in all and no or as many indices",
                    base::counted(blocks.count, "block"), base::counted(blocks.block, "byte"),
                    base::counted(indices.size(), "index", "indices"), piece_bytes));
  }
  if (const auto outside = first_outside(blocks, indices, own_.size())) {
    throw FormatError(fmt::format("{}, number {} of those every {} from {} on, of PE {}'s shared memory, which has {}",
                                  base::counted(blocks.block, "byte"), *outside, base::counted(blocks.stride, "byte"),
                                  blocks.offset, pe_->id().value, base::counted(own_.size(), "byte")));
  }
  return own_.data() + blocks.offset;
}

void GlobalMemory::answer_blocks(PeId source, std::uint64_t slot, const Blocks& blocks, Offsets indices) {
  const std::byte* const from = checked(blocks, indices);
  gathered_.resize(blocks.count * blocks.block);
  for_each_block(blocks.count, blocks.stride, blocks.block, indices,
                 [&](std::uint64_t there, std::uint64_t here, auto bytes) {
                   copy_block(gathered_.data() + here, from + there, bytes);
                 });
  bytes_.send(source, slot, gathered_);
}

void GlobalMemory::apply_blocks(PeId source, const Blocks& blocks, Offsets indices, Bytes values) {
  std::byte* const to = checked(blocks, indices);
  if (values.size() != blocks.count * blocks.block) {
    throw FormatError(fmt::format("{} of {} arrived with {}, expected {}", base::counted(blocks.count, "block"),
                                  base::counted(blocks.block, "byte"), base::counted(values.size(), "byte"),
                                  blocks.count * blocks.block));
  }
  for_each_block(blocks.count, blocks.stride, blocks.block, indices,
                 [&](std::uint64_t there, std::uint64_t here, auto bytes) {
                   copy_block(to + there, values.data() + here, bytes);
                 });
  count_put(source);
}

}  // namespace headway
