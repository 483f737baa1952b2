// SPDX-License-Identifier: BSD-3-Clause
/// Common parts of the programs of this folder: their one argument, numbers, and how they end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>

namespace program {

/// The only argument is a topology: direct, 1d, 2d, ...
inline headway::AggregatorOptions options(int argc, char** argv) {
  return {.topology = headway::parse_topology(argc > 1 ? argv[1] : "1d")};
}

/// The n-th of a sequence of numbers that look random and are the same everywhere (splitmix64).
constexpr std::uint64_t random(std::uint64_t n) {
  n = (n + 1) * 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

/// Collective: the sum over all PEs.
template <class Number>
Number sum(headway::Pe& pe, Number mine) {
  return headway::allreduce(pe, mine, std::plus<>());
}

/// Collective: the exit status. PE 0 prints the result, a number that does not depend on how many PEs there are, or how
/// many PEs found something else than the serial program did.
inline int finish(headway::Pe& pe, bool right, const char* what, std::uint64_t result) {
  const auto wrong = sum(pe, std::size_t(!right));
  if (pe.id() == 0 && wrong == 0) std::printf("%s: %llu\n", what, static_cast<unsigned long long>(result));
  if (pe.id() == 0 && wrong != 0) std::printf("%s: %zu of %zu PEs are wrong\n", what, wrong, pe.size());
  return wrong == 0 ? 0 : 1;
}

}  // namespace program
