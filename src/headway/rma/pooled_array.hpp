// SPDX-License-Identifier: BSD-3-Clause
/// An array that the other PEs of the host reach by load and store.
#pragma once

#include <cstddef>
#include <headway/rma/pool.hpp>
#include <span>
#include <type_traits>
#include <utility>

namespace headway {

/// `size` objects with unknown content in the PE's own part of its Pool. Transfers between PEs of a host from and to it
/// need one copy or none. Not collective. UsageError if the pool has not enough memory.
///
///     headway::PooledArray<double> field(pe, n);
///     blocks.send(3, number, headway::send_buffer(field, [&] { ... }));
template <class T>
class PooledArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096);

 public:
  PooledArray(Pe& pe, std::size_t size) : pool_(&rma::Pool::of(pe)), size_(size) {
    if (size > std::size_t(-1) / sizeof(T)) rma::refuse_size(pe, size, sizeof(T));
    offset_ = pool_->allocate(size * sizeof(T));
    data_ = reinterpret_cast<T*>(pool_->memory().data() + offset_);
  }
  PooledArray(PooledArray&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        offset_(other.offset_),
        data_(std::exchange(other.data_, nullptr)) {}
  PooledArray& operator=(PooledArray&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(size_, other.size_);
    std::swap(offset_, other.offset_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~PooledArray() {
    if (pool_ != nullptr) pool_->free(offset_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  rma::Pool* pool_;
  std::size_t size_;
  std::uint64_t offset_ = 0;
  T* data_ = nullptr;
};

}  // namespace headway
