// SPDX-License-Identifier: BSD-3-Clause
/// The HPC Challenge RandomAccess sequence: a_0 = 1, a_{n+1} = 2 a_n in GF(2)[x] / (x^64 + x^2 + x + 1).
/// Update j of a run (from 0) is a_{j+1}; the table's slot is its low bits. Source: HPCC 1.5, RandomAccess/utility.c.
#pragma once

#include <cstdint>

namespace headway::randomaccess {

/// The following element. Four operations, no branch.
constexpr std::uint64_t step(std::uint64_t a) { return (a << 1) ^ (static_cast<std::int64_t>(a) < 0 ? 7u : 0u); }

/// The product of two polynomials, reduced.
constexpr std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  for (int bit = 63; bit >= 0; --bit) product = step(product) ^ ((b >> bit & 1) != 0 ? a : 0);
  return product;
}

/// Element n of the sequence (HPCC_starts), in O(log n) products, so that every PE begins at its own offset.
constexpr std::uint64_t starts(std::uint64_t n) {
  std::uint64_t power = 1;
  for (int bit = 63; bit >= 0; --bit) {
    power = multiply(power, power);
    if ((n >> bit & 1) != 0) power = step(power);
  }
  return power;
}

static_assert(starts(0) == 1 && starts(1) == 2 && starts(64) == 7 && starts(65) == 14);
static_assert(multiply(starts(1000), starts(234)) == starts(1234));

/// The part of `updates` that PE `pe` of `pes` generates: [begin, end) of the one global sequence.
struct Share {
  std::uint64_t begin, end;
  constexpr std::uint64_t size() const { return end - begin; }
};
constexpr Share share_of(std::uint64_t updates, std::uint64_t pe, std::uint64_t pes) {
  const std::uint64_t each = updates / pes, left = updates % pes;
  const std::uint64_t begin = pe * each + (pe < left ? pe : left);
  return {begin, begin + each + (pe < left ? 1 : 0)};
}

}  // namespace headway::randomaccess
