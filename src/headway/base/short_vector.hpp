// SPDX-License-Identifier: BSD-3-Clause
/// A vector with memory for a few elements in the object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace headway::base {

/// As std::vector. Up to `inline_max` elements lie in the object, more on the heap. Cannot be copied or moved.
template <class T, std::size_t inline_max>
class ShortVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && inline_max > 0);

 public:
  ShortVector() = default;
  ShortVector(const ShortVector&) = delete;
  ShortVector& operator=(const ShortVector&) = delete;

  void push_back(T value) {
    if (size_ == capacity_) grow(2 * size_);
    data_[size_++] = value;
  }
  /// New elements are T().
  void resize(std::size_t size) {
    if (size > capacity_) grow(size);
    if (size > size_) std::fill(data_ + size_, data_ + size, T());
    size_ = size;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  void grow(std::size_t capacity) {
    auto larger = std::make_unique<T[]>(capacity);
    std::copy_n(data_, size_, larger.get());
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ = capacity;
  }

  T inline_[inline_max] = {};
  std::unique_ptr<T[]> heap_;
  T* data_ = inline_;
  std::size_t size_ = 0, capacity_ = inline_max;
};

}  // namespace headway::base
