// SPDX-License-Identifier: BSD-3-Clause
/// Arrays that are spread over all PEs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <headway/aggregate/layout.hpp>
#include <headway/base/error.hpp>
#include <headway/global/places.hpp>
#include <headway/global/pointer.hpp>
#include <headway/rma/pool.hpp>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace headway {

/// n elements of T in blocks of `block`, dealt out to the PEs round robin; by default one block per PE. Each PE's part
/// lies in its pool, and starts as T(). All PEs make and destroy it, in the same order. Neither waits: call barrier()
/// before a PE accesses other PEs' parts, and quiesce() before it is destroyed.
template <class T>
class DistArray {
 public:
  /// UsageError for blocks of 0 elements, and where the pool is too small.
  DistArray(Pe& pe, std::size_t n, std::size_t block) : pe_(&pe), n_(n), layout_(n, pe.size(), checked(block)) {
    const std::size_t most = layout_.count(0);
    if (most > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) {
      throw UsageError("a DistArray has " + std::to_string(most) + " elements of " + std::to_string(sizeof(T)) +
                       " bytes on a PE, more than can be addressed");
    }
    begin_ = rma::Pool::of(pe).allocate_everywhere(most * sizeof(T));
    std::byte* const at = rma::Pool::of(pe).memory().data() + begin_;
    local_ = {reinterpret_cast<T*>(at), layout_.count(pe.id())};
    std::uninitialized_value_construct(local_.begin(), local_.end());
  }
  DistArray(Pe& pe, std::size_t n) : DistArray(pe, n, std::max<std::size_t>(1, (n + pe.size() - 1) / pe.size())) {}
  DistArray(const DistArray&) = delete;
  DistArray& operator=(const DistArray&) = delete;
  ~DistArray() { rma::Pool::of(*pe_).free_everywhere(begin_); }

  std::size_t size() const { return n_; }
  const BlockCyclic& layout() const { return layout_; }
  PeId owner(std::size_t i) const { return layout_.owner(i); }

  global::Places<T> places() const { return {layout_, begin_}; }

  /// Of element i; does not check i.
  GlobalPtr<T> operator[](std::size_t i) const { return places()[i]; }
  /// The same, but UsageError for i beyond the end.
  GlobalPtr<T> at(std::size_t i) const {
    if (i >= n_) {
      throw UsageError("DistArray::at(" + std::to_string(i) + "): the array has " + std::to_string(n_) + " elements");
    }
    return (*this)[i];
  }

  /// This PE's elements, ascending: layout().global(pe, j) is the index of local()[j].
  std::span<T> local() const { return local_; }

 private:
  static std::size_t checked(std::size_t block) {
    if (block == 0) throw UsageError("a DistArray with blocks of 0 elements, allowed are blocks of 1 or more");
    return block;
  }

  Pe* pe_;
  std::size_t n_;
  BlockCyclic layout_;
  std::uint64_t begin_ = 0;
  std::span<T> local_;
};

}  // namespace headway
