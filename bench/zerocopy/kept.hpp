// SPDX-License-Identifier: BSD-3-Clause
/// The regular call with a handler that copies the content to memory of its own, as post, direct and MPI do.
#pragma once

#include <cstdint>
#include <cstring>
#include <headway/headway.hpp>
#include <span>
#include <utility>
#include <zerocopy/regular.hpp>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Kept : public Regular {
 public:
  using Regular::Regular;
  static constexpr bool copies = true;

  template <class Arrived>
  void on(Arrived arrived) {
    messages_.on([this, arrived = std::move(arrived)](std::uint64_t index, std::span<const std::uint64_t> data) {
      const std::span kept = target(index, data.size());
      std::memcpy(kept.data(), data.data(), kept.size_bytes());
      arrived(index, kept);
    });
  }
};

}  // namespace headway::bench
