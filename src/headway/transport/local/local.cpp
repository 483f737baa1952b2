// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <headway/transport/local/local.hpp>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace headway::local {
namespace {

// ThreadSanitizer watches one process. A frame with its owner in another process may visit one PE of this process,
// return, and visit another one. The owner orders these two visits, so ThreadSanitizer must be told of the order.
#if defined(__SANITIZE_THREAD__)
bool in_another_process(const Segment& segment, std::size_t pe, std::size_t owner) {
  const std::size_t pes_per_process = segment.header().pes_per_process;
  return pe / pes_per_process != owner / pes_per_process;
}
void before_giving_back(const Segment& segment, std::size_t pe, std::size_t owner) {
  if (in_another_process(segment, pe, owner)) __tsan_release(&segment.control(owner).returned);
}
void after_arrival(const Segment& segment, std::size_t pe, std::size_t owner) {
  if (in_another_process(segment, pe, owner)) __tsan_acquire(&segment.control(owner).returned);
}
// The same if a PE posts a frame of another PE of this process, and it returns from another process.
void before_posting(const Segment& segment, std::size_t pe, std::size_t owner) {
  if (pe != owner) __tsan_release(&segment.control(owner).returned);
}
#else
void before_giving_back(const Segment&, std::size_t, std::size_t) {}
void after_arrival(const Segment&, std::size_t, std::size_t) {}
void before_posting(const Segment&, std::size_t, std::size_t) {}
#endif

/// Bytes of each size with delayed reuse: twice the core's own cache, so that they have left it. 0 if the core's share
/// of the last-level cache is too small for them.
std::size_t delayed_bytes() {
  static const base::CacheSizes caches = base::cache_sizes();
  return 2 * caches.own <= caches.share ? 2 * caches.own : 0;
}

Fences fences_of(const Segment& segment) {
  return segment.header().sleepers_fence != 0 ? Fences::sleeper : Fences::both_sides;
}

}  // namespace

std::unique_ptr<transport::Endpoint> make_endpoint(Segment& segment, std::size_t pe,
                                                   transport::SharedByProcess* shared) {
  return std::make_unique<LocalEndpoint>(segment, pe, shared);
}

void reset(Segment& segment, std::size_t pe) {
  PeControl& control = segment.control(pe);
  control.inbox_tail.store(0, std::memory_order_relaxed);
  control.returned.store(Returns::end, std::memory_order_relaxed);
  control.sleeping.store(0, std::memory_order_relaxed);
  control.refuses_in_place.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < inbox_cells; ++i) segment.inbox(pe)[i].sequence.store(0, std::memory_order_relaxed);
}

LocalEndpoint::LocalEndpoint(Segment& segment, std::size_t pe, transport::SharedByProcess* shared)
    : transport::Endpoint({.id = pe, .size = segment.header().pes, .pes_per_process = segment.header().pes_per_process},
                          *this),
      segment_(&segment),
      shared_(shared),
      pe_(pe),
      first_pe_(segment.header().first_pe),
      arena_bytes_(segment.header().arena_bytes),
      arena_(segment.arena(pe), arena_bytes_, delayed_bytes()),
      inbox_(segment.inbox(pe)),
      returns_(segment.control(pe).returned),
      doorbell_(segment.control(pe).sleeping, fences_of(segment)) {
  if (fences_of(segment) == Fences::sleeper && !FutexSystem::join_fences()) base::throw_errno("membarrier");
  peers_.reserve(segment.header().pes);
  for (std::size_t p = 0; p < segment.header().pes; ++p) {
    PeControl& control = segment.control(p);
    peers_.push_back({InboxSender(segment.inbox(p), control.inbox_tail), segment.eager_slots(p),
                      Returns(control.returned), Doorbell(control.sleeping, fences_of(segment)), RemoteReader(),
                      RemoteReader()});
  }
}

transport::Frame* LocalEndpoint::try_claim(std::size_t frame_bytes, std::uint64_t tag) {
  std::byte* const block = arena_.try_allocate(frame_bytes, tag);
  if (block != nullptr) last_claim_reader_ = std::exchange(arena_.reader(block), no_reader);
  return reinterpret_cast<transport::Frame*>(block);
}

