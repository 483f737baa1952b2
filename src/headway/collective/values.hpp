// SPDX-License-Identifier: BSD-3-Clause
/// The elements of one call on one PE: running result and operator, for any type.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/am/future.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/sendable.hpp>
#include <headway/base/serialize.hpp>
#include <headway/collective/elements.hpp>
#include <headway/collective/operation.hpp>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::collective {

/// The part of a large vector that travels in one message.
inline constexpr std::size_t segment_bytes = std::size_t(32) << 10;

/// Consecutive elements.
struct Part {
  std::size_t first, count;
};

using Bytes = std::span<const std::byte>;

/// FormatError that states both lengths in bytes.
[[noreturn]] void fail_contribution_length(std::size_t bytes, std::size_t expected);

/// The interface for descriptors. Bytes are those of the elements of a part as they travel; FormatError if they are
/// malformed.
class Values {
 public:
  Values() = default;
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  virtual ~Values() = default;

  /// running = op(running, other), element by element.
  virtual void reduce(Part part, Bytes other) = 0;
  /// running = op(other, running).
  virtual void reduce_before(Part part, Bytes other) = 0;
  /// The same for elements outside this object: running = op(running, other), both as they travel. FixedSize elements
  /// only.
  virtual void reduce_bytes(std::span<std::byte> running, Bytes other) const = 0;
  virtual void replace(Part part, Bytes other) = 0;
  /// Valid until the next call.
  virtual Bytes encoded(Part part) = 0;
  /// For a receiver that does not know the count in advance.
  virtual void resize(std::size_t count) = 0;
  /// Completes the future. `has_result`: the running result is the value for this PE.
  virtual void complete(bool has_result) = 0;
};

/// Elements as they travel: FixedSize ones as they lie in memory, others serialized, one after the other.
template <class T>
class Codec {
 public:
  /// Elements in one segment.
  static constexpr std::size_t per_segment = sizeof(T) >= segment_bytes ? 1 : segment_bytes / sizeof(T);

  Bytes encode(std::span<const T> values) {
    if constexpr (FixedSize<T>) {
      return std::as_bytes(values);
    } else {
      std::size_t bytes = 0;
      for (const T& value : values) bytes += serialized_bytes(value);
      scratch_.resize(bytes);
      std::byte* at = scratch_.data();
      for (const T& value : values) at = serialize(at, value);
      return scratch_;
    }
  }

  /// Calls take(i, element) for each of `count`.
  template <class Take>
  static void decode(Bytes bytes, std::size_t count, Take take) {
    if constexpr (FixedSize<T>) {
      if (bytes.size() != count * sizeof(T)) fail_contribution_length(bytes.size(), sizeof(T) * count);
      for (std::size_t i = 0; i < count; ++i) take(i, load<T>(bytes.data() + i * sizeof(T)));
    } else {
      ByteReader reader(bytes);
      for (std::size_t i = 0; i < count; ++i) take(i, deserialize<T>(reader));
      if (reader.remaining() != 0) throw FormatError("a serialized contribution is longer than its elements");
    }
  }

  static void decode_into(std::span<T> values, Bytes bytes) {
    if constexpr (FixedSize<T>) {
      if (bytes.size() != values.size_bytes()) fail_contribution_length(bytes.size(), sizeof(T) * values.size());
      if (!bytes.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
    } else {
      decode(bytes, values.size(), [&](std::size_t i, T&& value) { values[i] = std::move(value); });
    }
  }

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<FixedSize<T>, Nothing, std::vector<std::byte>> scratch_;
};

// --- places of the elements, with the promise

/// A copy of the elements of the caller; the future has the vector, empty where there is no result.
template <class T>
struct OwnedVector {
  std::vector<T> values;
  Promise<std::vector<T>> promise;

  std::span<T> span() { return values; }
  void resize(std::size_t count) {
    if constexpr (std::is_default_constructible_v<T>) {
      values.resize(count);
    } else if (values.size() != count) {
      throw FormatError(
          "elements without a default constructor arrived where this PE gave none: give as many on every member");
    }
  }
  void complete(bool has_result) {
    if (!has_result) values.clear();
    promise.set(std::move(values));
  }
  static void complete_without(Promise<std::vector<T>>& promise) { promise.set(std::vector<T>()); }
};

/// One value, on every PE.
template <class T>
struct OwnedValue {
  T value;
  Promise<T> promise;

  std::span<T> span() { return {&value, 1}; }
  void resize(std::size_t count) {
    if (count != 1) throw FormatError("another number of values than 1 arrived for one value");
  }
  void complete(bool) { promise.set(std::move(value)); }
};

/// One value, where there is a result.
template <class T>
struct RootValue {
  T value;
  Promise<std::optional<T>> promise;

  std::span<T> span() { return {&value, 1}; }
  void resize(std::size_t) {}
  void complete(bool has_result) { promise.set(has_result ? std::optional<T>(std::move(value)) : std::nullopt); }
  static void complete_without(Promise<std::optional<T>>& promise) { promise.set(std::nullopt); }
};

/// Memory of the caller, until the future is ready.
template <class T>
struct Borrowed {
  std::span<T> values;
  Promise<> promise;

  std::span<T> span() { return values; }
  void resize(std::size_t count) {
    if (count != values.size()) throw FormatError("another number of elements arrived than this PE has given");
  }
  void complete(bool) { promise.set(); }
};

/// An intermediate result, without a future.
template <class T>
struct Intermediate {
  std::vector<T> values;

  std::span<T> span() { return values; }
  void resize(std::size_t) {}
  void complete(bool) {}
};

/// Values of a type.
template <class T, class Op, class Place>
class ValuesOf final : public Values {
 public:
  ValuesOf(Op op, Place place) : op_(op), place_(std::move(place)) {}
  Place& place() { return place_; }

  void reduce(Part part, Bytes other) override {
    if constexpr (!std::is_same_v<Op, NoOperator>) {
      T* const running = of(part).data();
      Codec<T>::decode(other, part.count, [&](std::size_t i, T&& value) {
        running[i] = static_cast<T>(op_(std::as_const(running[i]), std::as_const(value)));
      });
    }
  }
  void reduce_before(Part part, Bytes other) override {
    if constexpr (!std::is_same_v<Op, NoOperator>) {
      T* const running = of(part).data();
      Codec<T>::decode(other, part.count, [&](std::size_t i, T&& value) {
        running[i] = static_cast<T>(op_(std::as_const(value), std::as_const(running[i])));
      });
    }
  }
  void reduce_bytes(std::span<std::byte> running, Bytes other) const override {
    if constexpr (FixedSize<T> && !std::is_same_v<Op, NoOperator>) {
      reduce_elements<T>(op_, running.data(), other.data(), running.size());
    }
  }
  void replace(Part part, Bytes other) override { Codec<T>::decode_into(of(part), other); }
  Bytes encoded(Part part) override { return codec_.encode(of(part)); }
  void resize(std::size_t count) override { place_.resize(count); }
  void complete(bool has_result) override { place_.complete(has_result); }

 private:
  std::span<T> of(Part part) { return place_.span().subspan(part.first, part.count); }

  [[no_unique_address]] Op op_;
  Place place_;
  [[no_unique_address]] Codec<T> codec_;
};

}  // namespace headway::collective
