// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/sim/world.hpp>
#include <utility>

namespace headway::sim {
namespace {

// Costs of calls that neither send nor take a frame.
constexpr std::int64_t poll_ns = 20;
constexpr std::int64_t claim_ns = 10;
constexpr std::int64_t read_clock_ns = 5;

// A random refusal stands for a lack of resources that ends after this time; then a sleeping PE wakes.
constexpr std::int64_t refusal_ns = 100'000;

constexpr std::size_t pool_bytes = std::size_t(1) << 32;
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

/// The endpoint of one simulated PE. Endpoints of other PEs also change its inbox and returned frames.
class SimEndpoint final : public transport::Endpoint, private transport::SharedMemory {
 public:
  SimEndpoint(World& world, World::SimPe& pe, std::size_t id);

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  bool should_write_past_caches(transport::Frame*) override {
    return conditions().past_caches != 0 && world_->random_.chance(conditions().past_caches);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return Memory::block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override {
    require_no_open_frame("drop()");
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

  const Memory& memory() const { return memory_; }

 private:
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
};

struct World::SimPe {
  SimPe(World& world, std::size_t number) : id(number), endpoint(world, *this, number) {}

  std::size_t id;
  State state = State::ready;
  std::int64_t clock = 0;
  std::int64_t wakes_at = 0;  // where it sleeps
  std::uint64_t version = 0;
  double factor = 1;                    // how slow it is
  std::vector<Conditions::Stop> stops;  // those to come, the next one last
  SimEndpoint endpoint;
  std::unique_ptr<base::Fiber> fiber;
};

// --- endpoint

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
  world_->advance(*pe_, read_clock_ns);
  return pe_->clock;
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

// --- world

World::World(WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      processes_(options_.pes),
      host_firsts_(options_.conditions.host_firsts(options_.pes)) {
  if (!options_.board) boards_.resize(options_.pes * options_.board_bytes);
  for (std::size_t pe = 0; pe < options_.pes; ++pe) pes_.push_back(std::make_unique<SimPe>(*this, pe));
  for (const Conditions::Slow& slow : options_.conditions.slow) pes_[slow.pe]->factor *= slow.factor;
  for (const Conditions::Stop& stop : options_.conditions.stops) pes_[stop.pe]->stops.push_back(stop);
  for (auto& pe : pes_) std::ranges::sort(pe->stops, std::greater<>(), &Conditions::Stop::at_ns);
}

World::~World() = default;

transport::Endpoint& World::endpoint(std::size_t pe) { return pes_[pe]->endpoint; }

void World::schedule(SimPe& pe, std::int64_t at) {
  turns_.push({at, std::uint32_t(random_.next()), std::uint32_t(pe.id), ++pe.version});
}

/// An event at that time wakes the PE if it sleeps longer.
void World::wake(SimPe& pe, std::int64_t at) {
  if (pe.state != State::sleeping || at >= pe.wakes_at) return;
  pe.wakes_at = at;
  schedule(pe, at);
  horizon_ = std::min(horizon_, at);
}

void World::suspend(SimPe& pe) {
  schedule(pe, pe.clock);
  base::Fiber::suspend();
}

void World::pass_time(std::size_t pe, std::int64_t ns) { advance_clock(*pes_[pe], ns); }

/// The running PE makes a call that takes this time on a PE without faults.
void World::advance(SimPe& pe, std::int64_t ns) {
  double cost = double(ns) * pe.factor;
  if (options_.conditions.jitter != 0) cost *= 1 + options_.conditions.jitter * random_.fraction();
  advance_clock(pe, std::int64_t(cost));
}

/// Advances the running PE's clock, and lets PEs with an earlier clock run.
void World::advance_clock(SimPe& pe, std::int64_t ns) {
  pe.clock += ns;
  while (!pe.stops.empty() && pe.clock >= pe.stops.back().at_ns) {
    const Conditions::Stop stop = pe.stops.back();
    pe.stops.pop_back();
    if (stop.for_ns == forever) {
      pe.state = State::stopped;
      base::Fiber::suspend();  // does not return
    }
    pe.clock += stop.for_ns;
  }
  if (pe.clock > horizon_) suspend(pe);
}

void World::drop_void_turns() {
  while (!turns_.empty() && turns_.top().version != pes_[turns_.top().pe]->version) turns_.pop();
}

std::int64_t World::next_turn() {
  drop_void_turns();
  return turns_.empty() ? forever : turns_.top().at;
}

World::End World::run(const std::function<void(std::size_t)>& body, std::int64_t watch_ns,
                      const std::function<bool()>& watch) {
  for (auto& pe : pes_) {
    pe->fiber = std::make_unique<base::Fiber>([&body, id = pe->id] { body(id); }, options_.stack_bytes);
    schedule(*pe, 0);
  }
  running_ = pes_.size();
  std::int64_t watch_at = watch_ns;
  while (running_ != 0) {
    if (next_turn() == forever) return End::stuck;
    const Turn turn = turns_.top();
    turns_.pop();
    if (turn.at >= watch_at) {
      if (!watch()) return End::given_up;
      watch_at = turn.at + watch_ns;
    }
    SimPe& pe = *pes_[turn.pe];
    pe.state = State::ready;
    pe.clock = std::max(pe.clock, turn.at);
    horizon_ = next_turn();
    ++switches_;
    pe.fiber->resume();
    now_ = std::max(now_, pe.clock);
    if (stopped_) return End::given_up;
    if (pe.fiber->done()) {
      pe.state = State::done;
      --running_;
    }
  }
  return End::finished;
}

bool World::is_stopped(std::size_t pe) const { return pes_[pe]->state == State::stopped; }

std::size_t World::claimed_bytes_peak(std::size_t pe) const { return pes_[pe]->endpoint.memory().bytes_peak(); }

std::string World::missing() const {
  std::string text;
  for (const auto& pe : pes_) {
    const std::string missing = pe->endpoint.memory().missing();
    if (!missing.empty()) text += (text.empty() ? "" : "; ") + missing;
  }
  return text;
}

}  // namespace headway::sim