bool LocalEndpoint::should_write_past_caches(transport::Frame* claimed) {
  constexpr std::size_t bytes_min = 2048, large_bytes_min = std::size_t(64) << 10,
                        sampled = cache_line + RemoteReader::sampled_bytes;
  static_assert(sampled <= bytes_min);
  std::byte* const block = reinterpret_cast<std::byte*>(claimed);
  const bool came_past_caches = std::exchange(arena_.written_past_caches(block), false);
  arena_.reader(block) = asked;
  const std::size_t reader = last_claim_reader_ - 1, bytes = arena_.block_bytes(block);
  if (reader >= peers_.size() || reader == pe_ || bytes < bytes_min) return false;
  RemoteReader& lines = bytes < large_bytes_min ? peers_[reader].small_blocks : peers_[reader].large_blocks;
  // The header is still that of the frame that was read. Bytes that it did not fill were not read.
  if (lines.is_sample_due() && !came_past_caches && claimed->header.payload_bytes >= sampled) {
    lines.add_sample(RemoteReader::measure_ns_per_line(block));
  }
  return arena_.written_past_caches(block) = lines.choose_past_caches();
}

void LocalEndpoint::drop(transport::Frame* frame) {
  std::byte* const block = reinterpret_cast<std::byte*>(frame);
  arena_.reader(block) = no_reader;
  arena_.free(block);
}

void LocalEndpoint::fill_by_value(Cell& cell, transport::Frame& frame, const std::byte* tail_end) {
  const transport::FrameHeader& header = frame.header;
  base::copy_fixed<sizeof header>(reinterpret_cast<std::byte*>(&cell.header),
                                  reinterpret_cast<const std::byte*>(&header));
  base::copy_short<false, transport::by_value_bytes_most>(cell.bytes, frame.payload(), header.payload_bytes);
  if (header.tail_bytes != 0) [[unlikely]] {
    std::memcpy(cell.bytes + header.payload_bytes, tail_end - header.tail_bytes, header.tail_bytes);
  }
}

void LocalEndpoint::fill_by_reference(Cell& cell, transport::Frame& frame, const std::byte* tail_end) {
  cell.header = frame.header;
  cell.header.kind |= kind_by_reference;
  const Cell::Reference reference{segment_->offset(&frame), segment_->offset(tail_end)};
  std::memcpy(cell.bytes, &reference, sizeof reference);
}

/// Appends a cell that fill(cell) writes to the target's queue. False if the queue is full.
template <class Fill>
inline bool LocalEndpoint::push(std::size_t target, Fill fill) {
  if (target == pe_) {
    Cell* cell = loopback_.try_back();
    if (cell == nullptr) return false;
    fill(*cell);
    loopback_.push();
    return true;
  }
  Peer& peer = peers_[target];
  if (!peer.inbox.try_push(fill)) return false;
  peer.doorbell.ring();
  return true;
}

transport::Endpoint::Posted LocalEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                    const std::byte* tail_end, bool claimed) {
  const transport::FrameHeader& header = frame->header;
  // A frame with hops left may have to be held, in memory that the budget counts: it never goes by value.
  if (header.hops_left == 0 && header.payload_bytes + std::size_t(header.tail_bytes) <= sizeof(Cell::bytes)) {
    const bool pushed = push(target, [&](Cell& cell) { fill_by_value(cell, *frame, tail_end); });
    return pushed ? Posted::copied : Posted::refused;
  }
  if (!claimed) return Posted::refused;
  const bool is_own = owner_of(header) == pe_;  // read before the post, which lends the memory
  const bool pushed = push(target, [&](Cell& cell) {
    fill_by_reference(cell, *frame, tail_end);
    before_posting(*segment_, pe_, owner_of(cell.header));
  });
  if (!pushed) return Posted::refused;
  if (is_own) {
    std::uint32_t& reader = arena_.reader(reinterpret_cast<std::byte*>(frame));
    reader = reader == asked ? std::uint32_t(target) + 1 : no_reader;
  }
  return Posted::lent;
}

std::byte* LocalEndpoint::try_begin_in_place(std::size_t target) {
  Peer& peer = peers_[target];
  if (target == pe_ || peer.eager_slots == nullptr) return nullptr;
  if (segment_->control(target).refuses_in_place.load(std::memory_order_relaxed) != 0) return nullptr;
  reservation_ = peer.inbox.try_reserve();
  return reservation_.cell == nullptr ? nullptr : peer.eager_slots[eager_slot_of(reservation_.number())].bytes;
}

