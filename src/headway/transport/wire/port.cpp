// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/local.hpp>
#include <headway/transport/local/returns.hpp>
#include <headway/transport/wire/port.hpp>
#include <thread>
#include <utility>

namespace headway::wire {
namespace {

constexpr std::size_t credit_bytes_min = 64_KiB;

// Cookies of sends: the address of a claimed frame, or of a copy with one of these bits.
constexpr std::uint64_t is_slot = 1, is_heap = 2, cookie_kinds = 3;

CreditTaken::Terms terms_for(std::size_t credit_bytes) {
  const std::uint32_t limit = units_of(std::min<std::size_t>(credit_bytes, std::size_t(1) << 36));
  return {limit, std::max(limit / 4, 1u)};
}

bool is_control(const transport::FrameHeader& header) {
  return header.kind == std::uint8_t(transport::FrameKind::control);
}

}  // namespace

std::size_t credit_for(std::size_t budget_bytes, std::size_t pes) {
  return std::clamp(2 * budget_bytes / pes, credit_bytes_min, std::max(budget_bytes / 4, credit_bytes_min));
}

std::size_t posted_for(std::size_t processes) { return std::clamp<std::size_t>(processes, 2, 16); }

Port::Port(const PortOptions& options, local::Segment& segment, std::size_t first_in_segment)
    : options_(options),
      segment_(&segment),
      first_in_segment_(first_in_segment),
      own_pes_(std::min(options.pes_per_process, options.pes - options.process * options.pes_per_process)),
      terms_(terms_for(options.credit_bytes)),
      memory_(options.posted_bytes),
      inboxes_(own_pes_),
      sources_(options.processes),
      taken_(own_pes_ * options.pes),
      owed_(own_pes_ * options.pes) {
  for (std::size_t i = 0; i < options.posted; ++i) post_receive();
}

Port::~Port() {
  for (std::byte* slot : slots_) ::operator delete(slot, std::align_val_t(slot_bytes));
}

int Port::check(int result) const {
  if (result >= 0) return result;
  const headway_wire_functions& wire = *options_.functions;
  const std::size_t lost = wire.lost != nullptr ? wire.lost(options_.wire) : options_.processes;
  const std::string who =
      lost >= options_.processes
          ? ""
          : fmt::format("process {}{} is lost: ", lost, options_.hosts.empty() ? "" : " on " + options_.hosts[lost]);
  if (!who.empty()) has_lost_.store(true, std::memory_order_relaxed);
  throw SystemError(fmt::format("{}: {}{}", wire.name, who, wire.failure(options_.wire)));
}

void Port::post_receive() {
  Block* const block = memory_.to_post();
  check(options_.functions->receive(options_.wire, headway_wire_frames, 0, block->memory, block->capacity,
                                    reinterpret_cast<std::uintptr_t>(block)));
}

// --- sending

transport::Endpoint::Posted Port::try_post(std::size_t source, std::size_t target, transport::Frame* frame,
                                           const std::byte* tail_end, bool claimed) {
  const transport::FrameHeader& header = frame->header;
  const std::size_t bytes = bytes_of(header), hops = credit_class(header.hops_left);
  if (!claimed && bytes > slot_bytes) return transport::Endpoint::Posted::refused;
  const std::lock_guard<std::mutex> lock(mutex_);
  // Control messages are few and urgent: they need a free send, but no credit.
  if (sends_ >= (is_control(header) ? 2 : 1) * options_.sends_max) return transport::Endpoint::Posted::refused;
  if (!is_control(header)) {
    // Credit of the PE that has claimed the frame: the receiver returns it to the header's source.
    CreditTaken& taken = taken_[(header.source - first_pe()) * options_.pes + target];
    if (!taken.allows(terms_, units_of(bytes), hops)) return transport::Endpoint::Posted::refused;
    taken.take(units_of(bytes), hops);
  }
  ++counts_.frames_sent;
  counts_.bytes_sent += bytes;
  const std::size_t process = target / options_.pes_per_process;
  const std::uint64_t link = make_link(Kind::frame, target % options_.pes_per_process);
  if (!claimed) return send_copy(process, *frame, tail_end, link);

  // The frame is sent in any case now. The tail moves down behind the payload, so that no unused bytes travel.
  std::byte* const tail = frame->payload() + header.payload_bytes;
  if (header.tail_bytes != 0) std::memmove(tail, tail_end - header.tail_bytes, header.tail_bytes);
  frame->link = link;
  return send_in_place(process, *frame, bytes, header.source == first_pe() + source);
}

std::byte* Port::slot() {
  if (slots_.empty()) return static_cast<std::byte*>(::operator new(slot_bytes, std::align_val_t(slot_bytes)));
  std::byte* const slot = slots_.back();
  slots_.pop_back();
  return slot;
}

transport::Endpoint::Posted Port::send_copy(std::size_t process, const transport::Frame& frame,
                                            const std::byte* tail_end, std::uint64_t link) {
  std::byte message[slot_bytes];
  const transport::FrameHeader& header = frame.header;
  transport::Frame head{link, header};
  std::memcpy(message, &head, sizeof head);
  std::memcpy(message + transport::frame_overhead,
              reinterpret_cast<const std::byte*>(&frame) + transport::frame_overhead, header.payload_bytes);
  std::memcpy(message + transport::frame_overhead + header.payload_bytes, tail_end - header.tail_bytes,
              header.tail_bytes);
  send_raw(process, {message, bytes_of(header)});
  return transport::Endpoint::Posted::copied;
}

/// Sends a copy of the caller's bytes; sent() frees the copy.
void Port::send_raw(std::size_t process, std::span<const std::byte> bytes) {
  const bool short_one = bytes.size() <= slot_bytes;
  std::byte* const copy =
      short_one ? slot() : static_cast<std::byte*>(::operator new(bytes.size(), std::align_val_t(slot_bytes)));
  std::memcpy(copy, bytes.data(), bytes.size());
  const std::uint64_t cookie = reinterpret_cast<std::uintptr_t>(copy) | (short_one ? is_slot : is_heap);
  ++sends_;
  const int done = check(
      options_.functions->send(options_.wire, std::uint32_t(process), headway_wire_frames, copy, bytes.size(), cookie));
  if (done != 0) sent(cookie);
}

transport::Endpoint::Posted Port::send_in_place(std::size_t process, transport::Frame& frame, std::size_t bytes,
                                                bool is_own) {
  std::uint32_t channel = headway_wire_frames;
  if (bytes > options_.posted_bytes) {
    Announcement announcement{frame, bytes};
    announcement.head.link = make_link(Kind::announcement, target_of(frame.link));
    send_raw(process, std::as_bytes(std::span(&announcement, 1)));
    channel = headway_wire_large;
    ++counts_.announced;
  }
  ++sends_;
  const int done = check(options_.functions->send(options_.wire, std::uint32_t(process), channel, &frame, bytes,
                                                  reinterpret_cast<std::uintptr_t>(&frame)));
  if (done == 0) return transport::Endpoint::Posted::lent;
  --sends_;
  if (is_own) return transport::Endpoint::Posted::copied;
  return_to_owner(frame);
  return transport::Endpoint::Posted::lent;
}

/// Returns a frame to the PE that has claimed it, as a receiver of this host does.
void Port::return_to_owner(transport::Frame& frame) {
  const std::size_t owner = frame.header.source - segment_->header().first_pe;
  // The PE's own core has copied the frame, so its lines lie in no other cache.
  if (own_pes_ == 1 && !options_.driven) local::reuse_at_once(frame.header);
  local::PeControl& control = segment_->control(owner);
  local::Returns(control.returned).push(frame.link, segment_->offset(&frame));
  local::Doorbell(control.sleeping).ring();
}

void Port::sent(std::uint64_t cookie) {
  --sends_;
  auto* const at = reinterpret_cast<std::byte*>(cookie & ~cookie_kinds);
  if ((cookie & is_slot) != 0) {
    slots_.push_back(at);
  } else if ((cookie & is_heap) != 0) {
    ::operator delete(at, std::align_val_t(slot_bytes));
  } else {
    return_to_owner(*reinterpret_cast<transport::Frame*>(at));
  }
}

// --- progress

bool Port::progress() {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);  // not atomic: increments may be lost
  return move();
}

