// SPDX-License-Identifier: BSD-3-Clause
/// What one PE does with the global memories of a program.
#pragma once

#include <headway/global/array.hpp>
#include <headway/global/memory.hpp>
#include <memory>
#include <vector>

#include "program.hpp"

namespace seeds {

/// An element begins as 0. One PE puts or stores it, or two PEs add to it, or none does. Every PE reads it later.
class Memories {
 public:
  Memories(headway::Pe& pe, const Program& program) : pe_(pe), program_(program), places_(program.memories.size()) {}

  /// Collective, in the same order on every PE.
  void make(std::size_t index);
  void destroy_array(std::size_t index) { places_[index].array.reset(); }

  /// Writes or reads some elements, if that is to be done in this round. False where there is nothing left to do. Runs
  /// handlers. Throws Violation.
  bool take_one(const Round& round, Random& random);
  /// Destroys a memory that is not used any more. False where there is none.
  bool destroy_one(const Round& round);
  /// Behind the quiesce() of a phase. Throws Violation.
  void check(std::size_t phase) const;

 private:
  using Word = std::uint64_t;
  struct Place {
    std::unique_ptr<headway::GlobalMemory> memory;
    std::unique_ptr<headway::DistArray<Word>> array;
    std::size_t written = 0, read = 0;  // elements that this PE has come to
  };

  std::uint64_t draw(std::size_t index, std::size_t element, std::uint64_t what) const {
    return mix(mix(program_.seed, index << 32 | element), what);
  }
  Word value(std::size_t index, std::size_t element) const;
  void write(std::size_t index, std::size_t elements);
  void read(std::size_t index, std::size_t elements, Random& random);

  headway::Pe& pe_;
  const Program& program_;
  std::vector<Place> places_;
};

}  // namespace seeds