void LocalEndpoint::post_in_place(std::size_t target, const transport::FrameHeader& header) {
  transport::FrameHeader& written = reservation_.cell->header;
  base::copy_fixed<sizeof header>(reinterpret_cast<std::byte*>(&written), reinterpret_cast<const std::byte*>(&header));
  written.kind |= kind_in_eager_slot;
  InboxSender::publish(reservation_);
  peers_[target].doorbell.ring();
}

std::size_t LocalEndpoint::reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) {
  std::size_t count = 0;
  const std::uint64_t arena_at = segment_->offset(segment_->arena(pe_));
  auto check_returned = [&](std::uint64_t at) {
    if (!arena_.is_allocated(at - arena_at)) {
      throw FormatError(
          fmt::format("PE {} of this host got offset {} back, where none of the frames begins that it has "
                      "lent; its frame memory lies at [{}, {})",
                      pe_, at, arena_at, arena_at + arena_bytes_));
    }
    std::byte* const block = segment_->at(at);
    returned(context, arena_.block_bytes(block), arena_.tag(block));
    ++count;
    return block;
  };
  for (const std::byte* block : returned_to_self_) arena_.free(check_returned(segment_->offset(block)));
  returned_to_self_.clear();
  returns_.take_all([&](std::uint64_t at) {
    std::byte* const block = check_returned(at);  // before the first read: a damaged offset may lie anywhere
    const transport::Frame& frame = *reinterpret_cast<const transport::Frame*>(block);
    if (delays_reuse(frame.header))
      arena_.free_delayed(block);
    else
      arena_.free(block);
    return frame.link;
  });
  return count;
}

inline void LocalEndpoint::free_read_cell() {
  if (read_cell_ == ReadCell::inbox) inbox_.pop();
  if (read_cell_ == ReadCell::loopback) loopback_.pop();
  read_cell_ = ReadCell::none;
}

namespace {
[[noreturn]] void refuse(std::size_t pe, const transport::FrameHeader& header, const std::string& what) {
  throw transport::InvalidFrame(fmt::format("a frame of {} from PE {} to PE {} is not valid: {}",
                                            base::counted(header.count, "message"), header.source, pe, what));
}
}  // namespace

void LocalEndpoint::refuse_length(const transport::FrameHeader& header, std::size_t bytes_max) const {
  refuse(pe_, header,
         fmt::format("its payload of {} and tail of {} exceed the {} of their place",
                     base::counted(header.payload_bytes, "byte"), base::counted(header.tail_bytes, "byte"),
                     base::counted(bytes_max, "byte")));
}

inline void LocalEndpoint::check_by_value(const transport::FrameHeader& header, std::size_t bytes_max) const {
  if (header.payload_bytes + std::uint64_t(header.tail_bytes) > bytes_max) refuse_length(header, bytes_max);
}

void LocalEndpoint::refuse_reference(const transport::FrameHeader& header, const Cell::Reference& reference) const {
  const std::size_t owner = owner_of(header);
  if (owner >= peers_.size()) {
    refuse(pe_, header,
           fmt::format("its source is not among PEs {} to {} of this host", first_pe_, first_pe_ + peers_.size() - 1));
  }
  const std::uint64_t arena_at = segment_->offset(segment_->arena(owner));
  refuse(
      pe_, header,
      fmt::format(
          "it takes {} and lies at [{}, {}); it must lie in its sender's frame memory at [{}, {}), from a "
          "multiple of {} bytes on",
          base::counted(transport::frame_overhead + header.payload_bytes + std::uint64_t(header.tail_bytes), "byte"),
          reference.block, reference.tail_end, arena_at, arena_at + arena_bytes_, std::size_t(1) << Arena::order_min));
}

void LocalEndpoint::check_reference(const transport::FrameHeader& header, const Cell::Reference& reference) const {
  const std::size_t owner = owner_of(header);
  if (owner >= peers_.size()) refuse_reference(header, reference);
  // An offset below the arena wraps around to more than arena_bytes_.
  const std::uint64_t begin = reference.block - segment_->offset(segment_->arena(owner));
  const std::uint64_t end = reference.tail_end - segment_->offset(segment_->arena(owner));
  if (begin >= arena_bytes_ || end > arena_bytes_ || begin % (std::size_t(1) << Arena::order_min) != 0 || end < begin ||
      end - begin < transport::frame_overhead + header.payload_bytes + std::uint64_t(header.tail_bytes)) {
    refuse_reference(header, reference);
  }
}

