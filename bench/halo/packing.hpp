// SPDX-License-Identifier: BSD-3-Clause
/// Packing by hand, as a program without Headway does it: one copy for each run of neighbouring elements, or a loop
/// over indices where runs are short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <halo/values.hpp>
#include <vector>

namespace headway::bench {

/// The list of one partner, prepared at set-up.
class HandPackedList {
 public:
  HandPackedList(const HaloPartner& partner, std::size_t fields) : pe_(partner.pe), fields_(fields) {
    for (const std::uint64_t index : partner.indices) {
      if (!runs_.empty() && runs_.back().first + runs_.back().count == index)
        ++runs_.back().count;
      else
        runs_.push_back({index, 1});
    }
    size_ = partner.indices.size();
    if (size_ >= elements_of_run_min * runs_.size()) return;
    runs_.clear();
    indices_.assign(partner.indices.begin(), partner.indices.end());
  }

  std::size_t pe() const { return pe_; }
  /// Elements of all fields together.
  std::size_t size() const { return size_ * fields_; }

  /// Field after field.
  template <class T>
  void pack(const HaloArrays<T>& arrays, T* to) const {
    for (const std::span<T> array : arrays) {
      const T* const from = array.data();
      for (const Run& run : runs_) {
        std::memcpy(to, from + run.first, run.count * sizeof(T));
        to += run.count;
      }
      for (const std::uint32_t index : indices_) *to++ = from[index];
    }
  }
  template <class T>
  void unpack(const T* from, const HaloArrays<T>& arrays) const {
    for (const std::span<T> array : arrays) {
      T* const to = array.data();
      for (const Run& run : runs_) {
        std::memcpy(to + run.first, from, run.count * sizeof(T));
        from += run.count;
      }
      for (const std::uint32_t index : indices_) to[index] = *from++;
    }
  }

 private:
  static constexpr std::size_t elements_of_run_min = 4;  // on average; else a loop over indices is faster
  struct Run {
    std::uint64_t first, count;
  };

  std::size_t pe_, fields_, size_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> indices_;
};

/// The lists of one direction, with a buffer for all of them one after the other.
template <class T>
struct HandPackedSide {
  HandPackedSide(const std::vector<HaloPartner>& partners, std::size_t fields) {
    std::size_t size = 0;
    for (const HaloPartner& one : partners) {
      lists.emplace_back(one, fields);
      begins.push_back(size);
      size += lists.back().size();
    }
    buffer.resize(size);
  }
  T* of(std::size_t partner) { return buffer.data() + begins[partner]; }
  std::size_t bytes(std::size_t partner) const { return lists[partner].size() * sizeof(T); }

  std::vector<HandPackedList> lists;
  std::vector<std::size_t> begins;  // elements
  std::vector<T> buffer;
};

}  // namespace headway::bench
