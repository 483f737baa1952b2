// SPDX-License-Identifier: BSD-3-Clause
/// A set of element indices, as one bit for each possible index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/halo/index_list.hpp>
#include <vector>

namespace headway::halo {

/// For `elements` indices below `extent`. Its memory is at most 8 bytes for each of these elements: without that,
/// is_possible() is false.
class IndexSet {
 public:
  static bool is_possible(std::uint64_t extent, std::uint64_t elements) { return extent / bits <= elements; }

  explicit IndexSet(std::uint64_t extent) : words_(std::size_t(extent / bits + 1)) {}

  /// Adds the elements of a list. Returns whether all of them are new.
  bool add(const IndexList& list) {
    bool are_new = true;
    list.each_run(0, list.size(), [&](std::uint64_t index, std::size_t length) {
      for (; length != 0; ++index, --length) {
        std::uint64_t& word = words_[std::size_t(index / bits)];
        const std::uint64_t bit = std::uint64_t(1) << index % bits;
        are_new &= (word & bit) == 0;
        word |= bit;
      }
    });
    return are_new;
  }

 private:
  static constexpr std::uint64_t bits = 64;  // of a word

  std::vector<std::uint64_t> words_;
};

}  // namespace headway::halo