bool Port::move() {
  bool any = false;
  {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    if (failure_) std::rethrow_exception(failure_);
    const std::uint64_t before = counts_.frames_received;
    for (unsigned looks = 0; looks < progress_calls_max && counts_.frames_received == before && progress_locked();
         ++looks)
      any = true;
  }
  if (of_layers_count_.load(std::memory_order_seq_cst) != 0) any |= handle_services();
  return any;
}

/// One thread at a time handles service messages. It looks again when it is done, because another thread that found it
/// busy has left its messages to it.
bool Port::handle_services() {
  bool any = false;
  while (of_layers_count_.load(std::memory_order_seq_cst) != 0) {
    const std::unique_lock<std::mutex> lock(taking_, std::try_to_lock);
    if (!lock.owns_lock() || !take_) break;
    std::vector<Service> came;
    {
      const std::lock_guard<std::mutex> services_lock(mutex_);
      came.swap(of_layers_);
      of_layers_count_.store(0, std::memory_order_seq_cst);
    }
    for (const Service& service : came) take_(service.process, service.bytes);
    any = true;
  }
  return any;
}

void Port::set_take(Take take) {
  const std::lock_guard<std::mutex> lock(taking_);
  take_ = std::move(take);
}

void Port::wake_host() {
  for (std::size_t pe = 0; pe < segment_->header().pes; ++pe) local::Doorbell(segment_->control(pe).sleeping).ring();
}

