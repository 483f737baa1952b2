/// Memory of one PE as others know it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace headway::rma {

/// Names memory of a PE to all others: where it lies in its process, in the PE's pool if it does, and which entry of
/// the PE's table it was given. Travels as its bytes.
struct BufferKey {
  static constexpr std::uint64_t timed = std::uint64_t(1) << 63;  // with an offset: the owner wants to know how long the copy took
  static constexpr std::uint64_t no_offset = timed - 1;

  std::uint64_t address;        // in the process of its PE
  std::uint64_t bytes;
  std::uint64_t offset;         // in the PE's pool, of it or of a copy, or no_offset; with the bit timed
  std::uint64_t number;         // in the PE's table of what it has given to others
  std::uint64_t token;          // a word that no other process has ...
  std::uint64_t token_address;  // ... there
  std::uint32_t pe;
  std::uint32_t process;        // the system's number of it
  std::uint64_t check;          // of all of these: bytes that are a key by chance do not hold it

  std::uint64_t pool_offset() const { return offset & no_offset; }
  bool is_timed() const { return (offset & timed) != 0; }

  std::uint64_t expected_check() const {
    // Each word by itself, so that none waits for another.
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
