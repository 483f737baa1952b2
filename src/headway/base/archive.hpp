// SPDX-License-Identifier: BSD-3-Clause
/// The archives behind serialize.hpp: one counts bytes, one writes them, one reads them. A serialize(archive) member
/// gets one of them and calls `archive(fields...)`; these calls are defined in serialize.hpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/copy.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace headway {
namespace detail {

// Counts the bytes that ByteWriter writes.
class ByteCounter {
 public:
  using is_loading = std::false_type;
  using is_saving = std::true_type;

  std::size_t position() const { return bytes_; }
  void raw(const void*, std::size_t bytes) { bytes_ += bytes; }
  void row(const void*, std::size_t bytes) { bytes_ += bytes; }
  void byte(unsigned char) { ++bytes_; }
  void zeros(std::size_t bytes) { bytes_ += bytes; }
  void count(std::uint64_t n) { bytes_ += (static_cast<std::size_t>(std::bit_width(n | 1)) + 6) / 7; }

  template <class... Fields>
  void operator()(const Fields&... field);

 private:
  std::size_t bytes_ = 0;
};

// Writes without checks: the caller has provided serialized_bytes() bytes.
class ByteWriter {
 public:
  using is_loading = std::false_type;
  using is_saving = std::true_type;

  // `more_follows`: as for copy_short().
  explicit ByteWriter(std::byte* out, bool more_follows = false)
      : begin_(out), end_(out), more_follows_(more_follows) {}
  std::byte* end() const { return end_; }

  std::size_t position() const { return static_cast<std::size_t>(end_ - begin_); }
  void raw(const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(end_, from, bytes);
    end_ += bytes;
  }
  // The same as raw(), faster for sizes that the compiler does not know.
  void row(const void* from, std::size_t bytes) {
    base::copy_short<true>(end_, static_cast<const std::byte*>(from), bytes, more_follows_);
    end_ += bytes;
  }
  void byte(unsigned char value) { *end_++ = static_cast<std::byte>(value); }
  void zeros(std::size_t bytes) {
    if (bytes > 0) std::memset(end_, 0, bytes);
    end_ += bytes;
  }
  void count(std::uint64_t n) {
    for (; n >= 128; n >>= 7) byte(static_cast<unsigned char>(n | 128));
    byte(static_cast<unsigned char>(n));
  }

  template <class... Fields>
  void operator()(const Fields&... field);

 private:
  std::byte* begin_;
  std::byte* end_;
  bool more_follows_;
};

}  // namespace detail

/// Reads values from [begin, end), which must outlive it; never past the end. All members throw FormatError for damaged
/// bytes. serialize() members get it as their archive when they read.
class ByteReader {
 public:
  using is_loading = std::true_type;
  using is_saving = std::false_type;

  /// Largest nesting of aggregates and classes, so that damaged bytes cannot exhaust the stack.
  static constexpr int nesting_max = 500;

  ByteReader(const std::byte* begin, const std::byte* end) : next_(begin), end_(end) {}
  explicit ByteReader(std::span<const std::byte> bytes) : ByteReader(bytes.data(), bytes.data() + bytes.size()) {}

  const std::byte* position() const { return next_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - next_); }

  /// Skips the next `bytes` bytes and returns their begin.
  const std::byte* take(std::size_t bytes) {
    if (bytes > remaining()) [[unlikely]]
      fail_short(bytes);
    return std::exchange(next_, next_ + bytes);
  }

  bool boolean() {
    const auto value = std::to_integer<unsigned>(*take(1));
    if (value > 1) [[unlikely]]
      fail("a bool is neither 0 nor 1 but ", value);
    return value == 1;
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto digit = std::to_integer<std::uint64_t>(*take(1));
      if (shift == 63 && digit > 1) [[unlikely]]
        fail("a count does not fit in 64 bits, its last digit is ", digit);
      value |= (digit & 127) << shift;
      if (digit < 128) return value;
    }
  }

  /// Reads a count of elements, each of which takes at least `bytes_min` bytes, and at least one. Refuses a count for
  /// which too few bytes are left.
  std::size_t count(std::size_t bytes_min) {
    const std::uint64_t elements = number();
    if (elements > unpromised() / (bytes_min == 0 ? 1 : bytes_min)) [[unlikely]]
      fail_count(elements, bytes_min);
    return static_cast<std::size_t>(elements);
  }

  /// While it exists, the smallest lengths of a container's unread elements are reserved. count() of a container inside
  /// an element does not count these bytes, because they already justify the memory of the outer elements.
  class Promise {
   public:
    Promise(ByteReader& reader, std::size_t elements, std::size_t bytes_min)
        : promised_(reader.promised_), before_(promised_), bytes_min_(bytes_min) {
      promised_ += elements * bytes_min;
    }
    ~Promise() { promised_ = before_; }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;

    void begin_element() { promised_ -= bytes_min_; }

   private:
    std::size_t& promised_;
    const std::size_t before_, bytes_min_;
  };

  template <class... Fields>
  void operator()(Fields&... field);

  /// One level of nesting, while it exists.
  class Nesting {
   public:
    explicit Nesting(ByteReader& reader) : depth_(reader.depth_) {
      if (depth_ == nesting_max) [[unlikely]]
        fail("values are nested deeper than ", nesting_max);
      ++depth_;
    }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& depth_;
  };

  [[noreturn]] static void fail(const char* what, std::uint64_t number) {
    throw FormatError("headway: damaged bytes: " + (what + std::to_string(number)));
  }

 private:
  [[noreturn]] void fail_short(std::size_t bytes) const {
    throw FormatError("headway: damaged bytes: " + base::counted(bytes, "byte") + " wanted where " +
                      std::to_string(remaining()) + std::string(base::by_number(remaining(), " is left", " are left")));
  }
  [[noreturn]] void fail_count(std::uint64_t elements, std::size_t bytes_min) const {
    throw FormatError("headway: damaged bytes: " + base::counted(elements, "element") + " of at least " +
                      base::counted(bytes_min, "byte") + " promised where " + base::counted(unpromised(), "byte") +
                      std::string(base::by_number(unpromised(), " is left", " are left")));
  }
  std::size_t unpromised() const { return remaining() > promised_ ? remaining() - promised_ : 0; }

  const std::byte* next_;
  const std::byte* end_;
  std::size_t promised_ = 0;
  int depth_ = 0;
};

}  // namespace headway
