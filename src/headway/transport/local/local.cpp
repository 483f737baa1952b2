#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/transport/local/local.hpp>

namespace headway::local {
namespace {

// Frames in the stack of returned ones are named by their offset in the segment; 0 is the segment's own header.
constexpr std::uint64_t stack_end = 0;

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

/// After a store that the other side must see: either it sees the store before it sleeps, or we see that it sleeps.
void wake_if_asleep(PeControl& control) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (control.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]] wake(control);
}

}  // namespace

void wake(PeControl& control) {
  if (control.sleeping.exchange(0, std::memory_order_relaxed) != 0) futex(control.sleeping, FUTEX_WAKE, 1, nullptr);
}

std::unique_ptr<Endpoint> make_endpoint(Segment& segment, std::size_t pe) {
  return std::make_unique<LocalEndpoint>(segment, pe);
}

void reset(Segment& segment, std::size_t pe) {
  PeControl& control = segment.control(pe);
  control.inbox_tail.store(0, std::memory_order_relaxed);
  control.returned.store(stack_end, std::memory_order_relaxed);
  control.sleeping.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < inbox_cells; ++i) segment.inbox(pe)[i].sequence.store(0, std::memory_order_relaxed);
  std::memset(segment.board(pe).data(), 0, segment.board(pe).size());
}

LocalEndpoint::LocalEndpoint(Segment& segment, std::size_t pe)
    : segment_(&segment),
      pe_(pe),
      control_(&segment.control(pe)),
      arena_(segment.arena(pe), segment.header().arena_bytes),
      inbox_(segment.inbox(pe)) {
  peers_.reserve(segment.header().pes);
  for (std::size_t p = 0; p < segment.header().pes; ++p) {
    PeControl& control = segment.control(p);
    peers_.push_back({InboxSender(segment.inbox(p), control.inbox_tail), &control});
  }
}

Frame* LocalEndpoint::try_claim(std::size_t frame_bytes, std::uint64_t tag) {
  return reinterpret_cast<Frame*>(arena_.try_allocate(frame_bytes, tag));
}

void LocalEndpoint::drop(Frame* frame) { arena_.free(reinterpret_cast<std::byte*>(frame)); }

void LocalEndpoint::fill(Cell& cell, Frame* frame, const std::byte* tail_end, bool by_value) {
  const FrameHeader& header = frame->header;
  cell.header = header;
  if (by_value) {
    std::memcpy(cell.bytes, frame->payload(), header.payload_bytes);
    std::memcpy(cell.bytes + header.payload_bytes, tail_end - header.tail_bytes, header.tail_bytes);
  } else {
    cell.header.kind |= kind_by_reference;
    const Cell::Reference reference{segment_->offset(frame), segment_->offset(tail_end)};
    std::memcpy(cell.bytes, &reference, sizeof reference);
  }
}

Endpoint::Posted LocalEndpoint::try_post(std::size_t target, Frame* frame, const std::byte* tail_end, bool claimed) {
  const FrameHeader& header = frame->header;
  // What may have to be held for a further hop needs memory that the budget counts, so it never goes by value.
  const bool by_value =
      header.hops_left == 0 && header.payload_bytes + std::size_t(header.tail_bytes) <= sizeof(Cell::bytes);
  if (!by_value && !claimed) return Posted::refused;
  if (target == pe_) {
    Cell* cell = loopback_.try_back();
    if (cell == nullptr) return Posted::refused;
    fill(*cell, frame, tail_end, by_value);
    loopback_.push();
  } else {
    Peer& peer = peers_[target];
    if (!peer.inbox.try_push([&](Cell& cell) { fill(cell, frame, tail_end, by_value); })) return Posted::refused;
    wake_if_asleep(*peer.control);
  }
  return by_value ? Posted::copied : Posted::lent;
}

std::size_t LocalEndpoint::reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) {
  std::size_t count = 0;
  auto take = [&](std::byte* block) {
    returned(context, arena_.block_bytes(block), arena_.tag(block));
    arena_.free(block);
    ++count;
  };
  for (std::byte* block : returned_to_self_) take(block);
  returned_to_self_.clear();
  if (control_->returned.load(std::memory_order_relaxed) == stack_end) return count;
  // acquire: the receiver's reads of these frames are over
  for (std::uint64_t at = control_->returned.exchange(stack_end, std::memory_order_acquire); at != stack_end;) {
    Frame* frame = reinterpret_cast<Frame*>(segment_->at(at));
    at = frame->link;
    take(reinterpret_cast<std::byte*>(frame));
  }
  return count;
}

void LocalEndpoint::let_go() {
  if (holds_ == Holds::inbox) inbox_.pop();
  if (holds_ == Holds::loopback) loopback_.pop();
  holds_ = Holds::nothing;
}

bool LocalEndpoint::poll(Arrival& arrival) {
  let_go();
  loopback_next_ = !loopback_next_;
  bool own = loopback_next_;
  Cell* cell = own ? loopback_.front() : inbox_.front();
  if (cell == nullptr) {
    own = !own;
    cell = own ? loopback_.front() : inbox_.front();
    if (cell == nullptr) return false;
  }
  holds_ = own ? Holds::loopback : Holds::inbox;
  arrival.header = cell->header;
  if ((cell->header.kind & kind_by_reference) == 0) {
    arrival.payload = cell->bytes;  // read in place; the next poll lets go of it
    arrival.tail_end = cell->bytes + cell->header.payload_bytes + cell->header.tail_bytes;
    arrival.owned = 0;
    return true;
  }
  arrival.header.kind &= std::uint8_t(~kind_by_reference);
  Cell::Reference reference;
  std::memcpy(&reference, cell->bytes, sizeof reference);
  let_go();
  arrival.payload = reinterpret_cast<Frame*>(segment_->at(reference.block))->payload();
  arrival.tail_end = segment_->at(reference.tail_end);
  arrival.owned = reference.block;
  return true;
}

void LocalEndpoint::release(const Arrival& arrival) {
  if (arrival.owned == 0) return;
  if (arrival.header.source == pe_) {
    returned_to_self_.push_back(segment_->at(arrival.owned));
    return;
  }
  PeControl& owner = *peers_[arrival.header.source].control;
  Frame* frame = reinterpret_cast<Frame*>(segment_->at(arrival.owned));
  std::uint64_t head = owner.returned.load(std::memory_order_relaxed);
  do {
    frame->link = head;
  } while (!owner.returned.compare_exchange_weak(head, arrival.owned, std::memory_order_release,
                                                 std::memory_order_relaxed));
  wake_if_asleep(owner);
}

void LocalEndpoint::sleep(std::int64_t ns_max) {
  if (ns_max <= 0) return;
  control_->sleeping.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with wake_if_asleep
  let_go();
  if (inbox_.front() == nullptr && loopback_.front() == nullptr && returned_to_self_.empty() &&
      control_->returned.load(std::memory_order_relaxed) == stack_end) {
    const timespec timeout{ns_max / 1'000'000'000, ns_max % 1'000'000'000};
    futex(control_->sleeping, FUTEX_WAIT, 1, &timeout);
  }
  control_->sleeping.store(0, std::memory_order_relaxed);
}

std::int64_t LocalEndpoint::now() const { return monotonic_ns(); }

}  // namespace headway::local
