/// The post interface: send_buffer() among the arguments, and a receiver that says where its content goes.
#pragma once

#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <utility>
#include <vector>
#include <zerocopy/send.hpp>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Post : public Send {
 public:
  using Send::Send;

  template <class Arrived>
  void on(Arrived arrived) {
    messages_.on_posted(
        [this](std::uint64_t, std::size_t words) {
          if (memory_.size() < words) memory_.resize(words);
          return std::span(memory_);
        },
        [arrived = std::move(arrived)](std::uint64_t index, std::span<const std::uint64_t> data) {
          arrived(index, data);
        });
  }

 private:
  std::vector<std::uint64_t> memory_;
};

}  // namespace headway::bench
