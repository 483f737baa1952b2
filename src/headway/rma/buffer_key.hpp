// SPDX-License-Identifier: BSD-3-Clause
/// A name for memory of a PE that travels in messages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace headway::rma {

/// Names memory of a PE for all PEs: its address in the owner's process, its offset in the owner's pool, and its entry
/// in the owner's table. Travels as its bytes.
struct BufferKey {
  static constexpr std::uint64_t timed = std::uint64_t(1) << 63;  // flag of `offset`: the reader reports its copy time
  static constexpr std::uint64_t no_offset = timed - 1;

  std::uint64_t address;  // in the owner's process
  std::uint64_t bytes;
  std::uint64_t offset;         // in the owner's pool, or no_offset; with the flags
  std::uint64_t number;         // in the owner's table of exposed memory
  std::uint64_t token;          // a random word of the owner's process ...
  std::uint64_t token_address;  // ... at this address there
  std::uint32_t pe;
  std::uint32_t process;  // the owner's process number in the system
  std::uint64_t check;    // check value of all fields above: random bytes do not contain it

  std::uint64_t pool_offset() const { return offset & no_offset; }
  bool is_timed() const { return (offset & timed) != 0; }

  std::uint64_t expected_check() const {
    // The words are mixed independently, so that no step waits for another.
    std::uint64_t hash = 0x9e3779b97f4a7c15, odd = 0xbf58476d1ce4e5b9;
    for (const std::uint64_t word :
         {address, bytes, offset, number, token, token_address, std::uint64_t(pe) << 32 | process}) {
      hash += std::rotl((word ^ odd) * odd, 23);
      odd *= 0xd6e8feb86659fd93;
    }
    return hash ^ hash >> 29;
  }
};
static_assert(sizeof(BufferKey) == 64);

}  // namespace headway::rma
