// SPDX-License-Identifier: BSD-3-Clause
/// The work of headway-put and of its peer on UCX: words that go to random places of memory of one other process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <span>
#include <vector>

namespace headway::bench {

/// Where puts go, one after the other, the same each time it is made.
class PutPlaces {
 public:
  explicit PutPlaces(unsigned log2) : mask_((std::uint64_t(1) << log2) - 1) {}
  std::uint64_t next() { return random_.next() & mask_; }

 private:
  Random random_{1};
  std::uint64_t mask_;
};

/// The word to put to each place, never 0; the timed pass puts others than the pass before.
inline std::vector<std::uint64_t> words_to_put(unsigned log2, bool timed) {
  std::vector<std::uint64_t> words(std::size_t(1) << log2);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = ((i * 0x9e3779b97f4a7c15) | 1) ^ (timed ? 2 : 0);
  return words;
}

/// Of the pass that is not timed, which goes to the first of the same places.
inline std::uint64_t warming_puts(std::uint64_t puts) { return std::min<std::uint64_t>((puts + 3) / 4, 1 << 18); }

/// How many words of memory that was 0 before both passes are wrong.
inline std::uint64_t wrong_puts(std::span<const std::uint64_t> words, unsigned log2, std::uint64_t puts) {
  const std::vector<std::uint64_t> put = words_to_put(log2, true);
  std::vector<std::uint64_t> expected(put.size());
  PutPlaces places(log2);
  for (std::uint64_t i = 0; i < puts; ++i) {
    const std::uint64_t place = places.next();
    expected[place] = put[place];
  }
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) wrong += words[i] != expected[i];
  return wrong;
}

}  // namespace headway::bench