void Port::fail(std::exception_ptr failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_ = std::move(failure);
}

bool Port::wait(std::int64_t ns_max) {
  if (options_.functions->wait == nullptr) return false;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && check(options_.functions->wait(options_.wire, std::uint64_t(ns_max))) != 0;
}

bool Port::progress_locked() {
  headway_wire_event events[events_max];
  const int count = check(options_.functions->progress(options_.wire, events, events_max));
  for (const headway_wire_event& event : std::span(events, std::size_t(count))) {
    if (event.kind == headway_wire_sent) {
      sent(event.cookie);
      continue;
    }
    if (event.kind == headway_wire_got) {
      end_read(event.cookie);
      continue;
    }
    Block* const block = reinterpret_cast<Block*>(event.cookie);
    block->bytes = event.bytes;
    block->process = event.process;
    block->complete = true;
    ++received_;
    if (event.channel == headway_wire_large) {
      --larges_;
      large_arrived(block);
    } else {
      post_receive();
      received(block);
    }
  }
  if (!unreported_.empty()) send_credits_due();
  return count != 0;
}

/// Handles a message in a posted block.
void Port::received(Block* block) {
  const Kind kind = block->bytes < sizeof(transport::Frame) ? Kind::frame : kind_of(block->frame().link);
  switch (kind) {
    case Kind::credit: take_credit(*block); return memory_.put(block);
    case Kind::service: {
      const std::span<const std::byte> bytes(block->memory + transport::frame_overhead,
                                             block->bytes - transport::frame_overhead);
      const bool is_of_layers = target_of(block->frame().link) == of_layers;
      (is_of_layers ? of_layers_ : services_)
          .push_back({block->process, std::vector<std::byte>(bytes.begin(), bytes.end())});
      if (is_of_layers) of_layers_count_.fetch_add(1, std::memory_order_seq_cst);
      return memory_.put(block);
    }
    case Kind::announcement: return announced(block);
    default: break;
  }
  block = memory_.to_lend(block);
  Source& source = sources_[block->process];
  if (source.waiting.empty()) return deliver(block);
  source.waiting.push_back(block);
}

