// SPDX-License-Identifier: BSD-3-Clause
/// PRTT(n, d, s) of Culler, RTPP 1998, between the PEs 0 and 1: each message is a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/headway.hpp>
#include <span>
#include <vector>

namespace headway::bench {

/// All calls are collective over both PEs, with the same arguments.
class ProbedPair {
 public:
  ProbedPair(Pe& pe, std::size_t bytes_max)
      : pe_(&pe),
        content_(bytes_max, std::byte{42}),
        requests_(pe, {.topology = direct()}),
        replies_(pe, {.topology = direct()}) {
    requests_.on([this](std::uint64_t left, std::span<const std::byte>) {
      if (left != 0) return;
      replies_.send(1 - pe_->id(), 0);
      replies_.flush();
    });
    replies_.on([this](std::uint64_t) { ++answered_; });
  }

  std::int64_t now() const { return pe_->engine().now(); }
  bool begins() const { return pe_->id() == 0; }

  /// `messages` of `bytes` from PE 0, a computation of `delay_ns` after each but the last, until one reply has arrived:
  /// nanoseconds, on PE 0.
  double round_trip_ns(std::uint64_t messages, std::int64_t delay_ns, std::size_t bytes) {
    if (!begins()) return 0;
    const std::int64_t begin = now();
    for (std::uint64_t left = messages; left-- != 0;) {
      requests_.send(1, left, std::span(content_).first(bytes));
      if (left != 0) compute(delay_ns);
    }
    requests_.flush();
    await();
    return double(now() - begin);
  }
  /// One message, a computation that is longer than the round trip, then the reply that has arrived: what the round
  /// trip costs PE 0 itself, in nanoseconds. 2 o without what the receiver pays.
  double own_cost_ns(std::int64_t compute_ns, std::size_t bytes) {
    if (!begins()) return 0;
    const std::int64_t begin = now();
    requests_.send(1, 0, std::span(content_).first(bytes));
    requests_.flush();
    const std::int64_t sent = now();
    compute(compute_ns);
    const std::int64_t computed = now();
    await();
    return double(now() - computed + sent - begin);
  }
  /// PE 1 answers until PE 0 has called this function.
  void meet() { barrier(*pe_); }

 private:
  void compute(std::int64_t ns) const {
    for (const std::int64_t until = now() + ns; now() < until;) {
    }
  }
  void await() {
    wait_until(*pe_, [this] { return answered_ != 0; });
    answered_ = 0;
  }

  Pe* pe_;
  std::vector<std::byte> content_;
  std::uint64_t answered_ = 0;
  Aggregator<std::uint64_t, std::span<const std::byte>> requests_;
  Aggregator<std::uint64_t> replies_;
};

}  // namespace headway::bench
