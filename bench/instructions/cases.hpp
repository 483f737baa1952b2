// SPDX-License-Identifier: BSD-3-Clause
// Shared by the cases: the generator, the messages of 32 bytes, and one PE to run them through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <headway/transport/local/local.hpp>
#include <vector>

namespace instructions {

using headway::Aggregator;
using headway::Pe;
using Table = std::vector<std::uint64_t>;

constexpr unsigned table_log2 = 12;
constexpr std::uint64_t mask = (std::uint64_t(1) << table_log2) - 1;

// The generator of HPCC RandomAccess.
inline std::uint64_t next(std::uint64_t a) { return (a << 1) ^ (std::int64_t(a) < 0 ? 7 : 0); }

// The destination as randomaccess computes it: the top bits of the index. `shift` is not known to the compiler, and the
// result is always 0 here.
inline std::size_t owner(std::uint64_t a, unsigned shift) { return (a & mask) >> shift; }

struct Small {
  std::uint64_t values[4];
};

inline void apply_32(std::uint64_t* words, const std::uint64_t* values) {
  words[values[0] & mask] ^= values[1] + values[2] + values[3];
}

template <class Body>
void on_one_pe(Body body) {
  headway::local::Segment segment(1, 1, 1, headway::operator""_MiB(8));
  const auto endpoint = headway::local::make_endpoint(segment, 0);
  headway::am::Engine engine(*endpoint,
                             {.budget_bytes = headway::operator""_MiB(8), .spill_bytes = headway::operator""_MiB(64)});
  body(engine.pe());
}

// 32 bytes to a PE, and to an element of an array: in a file of their own, so that the others stay as they are
// compiled.
void fixed_32(Table& table, std::size_t n, unsigned shift);
void element_32(Table& table, std::size_t n);

}  // namespace instructions