/// The next cell of the two queues, which take turns. nullptr if both are empty.
inline Cell* LocalEndpoint::next_cell() {
  loopback_next_ = !loopback_next_;
  Cell* const own = loopback_.front();
  Cell* cell = own != nullptr && loopback_next_ ? nullptr : inbox_.front();
  read_cell_ = ReadCell::inbox;
  if (cell == nullptr) {
    cell = own;
    read_cell_ = own != nullptr ? ReadCell::loopback : ReadCell::none;
  }
  return cell;
}

void LocalEndpoint::refuse_eager_slot(const transport::FrameHeader& header) const {
  refuse(pe_, header,
         peers_[pe_].eager_slots == nullptr
             ? "it lies in an eager slot, and a PE with less than 16 MiB of frame memory has none"
             : "it lies in an eager slot, and a frame from this PE to itself has none");
}

void LocalEndpoint::take_from_eager_slot(transport::Arrival& arrival) {
  arrival.header.kind &= std::uint8_t(~kind_in_eager_slot);
  check_by_value(arrival.header, transport::in_place_bytes_most);
  const EagerSlot* const eager_slots = peers_[pe_].eager_slots;
  if (eager_slots == nullptr || read_cell_ != ReadCell::inbox) {
    refuse_eager_slot(arrival.header);
  }
  const std::byte* const at = eager_slots[eager_slot_of(inbox_.front_number())].bytes;
  arrival.payload = at;
  arrival.tail_end = at + arrival.header.payload_bytes + arrival.header.tail_bytes;
  arrival.owned = 0;
  __builtin_prefetch(arrival.payload);
  __builtin_prefetch(arrival.tail_end - 1);
}

bool LocalEndpoint::poll(transport::Arrival& arrival) {
  free_read_cell();
  const Cell* const cell = next_cell();
  if (cell == nullptr) return false;
  base::copy_fixed<sizeof arrival.header>(reinterpret_cast<std::byte*>(&arrival.header),
                                          reinterpret_cast<const std::byte*>(&cell->header));
  if ((arrival.header.kind & (kind_by_reference | kind_in_eager_slot)) == 0) [[likely]] {
    check_by_value(arrival.header, sizeof(Cell::bytes));
    // The handler will read the lines behind the first one.
    for (std::size_t at = cache_line - offsetof(Cell, bytes); at < arrival.header.payload_bytes; at += cache_line) {
      __builtin_prefetch(cell->bytes + at);
    }
    arrival.payload = cell->bytes;  // read in place; the next poll frees the cell
    arrival.tail_end = cell->bytes + arrival.header.payload_bytes + arrival.header.tail_bytes;
    arrival.owned = 0;
    return true;
  }
  if ((arrival.header.kind & kind_by_reference) == 0) {
    take_from_eager_slot(arrival);
    return true;
  }
  arrival.header.kind &= std::uint8_t(~kind_by_reference);
  Cell::Reference reference;
  std::memcpy(&reference, cell->bytes, sizeof reference);
  free_read_cell();
  check_reference(arrival.header, reference);
  after_arrival(*segment_, pe_, owner_of(arrival.header));
  arrival.payload = reinterpret_cast<transport::Frame*>(segment_->at(reference.block))->payload();
  arrival.tail_end = segment_->at(reference.tail_end);
  __builtin_prefetch(arrival.payload);
  __builtin_prefetch(arrival.tail_end - 1);
  arrival.owned = reference.block;
  return true;
}

void LocalEndpoint::release(const transport::Arrival& arrival) {
  if (arrival.owned == 0) return;
  const std::size_t owner = owner_of(arrival.header);
  if (owner == pe_) {
    returned_to_self_.push_back(segment_->at(arrival.owned));
    return;
  }
  before_giving_back(*segment_, pe_, owner);
  Peer& peer = peers_[owner];
  peer.returns.push(reinterpret_cast<transport::Frame*>(segment_->at(arrival.owned))->link, arrival.owned);
  peer.doorbell.ring();
}

void LocalEndpoint::sleep(std::int64_t ns_max) {
  sleep(ns_max, [] { return true; });
}

void LocalEndpoint::sleep(std::int64_t ns_max, const std::function<bool()>& others_quiet) {
  if (ns_max <= 0) return;
  free_read_cell();
  doorbell_.sleep(ns_max, [&] { return is_quiet() && others_quiet(); });
}

std::int64_t LocalEndpoint::now() const { return base::monotonic_ns(); }

}  // namespace headway::local