void Port::announced(Block* block) {
  Announcement announcement{};
  const bool whole = block->bytes == sizeof announcement;
  std::memcpy(&announcement, block->memory, std::min(block->bytes, sizeof announcement));
  const std::uint32_t process = block->process;
  memory_.put(block);
  if (!whole || announcement.bytes != bytes_of(announcement.head.header) ||
      announcement.bytes <= options_.posted_bytes || announcement.bytes > base::budget_bytes_max) {
    throw transport::InvalidFrame(fmt::format(
        "process {} has announced a frame of {} to process {}; its header says {}, and allowed are {} to {}", process,
        base::counted(announcement.bytes, "byte"), options_.process, bytes_of(announcement.head.header),
        options_.posted_bytes + 1, base::budget_bytes_max));
  }
  Block* const large = memory_.of_size(announcement.bytes);
  sources_[process].waiting.push_back(large);
  ++larges_;
  check(options_.functions->receive(options_.wire, headway_wire_large, process, large->memory, announcement.bytes,
                                    reinterpret_cast<std::uintptr_t>(large)));
}

void Port::large_arrived(Block* block) {
  std::deque<Block*>& waiting = sources_[block->process].waiting;
  while (!waiting.empty() && waiting.front()->complete) {
    deliver(waiting.front());
    waiting.pop_front();
  }
}

/// Delivers invalid frames too: the PE that takes one throws InvalidFrame.
void Port::deliver(Block* block) {
  const std::size_t target = block->bytes < sizeof(transport::Frame) ? 0 : target_of(block->frame().link);
  const std::size_t pe = target < own_pes_ ? target : 0;
  Inbox& inbox = inboxes_[pe];
  inbox.blocks.push_back(block);
  inbox.count.fetch_add(1, std::memory_order_release);
  ++counts_.frames_received;
  local::Doorbell(segment_->control(first_in_segment_ + pe).sleeping).ring();
}

std::vector<std::function<void()>> Port::take_arrived(std::size_t pe, std::deque<Block*>& blocks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Inbox& inbox = inboxes_[pe];
  blocks.insert(blocks.end(), inbox.blocks.begin(), inbox.blocks.end());
  inbox.blocks.clear();
  inbox.count.store(0, std::memory_order_relaxed);
  return std::exchange(inbox.reads, {});
}

// --- memory of other processes

transport::ExposedMemory* Port::expose(std::span<const std::byte> memory, std::vector<std::byte>& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  headway_wire_region* region = nullptr;
  std::size_t key_bytes = 0;
  auto* const at = const_cast<std::byte*>(memory.data());
  key.resize(256);  // over TCP a key takes 51, and more with more transports
  const headway_wire_functions& wire = *options_.functions;
  for (int tries = 0; tries < 2; ++tries) {
    if (wire.expose(options_.wire, at, memory.size(), &region, key.data(), key.size(), &key_bytes) == 0) {
      key.resize(key_bytes);
      return reinterpret_cast<transport::ExposedMemory*>(region);
    }
    if (key_bytes <= key.size()) break;
    key.resize(key_bytes);
  }
  return nullptr;
}

void Port::withdraw(transport::ExposedMemory* exposed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check(options_.functions->withdraw(options_.wire, reinterpret_cast<headway_wire_region*>(exposed)));
}

bool Port::read(std::size_t reader, std::size_t pe, std::span<const std::byte> key, std::byte* to, std::size_t bytes,
                std::function<void()> done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const headway_wire_functions& wire = *options_.functions;
  headway_wire_remote* remote = nullptr;
  const auto process = std::uint32_t(pe / options_.pes_per_process);
  if (wire.reach(options_.wire, process, key.data(), key.size(), &remote) != 0) return false;
  const std::uint64_t cookie = next_read_++;
  reads_.emplace(cookie, Read{reader, remote, std::move(done)});
  ++counts_.reads;
  if (check(wire.get(options_.wire, remote, 0, to, bytes, cookie)) != 0) end_read(cookie);
  return true;
}

