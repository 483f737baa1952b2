// SPDX-License-Identifier: BSD-3-Clause
/// The send interface: send_buffer() among the arguments; the handler reads the content in place.
#pragma once

#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <zerocopy/regular.hpp>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Send : public Regular {
 public:
  using Regular::Regular;

  void issue(std::size_t partner, std::uint64_t index, std::span<const std::uint64_t> data) {
    messages_.send(partner, index, send_buffer(data, [] {}));
  }
};

}  // namespace headway::bench
