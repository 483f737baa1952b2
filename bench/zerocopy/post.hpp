// SPDX-License-Identifier: BSD-3-Clause
/// The post interface: send_buffer() among the arguments, and a receiver that says where its content goes.
#pragma once

#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <utility>
#include <zerocopy/send.hpp>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Post : public Send {
 public:
  using Send::Send;
  static constexpr bool copies = true;

  template <class Arrived>
  void on(Arrived arrived) {
    messages_.on_posted([this](std::uint64_t index, std::size_t words) { return target(index, words); },
                        [arrived = std::move(arrived)](std::uint64_t index, std::span<const std::uint64_t> data) {
                          arrived(index, data);
                        });
  }
};

}  // namespace headway::bench
