// SPDX-License-Identifier: BSD-3-Clause
/// Memory that goes between numpy and the library: the Python side gives arrays as bytes, with the type beside them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <headway/base/error.hpp>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::python {

namespace nb = nanobind;

/// n rows of some bytes, contiguous.
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

inline std::span<const std::uint8_t> span_of(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }
inline const std::byte* data_of(const Bytes& bytes) { return reinterpret_cast<const std::byte*>(bytes.data()); }

/// An array of numpy that owns `owner`.
template <class Owner>
nb::object to_array(std::uint8_t* data, std::size_t bytes, std::unique_ptr<Owner> owner) {
  const nb::capsule capsule(owner.release(), [](void* at) noexcept { delete static_cast<Owner*>(at); });
  return nb::cast(Array(data, {bytes}, capsule));
}
template <class T>
nb::object to_array(std::vector<T>&& values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  auto* const data = reinterpret_cast<std::uint8_t*>(owner->data());
  const std::size_t bytes = owner->size() * sizeof(T);
  return to_array(data, bytes, std::move(owner));
}

/// Memory that grows, without a value at first, and that an array of numpy can take over.
class Growing {
 public:
  Growing() = default;
  Growing(Growing&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        room_(std::exchange(other.room_, 0)) {}
  Growing& operator=(Growing&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~Growing() { std::free(at_); }

  /// Appends memory for `bytes` bytes, and returns its address.
  std::byte* grow(std::size_t bytes) {
    if (bytes > room_ - size_) {
      const std::size_t room = std::max(size_ + bytes, room_ + room_ / 2);
      void* const at = std::realloc(at_, room);
      if (at == nullptr) throw std::bad_alloc();
      at_ = static_cast<std::byte*>(at);
      room_ = room;
    }
    return at_ + std::exchange(size_, size_ + bytes);
  }
  std::byte* data() const { return at_; }
  std::size_t size() const { return size_; }
  nb::object take() {
    auto owner = std::make_unique<Growing>(std::move(*this));
    auto* const data = reinterpret_cast<std::uint8_t*>(owner->data());
    const std::size_t bytes = owner->size();
    return to_array(data, bytes, std::move(owner));
  }

 private:
  std::byte* at_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

/// Calls f(T()) with the type of a numpy kind ('i', 'u', 'f') and size. TypeError for others.
template <class F>
decltype(auto) with_type(char kind, std::size_t bytes, F f) {
  switch (kind) {
    case 'i':
      if (bytes == 8) return f(std::int64_t());
      if (bytes == 4) return f(std::int32_t());
      if (bytes == 2) return f(std::int16_t());
      if (bytes == 1) return f(std::int8_t());
      break;
    case 'u':
      if (bytes == 8) return f(std::uint64_t());
      if (bytes == 4) return f(std::uint32_t());
      if (bytes == 2) return f(std::uint16_t());
      if (bytes == 1) return f(std::uint8_t());
      break;
    case 'f':
      if (bytes == 8) return f(double());
      if (bytes == 4) return f(float());
      break;
    default: break;
  }
  const std::string text = std::string("values of numpy kind '") + kind + "' and " + std::to_string(bytes) +
                           " bytes are not allowed; allowed are integers of 1, 2, 4 and 8 bytes, float32 and float64";
  throw nb::type_error(text.c_str());
}

}  // namespace headway::python
