// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <headway/base/error.hpp>
#include <headway/transport/sim/endpoint.hpp>
#include <utility>

namespace headway::sim {
namespace {

// Costs of calls that neither send nor take a frame.
constexpr std::int64_t poll_ns = 20;
constexpr std::int64_t claim_ns = 10;
constexpr std::int64_t read_clock_ns = 5;

// A random refusal stands for a lack of resources that ends after this time; then a sleeping PE wakes.
constexpr std::int64_t refusal_ns = 100'000;

template <class T>
void push_heap(std::vector<T>& heap, T value) {
  heap.push_back(std::move(value));
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <class T>
T pop_heap(std::vector<T>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  T value = std::move(heap.back());
  heap.pop_back();
  return value;
}

}  // namespace

SimEndpoint::SimEndpoint(World& world, World::SimPe& pe, std::size_t id)
    : transport::Endpoint({.id = id,
                           .size = world.options_.pes,
                           .pes_per_process = world.options_.conditions.pes_per_process,
                           .host_firsts = world.host_firsts_},
                          *this),
      world_(&world),
      pe_(&pe),
      id_(id),
      memory_(id, world.options_.frame_memory_bytes) {}

transport::Frame* SimEndpoint::try_claim(std::size_t frame_bytes, std::uint64_t tag) {
  require_no_open_frame("try_claim()");
  const Call call(*this);
  world_->advance(*pe_, claim_ns);
  return refused_by_chance() ? nullptr : memory_.try_claim(frame_bytes, tag);
}

/// Time of arrival of a frame that is posted now. The injector sends one frame after the other.
std::int64_t SimEndpoint::arrival_time(std::size_t target, std::size_t bytes) {
  const Conditions& c = conditions();
  const std::int64_t departure = pe_->clock + std::int64_t(double(c.overhead_ns) * pe_->factor);
  if (target == id_) return departure;
  const std::int64_t start = std::max(departure, injector_free_at_);
  const auto through_ns = std::int64_t(c.gap_per_byte_ns * double(bytes));
  injector_free_at_ = start + std::max(c.gap_ns, through_ns);
  std::int64_t at = start + through_ns + c.latency_ns;
  if (c.delay_ns_max != 0) at += std::int64_t(world_->random_.size(0, std::size_t(c.delay_ns_max)));
  return at;
}

transport::Endpoint::Posted SimEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                  const std::byte* tail_end, bool claimed) {
  require_no_open_frame("try_post()");
  const Call call(*this);
  const transport::FrameHeader& header = frame->header;
  const std::size_t bytes = header.payload_bytes + std::size_t(header.tail_bytes);
  const bool by_value = header.hops_left == 0 && bytes <= conditions().by_value_bytes_max;
  if (!by_value && !claimed) return Posted::refused;
  if (refused_by_chance()) {
    world_->advance(*pe_, claim_ns);
    return Posted::refused;
  }
  if (!world_->pes_[target]->endpoint.has_queue_space()) {
    world_->advance(*pe_, claim_ns);
    return Posted::refused;
  }
  if (header.source >= size() || header.source / conditions().pes_per_process != id_ / conditions().pes_per_process) {
    throw ContractViolation(fmt::format("post by PE {} as PE {}", id_, header.source));
  }

  Transit transit{0, ++world_->sequence_, nullptr, tail_end, {}, header, nullptr};
  if (by_value) {
    std::memcpy(transit.bytes, frame->payload(), header.payload_bytes);
    std::memcpy(transit.bytes + header.payload_bytes, tail_end - header.tail_bytes, header.tail_bytes);
  } else {
    transit.block = &world_->pes_[header.source]->endpoint.memory_.post(frame, tail_end);
  }
  post(target, std::move(transit));
  return by_value ? Posted::copied : Posted::lent;
}

void SimEndpoint::post(std::size_t target, Transit transit) {
  SimEndpoint& to = world_->pes_[target]->endpoint;
  const std::size_t bytes = transit.header.payload_bytes + std::size_t(transit.header.tail_bytes);
  ++world_->frames_;
  if (last_arrival_.empty()) last_arrival_.resize(world_->size());
  transit.at = std::max(last_arrival_[target], arrival_time(target, sizeof(transport::FrameHeader) + bytes));
  const std::int64_t at = last_arrival_[target] = transit.at;
  push_heap(to.inbox_, std::move(transit));
  world_->wake(*to.pe_, at);
  world_->advance(*pe_, conditions().overhead_ns);
}

std::byte* SimEndpoint::try_begin_in_place(std::size_t target) {
  require_no_open_frame("try_begin_in_place()");
  const Call call(*this);
  const double in_place = conditions().in_place;
  if (in_place == 0 || (in_place < 1 && !world_->random_.chance(in_place))) return nullptr;
  const SimEndpoint& to = world_->pes_[target]->endpoint;
  if (target == id_ || !host_map().own_host().contains(target) || !to.accepts_in_place_ || refused_by_chance() ||
      !to.has_queue_space()) {
    world_->advance(*pe_, claim_ns);
    return nullptr;
  }
  open_frame_ = std::make_shared<EagerSlot>();
  std::memset(open_frame_->bytes, 0xCC, sizeof open_frame_->bytes);
  return open_frame_->bytes;
}

void SimEndpoint::post_in_place(std::size_t target, const transport::FrameHeader& header) {
  if (open_frame_ == nullptr) throw ContractViolation("post_in_place() of nothing that was begun");
  const Call call(*this);
  if (header.hops_left != 0 || header.tail_bytes != 0 || header.payload_bytes > transport::in_place_bytes_most) {
    throw ContractViolation("post_in_place() of a frame with hops left, a tail, or too much");
  }
  post(target, {0, ++world_->sequence_, nullptr, nullptr, {}, header, std::exchange(open_frame_, nullptr)});
}

void SimEndpoint::require_no_open_frame(const char* call) const {
  if (open_frame_ != nullptr)
    throw ContractViolation(fmt::format("{} before what was begun in place was posted", call));
}

/// Overwrites the last arrival by value, which was valid until now.
void SimEndpoint::invalidate_arrival() {
  std::memset(arrival_.bytes, 0xDD, sizeof arrival_.bytes);
  if (arrival_.eager_slot == nullptr) return;
  std::memset(arrival_.eager_slot->bytes, 0xDD, sizeof arrival_.eager_slot->bytes);
  arrival_.eager_slot.reset();
}

std::size_t SimEndpoint::reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) {
  require_no_open_frame("reclaim()");
  const Call call(*this);
  std::size_t count = 0;
  for (; !returned_.empty() && returned_.front().at <= pe_->clock; ++count) {
    Memory::Block& block = *pop_heap(returned_).block;
    const std::size_t bytes = block.block_bytes;
    const std::uint64_t tag = block.tag;
    memory_.reclaim(block);
    returned(context, bytes, tag);
  }
  return count;
}

