// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that slows another one down: it adds LogGP's o, g, L and G, each by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <headway/base/dial_settings.hpp>
#include <headway/base/random.hpp>
#include <headway/transport/dial/delay_queue.hpp>
#include <headway/transport/dial/injector.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/simulated_clock.hpp>
#include <optional>

namespace headway::dial {

struct Options {
  base::DialSettings dials;
  /// In a simulation: lets this time pass on the PE's clock. Empty: real time.
  std::function<void(std::int64_t ns)> pass_time = {};
  bool yields = false;  // more PEs than cores: a PE that waits lets others run
  /// The longest sleep while frames are delayed: for a transport that sleeps on when a frame arrives, whose delay would
  /// begin late. 0: no limit.
  std::int64_t sleep_ns_max = 0;
};

/// All PEs of a run have such an endpoint with equal dials, or none has. It offers no frames in place, no memory of
/// other PEs and no services, so that all data between PEs is in frames. Frames of a PE to itself are not delayed.
/// Frames leave, and arrive, only in calls of this endpoint.
class DialledEndpoint final : public transport::Endpoint,
                              public transport::SimulatedClock,
                              private transport::SharedMemory {
 public:
  /// `inner` outlives it.
  DialledEndpoint(transport::Endpoint& inner, Options options);
  ~DialledEndpoint() override;

  /// How well busy-waits of o and item_o kept their times. All zero in a simulation.
  struct Kept {
    std::int64_t waits = 0, dialled_ns = 0, longer_ns = 0;  // longer_ns: by which they took longer

    /// They took longer by more than 5 % and by more than 200 ns on average.
    bool is_exceeded() const { return longer_ns * 20 > dialled_ns && longer_ns > waits * 200; }
  };
  const Kept& kept() const { return kept_; }

  /// Posts all frames that wait in the injector. Called after the last frame, before the PE ends. Gives up after 10 s
  /// in which none could leave.
  void drain();

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  bool should_write_past_caches(transport::Frame* claimed) override {
    return inner_->should_write_past_caches(claimed);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return inner_->block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override { inner_->drop(frame); }
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  std::size_t by_value_bytes_max() const override { return inner_->by_value_bytes_max(); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override;
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override { inner_->release(arrival); }
  void sleep(std::int64_t ns_max) override;
  /// Those of the transport without delays, so that the layers above decide as without dials.
  transport::TransportCosts costs() const override { return inner_->costs(); }
  transport::TransportCosts costs_within_host() const override { return inner_->costs_within_host(); }
  std::int64_t now() const override { return inner_->now(); }
  /// Nothing if `inner` has no simulated clock. Else frames leave the injector, and become visible, on time.
  void charge(std::int64_t ns) override;

 private:
  std::span<std::byte> pool(std::size_t pe) override {
    return pe == id() ? inner_->shared_memory().pool(pe) : std::span<std::byte>();
  }
  std::span<std::byte> board(std::size_t pe) override { return inner_->shared_memory().board(pe); }
  transport::SharedByProcess* shared_by_process() override { return inner_->shared_memory().shared_by_process(); }

  std::int64_t draw(double ns);
  bool take_arrivals();
  bool work_aside();
  void busy_wait(std::int64_t ns);
  void charge_receiver(const transport::FrameHeader& header);

  transport::Endpoint* inner_;
  Options options_;
  Random random_;
  std::optional<Injector> injector_;   // if g or G is not 0
  std::optional<DelayQueue> delayed_;  // if L is not 0
  bool overhead_paid_ = false;         // by a post that was refused
  Kept kept_;
  std::exception_ptr invalid_;  // of an arrival during a busy-wait; the next poll throws it
};

}  // namespace headway::dial
