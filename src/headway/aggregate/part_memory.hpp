/// Memory that messages in parts are put together in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/base/size_constants.hpp>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// Addresses, whose pages come as they are written. To the system they are two areas at most, each of which can be moved
/// by one call:
///
///     | small pages, up to mapping_huge_page_bytes | huge ones where they may be ... |
class Mapping {
 public:
  Mapping() = default;
  /// Of at least `bytes`. Throws SystemError where the system has no more. `sizes` outlives it.
  explicit Mapping(std::size_t bytes, const SizeConstants& sizes = normal_sizes);
  Mapping(Mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), sizes_(other.sizes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(sizes_, other.sizes_);
    return *this;
  }
  ~Mapping();

  /// To at least `bytes`: what lies there goes along to other addresses, without a copy. Throws SystemError where the
  /// system has no more; it is only to be destroyed then.
  void grow(std::size_t bytes);

  std::byte* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  const SizeConstants* sizes_ = &normal_sizes;
};

/// Gives such memory out, and keeps some of what comes back for the next messages, because pages that come anew cost
/// several times what it costs to write to them: for a tenth of a second after the last one came back. For one PE.
class PartMemory {
 public:
  /// `sizes` outlives it, and what it gives out.
  explicit PartMemory(std::size_t kept_bytes_max, const SizeConstants& sizes = normal_sizes)
      : sizes_(&sizes), kept_bytes_max_(kept_bytes_max) {}

  Mapping take(std::size_t bytes);
  void give(Mapping memory, std::int64_t now);

  bool keeps_any() const { return !kept_.empty(); }
  std::size_t kept_bytes() const { return kept_bytes_; }
  /// When what is kept should go, else am::never.
  std::int64_t due() const { return keeps_any() ? due_ : am::never; }
  void forget();

 private:
  const SizeConstants* sizes_;
  std::size_t kept_bytes_max_;
  std::vector<Mapping> kept_;  // the one that came back last is the last
  std::size_t kept_bytes_ = 0;
  std::int64_t due_ = am::never;
};

}  // namespace headway::aggregate