bool SimEndpoint::poll(transport::Arrival& arrival) {
  require_no_open_frame("poll()");
  const Call call(*this);
  invalidate_arrival();
  world_->advance(*pe_, poll_ns);
  if (inbox_.empty() || inbox_.front().at > pe_->clock) return false;
  arrival_ = pop_heap(inbox_);
  world_->advance(*pe_, conditions().overhead_ns);
  arrival.header = arrival_.header;
  if (arrival_.block == nullptr) {
    arrival.payload = arrival_.eager_slot != nullptr ? arrival_.eager_slot->bytes : arrival_.bytes;
    arrival.tail_end = arrival.payload + arrival_.header.payload_bytes + arrival_.header.tail_bytes;
    arrival.owned = 0;
  } else {
    arrival.payload = arrival_.block->frame()->payload();
    arrival.tail_end = arrival_.tail_end;
    arrival.owned = reinterpret_cast<std::uintptr_t>(arrival_.block);
    Memory::lend(*arrival_.block, arrival.header, arrival.tail_end);
  }
  return true;
}

void SimEndpoint::release(const transport::Arrival& arrival) {
  require_no_open_frame("release()");
  const Call call(*this);
  if (arrival.owned == 0) return;
  auto* block = reinterpret_cast<Memory::Block*>(arrival.owned);
  Memory::give_back(*block, arrival.header, arrival.tail_end);
  SimEndpoint& owner = world_->pes_[block->pe]->endpoint;
  const std::int64_t at = pe_->clock + (block->pe == id_ ? 0 : conditions().latency_ns);
  push_heap(owner.returned_, {at, ++world_->sequence_, block});
  world_->wake(*owner.pe_, at);
}

std::int64_t SimEndpoint::next_event() const {
  return std::min(inbox_.empty() ? forever : inbox_.front().at, returned_.empty() ? forever : returned_.front().at);
}

void SimEndpoint::sleep(std::int64_t ns_max) {
  if (ns_max <= 0) return;
  require_no_open_frame("sleep()");
  const Call call(*this);
  invalidate_arrival();
  if (std::exchange(wakes_after_refusal_, false)) ns_max = std::min(ns_max, refusal_ns);
  const std::int64_t until = pe_->clock + std::min(ns_max, forever - pe_->clock);
  const std::int64_t at = std::min(until, next_event());
  if (at <= pe_->clock) return world_->advance(*pe_, poll_ns);
  pe_->state = World::State::sleeping;
  pe_->wakes_at = at;
  world_->schedule(*pe_, at);
  base::Fiber::suspend();
  world_->advance(*pe_, poll_ns);
}

std::int64_t SimEndpoint::now() const {
  require_no_open_frame("now()");
  const Call call(*this);
  world_->advance(*pe_, read_clock_ns);
  return pe_->clock;
}

void SimEndpoint::charge(std::int64_t ns) {
  require_no_open_frame("charge()");
  const Call call(*this);
  world_->compute(*pe_, double(ns));
}

std::optional<transport::SimulatedClock::Times> SimEndpoint::times() const { return Times{pe_->clock, pe_->computed}; }

/// Charges the time that the PE has computed since its last call.
void SimEndpoint::charge_measured() const {
  const std::int64_t ns = base::thread_cpu_ns() - computes_since_ - world_->read_clock_ns_;
  if (ns > 0) world_->compute(*pe_, double(ns) * conditions().compute);
}

std::span<std::byte> SimEndpoint::pool(std::size_t pe) {
  if (pe != id_) return {};
  if (!pool_) {
    void* at = mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) base::throw_errno("mmap of a simulated PE's pool");
    pool_.reset(static_cast<std::byte*>(at));
  }
  return {pool_.get(), pool_bytes};
}

std::span<std::byte> SimEndpoint::board(std::size_t pe) {
  const WorldOptions& options = world_->options_;
  if (options.board) return options.board(pe);
  return std::span(world_->boards_).subspan(pe * options.board_bytes, options.board_bytes);
}

}  // namespace headway::sim
