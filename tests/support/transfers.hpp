// SPDX-License-Identifier: BSD-3-Clause
/// What tests of transfers have in common.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <support/run_pes.hpp>
#include <vector>

namespace headway::testing {

/// Runs body(pe) on shapes of all kinds, by each of the ways that HEADWAY_TRANSFER knows.
template <class Body>
void by_every_way(Body body) {
  for (const char* way : {"auto", "mapped", "cma", "network", "frames"}) {
    for (const Shape shape : shapes) {
      SCOPED_TRACE(way);
      if (shape.pes == 3 || shape.pes == 7 || (shape.pes == 13 && shape.simulated == nullptr)) continue;  // as others
      expect_run(shape, body, {{"HEADWAY_TRANSFER", way}});
    }
  }
}

/// Whether the system lets processes attach to others at all.
inline bool can_attach() {
  std::uint64_t from = 1, to = 0;
  const iovec here{&to, sizeof to}, there{&from, sizeof from};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof to;
}

/// Words that differ from those of every other number. By pointers, as are_words_of(): unoptimized and sanitized, tests
/// spend much of their time here.
inline std::vector<std::uint64_t> words_of(std::uint64_t number, std::size_t size) {
  std::vector<std::uint64_t> words(size);
  std::uint64_t word = number * 0x9e3779b97f4a7c15;
  std::uint64_t* const end = words.data() + size;
  for (std::uint64_t* at = words.data(); at != end; ++at) *at = word++;
  return words;
}
inline bool are_words_of(std::uint64_t number, std::span<const std::uint64_t> words) {
  std::uint64_t word = number * 0x9e3779b97f4a7c15;
  const std::uint64_t* const end = words.data() + words.size();
  for (const std::uint64_t* at = words.data(); at != end; ++at) {
    if (*at != word++) return false;
  }
  return true;
}

}  // namespace headway::testing
