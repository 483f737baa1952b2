// SPDX-License-Identifier: BSD-3-Clause
/// The endpoint of a simulated PE, and its state in the world.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/sim/memory.hpp>
#include <headway/transport/sim/world.hpp>
#include <headway/transport/simulated_clock.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway::sim {

inline constexpr std::size_t pool_bytes = std::size_t(1) << 32;
struct UnmapPool {
  void operator()(std::byte* pool) const { munmap(pool, pool_bytes); }
};

/// The payload of a frame that is written where it arrives.
struct alignas(64) EagerSlot {
  std::byte before[transport::frame_overhead];
  std::byte bytes[transport::in_place_bytes_most];
};

/// A frame in flight, or arrived and not polled.
struct alignas(64) Transit {
  std::int64_t at;  // time of arrival
  std::uint64_t sequence;
  Memory::Block* block;  // nullptr: by value
  const std::byte* tail_end;
  std::byte bytes[transport::by_value_bytes_most];  // read there
  transport::FrameHeader header;
  std::shared_ptr<EagerSlot> eager_slot;  // the payload's place if not nullptr

  bool operator>(const Transit& other) const { return at != other.at ? at > other.at : sequence > other.sequence; }
};
static_assert(offsetof(Transit, bytes) == 32);

/// Memory on its way back to its owner.
struct Returned {
  std::int64_t at;
  std::uint64_t sequence;
  Memory::Block* block;
  bool operator>(const Returned& other) const { return at != other.at ? at > other.at : sequence > other.sequence; }
};

/// The endpoint of one simulated PE. Endpoints of other PEs also change its inbox and returned frames.
class SimEndpoint final : public transport::Endpoint,
                          public transport::SimulatedClock,
                          private transport::SharedMemory {
 public:
  SimEndpoint(World& world, World::SimPe& pe, std::size_t id);

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  bool should_write_past_caches(transport::Frame*) override {
    return conditions().past_caches != 0 && world_->random_.chance(conditions().past_caches);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return Memory::block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override {
    require_no_open_frame("drop()");
    const Call call(*this);
    memory_.drop(frame);
  }
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t target) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  void accept_in_place(bool accepts) override { accepts_in_place_ = accepts; }
  std::size_t by_value_bytes_max() const override { return conditions().by_value_bytes_max; }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override;
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override;
  void sleep(std::int64_t ns_max) override;
  transport::TransportCosts costs() const override { return conditions().costs(); }
  std::int64_t now() const override;
  void charge(std::int64_t ns) override;
  std::optional<Times> times() const override;

  const Memory& memory() const { return memory_; }
  void pass_time(std::int64_t ns) {
    const Call call(*this);
    world_->advance_clock(*pe_, ns);
  }
  /// The PE begins to compute.
  void resume_computing() const {
    if (conditions().compute != 0) computes_since_ = base::thread_cpu_ns();
  }

 private:
  /// A call of this endpoint. Between two of them the PE computes.
  class Call {
   public:
    explicit Call(const SimEndpoint& endpoint) : endpoint_(&endpoint) {
      if (endpoint.conditions().compute != 0) endpoint.charge_measured();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { endpoint_->resume_computing(); }

   private:
    const SimEndpoint* endpoint_;
  };

  /// Only the PE's own: all data for other PEs goes by frames, which can be delayed and reordered.
  std::span<std::byte> pool(std::size_t pe) override;
  std::span<std::byte> board(std::size_t pe) override;
  transport::SharedByProcess* shared_by_process() override {
    return &world_->processes_[id_ / conditions().pes_per_process];
  }

  const Conditions& conditions() const { return world_->options_.conditions; }
  bool refused_by_chance() {
    if (conditions().refuse == 0 || !world_->random_.chance(conditions().refuse)) return false;
    wakes_after_refusal_ = true;
    return true;
  }
  std::int64_t arrival_time(std::size_t target, std::size_t bytes);
  bool has_queue_space() const { return inbox_.size() < conditions().inbox_frames; }
  void require_no_open_frame(const char* call) const;
  void charge_measured() const;
  void post(std::size_t target, Transit transit);
  void invalidate_arrival();
  std::int64_t next_event() const;

  World* world_;
  World::SimPe* pe_;
  std::size_t id_;
  Memory memory_;
  std::vector<Transit> inbox_;  // heaps, earliest first
  std::vector<Returned> returned_;
  std::vector<std::int64_t> last_arrival_;  // of this PE's frames, by target: frames of a pair keep their order
  std::int64_t injector_free_at_ = 0;
  bool wakes_after_refusal_ = false;
  std::unique_ptr<std::byte, UnmapPool> pool_;
  Transit arrival_{};                      // the last arrival
  std::shared_ptr<EagerSlot> open_frame_;  // by try_begin_in_place()
  bool accepts_in_place_ = true;
  mutable std::int64_t computes_since_ = 0;  // on the thread's clock
};

struct World::SimPe {
  SimPe(World& world, std::size_t number) : id(number), endpoint(world, *this, number) {}

  std::size_t id;
  State state = State::ready;
  std::int64_t clock = 0;
  std::int64_t computed = 0;  // of it
  bool computing = false;     // charged for it, while its clock advances
  std::int64_t wakes_at = 0;  // where it sleeps
  std::uint64_t version = 0;
  double factor = 1;                    // how slow it is
  std::vector<Conditions::Stop> stops;  // those to come, the next one last
  SimEndpoint endpoint;
  std::unique_ptr<base::Fiber> fiber;
};

}  // namespace headway::sim
