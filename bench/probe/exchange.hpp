// SPDX-License-Identifier: BSD-3-Clause
/// Messages between the PEs 0 and 1, timed by PE 0.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/headway.hpp>
#include <record/record.hpp>
#include <span>
#include <vector>

namespace headway::bench {

/// Messages of `bytes` from PE 0 to PE 1, a computation of `delay_ns` after each but the last, then `replies` messages
/// of `reply_bytes` from PE 1.
struct Exchange {
  std::uint32_t messages = 1;
  std::size_t bytes = 1;
  std::int64_t delay_ns = 0;
  std::uint32_t replies = 1;
  std::size_t reply_bytes = 0;
  std::int64_t settle_ns = 0;  // before it, PE 0 polls for so long: no frame waits for the gap behind an earlier one
};

/// Times of PE 0, in ns.
struct ExchangeTimes {
  double round_trip = 0;  // until the last reply has been handled
  double delay = 0;       // mean of the computations, which may last longer than asked for
  double pack = 0;        // of all sends, without the computations and the last flush
  double receive = 0;     // of the calls of progress() from the first reply on, beyond calls that find nothing
};

/// Both PEs make it together. PE 1 replies while it is in meet().
class ProbedPair {
 public:
  enum class Framing { direct, aggregated };

  /// Direct: each message in a frame of its own. Aggregated: all messages of an exchange in one frame.
  ProbedPair(Pe& pe, Framing framing, std::size_t bytes_max)
      : pe_(&pe), content_(bytes_max, std::byte{42}), messages_(pe, options_of(framing)) {
    messages_.on(
        [this](std::uint32_t left, std::uint32_t replies, std::uint32_t reply_bytes, std::span<const std::byte>) {
          if (begins()) {
            ++answered_;
          } else if (left == 0) {
            send_all(0, replies, reply_bytes);
            messages_.flush();
          }
        });
    if (begins()) clock_ns_ = time_of_clock();
  }

  bool begins() const { return pe_->id() == 0; }

  ExchangeTimes run(const Exchange& exchange) {
    ExchangeTimes times;
    answered_ = 0;
    for (const std::int64_t until = now() + exchange.settle_ns; now() < until;) pe_->progress();
    const std::int64_t begin = now();
    delayed_ns_ = 0;
    delays_ = 0;
    send_all(1, exchange.messages, exchange.bytes, exchange.replies, exchange.reply_bytes, exchange.delay_ns);
    const std::int64_t packed = now();
    messages_.flush();
    wait_until(*pe_, [&] { return answered_ == exchange.replies; });
    times.round_trip = double(now() - begin) - 2 * clock_ns_ - double(delays_) * clock_ns_;
    times.delay = delays_ == 0 ? 0 : double(delayed_ns_) / double(delays_);
    times.pack = double(packed - begin - delayed_ns_) - double(delays_ + 1) * clock_ns_;
    return times;
  }

  /// The time of the calls that take the replies and handle them. PE 0 polls all the time, so a frame that becomes
  /// visible later than it arrives does not lengthen the call that handles it. The time of a call that finds nothing is
  /// subtracted: PE 0 polls also without a message.
  ExchangeTimes run_to_receive(const Exchange& exchange) {
    const double idle_ns = time_of_idle_call();
    answered_ = 0;
    send_all(1, exchange.messages, exchange.bytes, exchange.replies, exchange.reply_bytes);
    messages_.flush();
    std::int64_t before = now(), after = before;
    wait_until(*pe_, [&] {
      after = now();
      if (answered_ == exchange.replies) return true;
      if (answered_ == 0) before = after;
      return false;
    });
    ExchangeTimes times;
    times.receive = double(after - before) - idle_ns;
    return times;
  }

  /// PE 1 replies until PE 0 has called this.
  void meet() { barrier(*pe_); }

 private:
  static AggregatorOptions options_of(Framing framing) {
    if (framing == Framing::direct) return {.topology = direct()};
    return {.buffer_bytes = std::size_t(64) << 10,
            .threshold = 0.9,
            .cutoff = 0.1,
            .timeout = no_timeout,
            .topology = grid(1)};
  }

  std::int64_t now() const { return pe_->engine().now(); }

  /// Between two reads of the clock.
  double time_of_clock() const {
    std::vector<double> ns;
    for (int i = 0; i != 101; ++i) {
      const std::int64_t before = now();
      ns.push_back(double(now() - before));
    }
    return spread_of(ns).median;
  }

  /// A call of progress() that finds nothing, with a read of the clock.
  double time_of_idle_call() {
    double least = 1e18;
    for (int i = 0; i != 5; ++i) {
      const std::int64_t before = now();
      pe_->progress();
      least = std::min(least, double(now() - before));
    }
    return least;
  }

  void send_all(std::size_t target, std::uint32_t messages, std::size_t bytes, std::uint32_t replies = 0,
                std::size_t reply_bytes = 0, std::int64_t delay_ns = 0) {
    const std::span<const std::byte> content = std::span(content_).first(std::min(bytes, content_.size()));
    for (std::uint32_t left = messages; left-- != 0;) {
      messages_.send(target, left, replies, std::uint32_t(reply_bytes), content);
      if (delay_ns != 0 && left != 0) compute(delay_ns);
    }
  }

  void compute(std::int64_t ns) {
    const std::int64_t begin = now();
#if defined(HEADWAY_SMPI)
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&time, nullptr);  // each read of the simulated clock is an event of the simulator
#endif
    std::int64_t at = now();
    while (at - begin < ns) at = now();
    delayed_ns_ += at - begin;
    ++delays_;
  }

  Pe* pe_;
  std::vector<std::byte> content_;
  double clock_ns_ = 0;
  std::uint64_t answered_ = 0;
  std::int64_t delayed_ns_ = 0;
  std::uint64_t delays_ = 0;
  Aggregator<std::uint32_t, std::uint32_t, std::uint32_t, std::span<const std::byte>> messages_;
};

}  // namespace headway::bench
