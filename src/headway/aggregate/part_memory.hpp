// SPDX-License-Identifier: BSD-3-Clause
/// Memory for the reassembly of messages in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/base/size_constants.hpp>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// Reserved addresses; the system provides pages as they are written. They are at most two areas of the system, each of
/// which one call can move:
///
///     | small pages, up to mapping_huge_page_bytes | huge ones where they may be ... |
class Mapping {
 public:
  Mapping() = default;
  /// At least `bytes`. SystemError if the system has no addresses left. `sizes` outlives it.
  explicit Mapping(std::size_t bytes, const base::SizeConstants& sizes = base::normal_sizes);
  Mapping(Mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), sizes_(other.sizes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(sizes_, other.sizes_);
    return *this;
  }
  ~Mapping();

  /// Grows to at least `bytes`. The content moves to other addresses without a copy. After a SystemError it may only be
  /// destroyed.
  void grow(std::size_t bytes);

  std::byte* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  const base::SizeConstants* sizes_ = &base::normal_sizes;
};

/// The mappings of one PE. It keeps returned ones for 0.1 s, because a new page costs several times as much as writing
/// to it.
class PartMemory {
 public:
  /// `sizes` outlives it and its mappings.
  explicit PartMemory(std::size_t kept_bytes_max, const base::SizeConstants& sizes = base::normal_sizes)
      : sizes_(&sizes), kept_bytes_max_(kept_bytes_max) {}

  Mapping take(std::size_t bytes);
  void give(Mapping memory, std::int64_t now);

  bool keeps_any() const { return !kept_.empty(); }
  std::size_t kept_bytes() const { return kept_bytes_; }
  /// When kept mappings are released; am::never if there are none.
  std::int64_t due() const { return keeps_any() ? due_ : am::never; }
  void forget();

 private:
  const base::SizeConstants* sizes_;
  std::size_t kept_bytes_max_;
  std::vector<Mapping> kept_;  // the most recently returned one is last
  std::size_t kept_bytes_ = 0;
  std::int64_t due_ = am::never;
};

}  // namespace headway::aggregate