void Port::end_read(std::uint64_t cookie) {
  const auto found = reads_.find(cookie);
  Read& read = found->second;
  Inbox& inbox = inboxes_[read.reader];
  inbox.reads.push_back(std::move(read.done));
  inbox.count.fetch_add(1, std::memory_order_release);
  local::Doorbell(segment_->control(first_in_segment_ + read.reader).sleeping).ring();
  check(options_.functions->forget(options_.wire, read.remote));
  reads_.erase(found);
}

// --- credit

void Port::release(std::size_t pe, Block* block) {
  const transport::FrameHeader header = block->frame().header;
  const std::size_t units = units_of(block->bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.give_back(block);
  if (is_control(header)) return;
  CreditOwed& owed = owed_[pe * options_.pes + header.source];
  const bool was_due = owed.due(terms_);
  owed.release(std::uint32_t(units), credit_class(header.hops_left));
  if (!owed.due(terms_) || was_due) return;
  unreported_.push_back({pe, header.source});
  send_credits_due();
}

void Port::send_credits_due() {
  while (!unreported_.empty() && sends_ < 2 * options_.sends_max && !closing_) {
    const Owed owed = unreported_.back();
    unreported_.pop_back();
    send_credit(owed.pe, owed.source);
  }
}

void Port::send_credit(std::size_t pe, std::size_t source) {
  CreditMessage message{};
  message.head.link = make_link(Kind::credit, source % options_.pes_per_process);
  message.head.header.source = std::uint16_t(first_pe() + pe);
  message.head.header.payload_bytes = sizeof message.released;
  message.released = owed_[pe * options_.pes + source].report();
  ++counts_.credits_sent;
  send_raw(source / options_.pes_per_process, std::as_bytes(std::span(&message, 1)));
}

void Port::take_credit(const Block& block) {
  CreditMessage message{};
  const bool whole = block.bytes == sizeof message;
  std::memcpy(&message, block.memory, std::min(block.bytes, sizeof message));
  const std::size_t pe = target_of(message.head.link), from = message.head.header.source;
  if (!whole || pe >= own_pes_ || from / options_.pes_per_process != block.process || from >= options_.pes) {
    throw transport::InvalidFrame(fmt::format(
        "process {} has released frames of process {} in a message of {} (expected {}) from PE {} to PE {} of "
        "this process (of {})",
        block.process, options_.process, base::counted(block.bytes, "byte"), sizeof message, from, pe, own_pes_));
  }
  taken_[pe * options_.pes + from].set_released(message.released);
}

// --- services, and the end

void Port::send_service(std::size_t process, std::span<const std::byte> bytes, std::size_t whose) {
  if (bytes.size() > service_bytes_max()) {
    throw UsageError(fmt::format("a service message has {}; posted receives allow at most {}",
                                 base::counted(bytes.size(), "byte"), service_bytes_max()));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (process == options_.process) {
    services_.push_back({process, std::vector<std::byte>(bytes.begin(), bytes.end())});
    return;
  }
  transport::Frame head{make_link(Kind::service, whose), {}};
  std::vector<std::byte> message(sizeof head + bytes.size());
  std::memcpy(message.data(), &head, sizeof head);
  std::memcpy(message.data() + sizeof head, bytes.data(), bytes.size());
  send_raw(process, message);
}

std::vector<Port::Service> Port::take_services() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(services_, {});
}

void Port::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closing_ = true;
  std::uint64_t arriving = 0;
  for (bool settled = false; !settled || received_ < arriving || sends_ != 0 || larges_ != 0;) {
    for (std::size_t pe = 0; pe < own_pes_; ++pe) {
      for (Block* block : std::exchange(inboxes_[pe].blocks, {})) memory_.give_back(block);
    }
    if (progress_locked()) continue;
    if (!settled) settled = check(options_.functions->settle(options_.wire, &arriving)) != 0;
    std::this_thread::yield();
  }
  check(options_.functions->leave(options_.wire));
}

}  // namespace headway::wire
