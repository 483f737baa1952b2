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
#include <headway/transport/forwarding_endpoint.hpp>
#include <optional>

namespace headway::dial {

struct Options {
  base::DialSettings dials;
  /// In a simulation: lets this time pass on the PE's clock. Empty: real time.
  std::function<void(std::int64_t ns)> pass_time = {};
  bool yields = false;  // more PEs than cores: a PE that waits lets others run
  /// The longest sleep while frames are delayed, or 0: no limit. Some transports do not wake up when a frame arrives;
  /// without a limit its delay would begin late there.
  std::int64_t sleep_ns_max = 0;
};

/// All PEs of a run have such an endpoint with equal dials, or none has. It offers no frames in place, no memory of
/// other PEs and no services, so that all data between PEs is in frames. Frames of a PE to itself are not delayed.
/// Frames leave, and arrive, only in calls of this endpoint. Its costs are those of the transport without delays, so
/// that the layers above decide as without dials.
class DialledEndpoint final : public transport::ForwardingEndpoint, private transport::SharedMemory {
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

  transport::Services* services() override { return nullptr; }
  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  std::byte* try_begin_in_place(std::size_t /*target*/) override { return nullptr; }
  void post_in_place(std::size_t /*target*/, const transport::FrameHeader& /*header*/) override {}
  void accept_in_place(bool /*accepts*/) override {}
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override;
  bool poll(transport::Arrival& arrival) override;
  void sleep(std::int64_t ns_max) override;
  /// Frames leave the injector, and become visible, on time.
  void charge(std::int64_t ns) override;

 private:
  std::span<std::byte> pool(std::size_t pe) override {
    return pe == id() ? inner().shared_memory().pool(pe) : std::span<std::byte>();
  }
  std::span<std::byte> board(std::size_t pe) override { return inner().shared_memory().board(pe); }
  transport::SharedByProcess* shared_by_process() override { return inner().shared_memory().shared_by_process(); }

  std::int64_t draw(double ns);
  bool take_arrivals();
  bool work_aside();
  void busy_wait(std::int64_t ns);
  void charge_receiver(const transport::FrameHeader& header);

  Options options_;
  Random random_;
  std::optional<Injector> injector_;   // if g or G is not 0
  std::optional<DelayQueue> delayed_;  // if L is not 0
  bool overhead_paid_ = false;         // by a post that was refused
  Kept kept_;
  std::exception_ptr invalid_;  // of an arrival during a busy-wait; the next poll throws it
};

}  // namespace headway::dial
