/// A vector of which a few elements need no memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace headway {

/// As std::vector; the first `here` elements lie in it, more of them elsewhere. It stays where it is.
template <class T, std::size_t here>
class ShortVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && here > 0);

 public:
  ShortVector() = default;
  ShortVector(const ShortVector&) = delete;
  ShortVector& operator=(const ShortVector&) = delete;

  void push_back(T value) {
    if (size_ == room_) grow(2 * size_);
    data_[size_++] = value;
  }
  /// More elements are T().
  void resize(std::size_t size) {
    if (size > room_) grow(size);
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
  void grow(std::size_t room) {
    auto larger = std::make_unique<T[]>(room);
    std::copy_n(data_, size_, larger.get());
    elsewhere_ = std::move(larger);
    data_ = elsewhere_.get();
    room_ = room;
  }

  T few_[here] = {};
  std::unique_ptr<T[]> elsewhere_;
  T* data_ = few_;
  std::size_t size_ = 0, room_ = here;
};

}  // namespace headway
