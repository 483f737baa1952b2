// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/defaults.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/type_text.hpp>

namespace headway::aggregate {
namespace {

// First and smallest size of buffers that adapt.
constexpr std::size_t first_buffer_bytes = 4_KiB, least_buffer_bytes = 1_KiB;
// The largest frames of messages sent alone, and of parts, are shares of the budget, up to SizeConstants.
constexpr std::size_t alone_share = 4, alone_share_between_hosts = 16, part_share = 16;

std::uint16_t hash16(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return std::uint16_t(hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48);
}

}  // namespace

Core::Core(Pe& pe, const AggregatorOptions& options, MessageShape shape)
    : engine_(&pe.engine()),
      process_first_(engine_->id() - engine_->id() % engine_->endpoint().host_map().pes_per_process),
      process_pes_(engine_->endpoint().host_map().pes_per_process),
      host_(engine_->endpoint().host_map().own_host()),
      shape_(std::move(shape)),
      name_(options.name),
      options_(options_possible(resolve(options, {.pes = engine_->size(),
                                                  .pes_per_process = process_pes_,
                                                  .hosts = engine_->endpoint().host_map().host_firsts,
                                                  .budget_bytes = engine_->store().budget_bytes(),
                                                  .message_bytes = shape_.fixed_bytes,
                                                  .costs = engine_->endpoint().costs(),
                                                  .costs_within_host = engine_->endpoint().costs_within_host(),
                                                  .settings = engine_->aggregation_settings()}))),
      route_(engine_->id(), engine_->size(), options_.topology, process_pes_,
             engine_->endpoint().host_map().host_firsts),
      direct_(options_.topology.dimensions == 0),
      idle_flush_(options_.flush_when_idle),
      adapts_sizes_(options.buffer_bytes == derived_bytes && !engine_->aggregation_settings().buffer_bytes),
      // a single message gains nothing from a buffer
      capacity_wanted_(options.cutoff == derived_fraction && !engine_->aggregation_settings().cutoff ? 2 : 1),
      timeout_ns_(options_.timeout.count() > am::never / 2 ? am::never : options_.timeout.count()),  // centuries
      reassembly_(*engine_, further_copies_) {
  options_.name = name_;
  enter_scope(engine_->scope());
  lay_out(false);
  id_ = engine_->add_handler(*this);
}

Core::~Core() {
  if (engine_->has_failed()) return;
  flush_now();  // never blocks; frames without memory wait in the engine
  reassembly_.forget();
  engine_->remove_handler(id_);
}

void Core::lay_out(bool ready) {
  const unsigned levels = route_.levels();
  const bool variable = shape_.fixed_bytes == 0;
  padding_ = shape_.alignment > 32 ? 32 : 0;  // a payload starts 32 bytes behind an address aligned to 64
  frame_bytes_ = options_.buffer_bytes;
  const bool has_own_buffers = options_.topology.scheme == Scheme::pp && route_.is_over_processes();
  if (has_own_buffers || route_.is_over_hosts()) frame_bytes_ = own_buffer_bytes();
  in_place_bytes_max_ = padding_ == 0 ? in_place_bytes_most : 0;
  by_value_bytes_max_ = padding_ == 0 ? std::min(engine_->endpoint().by_value_bytes_max(), by_value_bytes_most) : 0;
  const std::size_t budget = engine_->store().budget_bytes();
  const auto share_of = [&](std::size_t share, std::size_t most) {
    return std::max(std::min(most, budget / share), std::size_t(buffer_bytes_min));
  };
  const SizeConstants& sizes = engine_->sizes();
  alone_frame_bytes_ = share_of(alone_share, sizes.alone_frame_bytes_max);
  alone_frame_bytes_between_hosts_ = share_of(alone_share_between_hosts, sizes.alone_frame_bytes_max_between_hosts);
  part_frame_bytes_ = share_of(part_share, sizes.part_frame_bytes_max);

  const std::size_t content = frame_bytes_ - frame_overhead - padding_;
  const auto cutoff_bytes = std::size_t(options_.cutoff * double(frame_bytes_));
  const unsigned length_bytes = variable ? sizeof(Length) : 0;
  // The receiver reassembles ordered parts by source.
  const bool needs_source = shape_.wants_source || (options_.ordered && variable);
  const unsigned source_bytes = needs_source && levels > 1 ? bytes_for_values(engine_->size()) : 0;
  entries_.clear();
  unsigned entry_bytes_most = 0;
  std::size_t capacity_least = frame_bytes_;
  for (unsigned level = 0; level < levels; ++level) {
    entries_.push_back({length_bytes, route_.key_bytes(level), source_bytes});
    entry_bytes_most = std::max(entry_bytes_most, entries_.back().bytes());
    if (!variable) capacity_least = std::min(capacity_least, capacity(level, frame_bytes_));
  }
  sizes_.clear();
  for (unsigned level = 0; level < levels; ++level) {
    const bool larger = route_.is_over_hosts() && route_.is_between_hosts(level);
    sizes_.push_back(limits_of(larger ? options_.buffer_bytes : frame_bytes_, shape_.fixed_bytes + entry_bytes_most));
  }

  if (direct_) {
    alone_from_ = 0;
  } else if (variable) {
    const std::size_t outside = entry_bytes_most + entry_slack + shape_.alignment;
    alone_from_ = content <= outside ? 0 : std::min({cutoff_bytes, content - outside, length_max}) + 1;
  } else {
    const bool fits = capacity_least >= capacity_wanted_ && shape_.fixed_bytes <= cutoff_bytes;
    alone_from_ = fits ? ~std::size_t(0) : 0;
  }
  slot_entries_.clear();
  for (std::uint32_t slot = 0; slot < route_.slots(); ++slot) {
    const Entry& e = entries_[route_.level(slot)];
    slot_entries_.push_back({e.bytes(), std::uint8_t(e.shift()), std::uint8_t(8 * e.length_bytes),
                             std::uint8_t(8 * (e.length_bytes + e.key_bytes)), e.source_bytes != 0});
  }
  // Sizes of 0 lead send() off the fast path: before on(), and if all messages are sent alone.
  buffered_size_ = ready && alone_from_ != 0 ? engine_->size() : 0;
  one_hop_size_ = levels == 1 ? buffered_size_ : 0;
  by_value_size_ = ready && direct_ && !variable && shape_.fixed_bytes <= by_value_bytes_max_ ? engine_->size() : 0;
  // With sizes: a PE must be able to forward the messages that another buffers.
  signature_ = hash16(fmt::format("{} {} {} {} {} {} {} {} {}", shape_.type, to_string(options_.topology),
                                  shape_.fixed_bytes, source_bytes, options_.ordered, name_, options_.buffer_bytes,
                                  alone_from_, filled(frame_bytes_)));
}

/// Messages of fixed size in a frame.
std::size_t Core::capacity(unsigned level, std::size_t frame_bytes) const {
  const unsigned entry_bytes = entries_[level].bytes();
  const std::size_t outside = frame_overhead + padding_ + (entry_bytes != 0 ? entry_slack : 0);
  const std::size_t usable = std::max(filled(frame_bytes), outside) - outside;
  const std::size_t most = std::max(frame_bytes, outside) - outside;
  // a threshold below one message: each message is posted at once
  const std::size_t per_message = shape_.fixed_bytes + entry_bytes;
  return std::max(usable / per_message, std::min<std::size_t>(most / per_message, 1));
}

/// A given size does not adapt.
SizeLimits Core::limits_of(std::size_t frame_bytes, std::size_t per_message_most) const {
  if (!adapts_sizes_) return {frame_bytes, frame_bytes, frame_bytes};
  constexpr std::size_t messages_least = 4;
  const std::size_t outside = frame_overhead + padding_ + entry_slack;
  const std::size_t least = std::bit_ceil(outside + messages_least * per_message_most);
  SizeLimits limits;
  limits.most = frame_bytes;
  limits.least = std::min(std::max(least, least_buffer_bytes), frame_bytes);
  limits.first = std::clamp(first_buffer_bytes, limits.least, frame_bytes);
  return limits;
}

void Core::mark_ready(bool wants_source) {
  if (ready_) throw UsageError(fmt::format("on() was called twice for {}", description()));
  shape_.wants_source = wants_source;
  lay_out(true);
  ready_ = true;
  if (options_.topology.scheme == Scheme::pp && route_.is_over_processes()) make_merger();
  const auto fill_words = [this](HeaderWords& words, std::uint8_t flags) {
    FrameHeader header;
    fill_header(header, engine_->scope(), 0, 0, 0, 1, flags);
    header.scope = 0;
    std::memcpy(words, &header, sizeof header);
  };
  fill_words(alone_header_, frame_of_one);
  fill_words(key_header_, frame_of_key);
  engine_->handler_ready();
}

std::string Core::description() const {
  return fmt::format("aggregator number {}{} <{}, {}{}> with buffers of {}", id_,
                     name_.empty() ? "" : " '" + name_ + "'", short_type_names(shape_.type),
                     to_string(options_.topology), options_.ordered ? ", ordered" : "",
                     format_bytes(options_.buffer_bytes));
}

void Core::check_send(std::size_t destination) const {
  if (destination >= engine_->size()) throw_destination_out_of_range(destination, engine_->size());
  if (in_batch_) refuse_to_post_row();
  if (!ready_) throw UsageError(fmt::format("send() before on() for {}", description()));
}

void Core::refuse_frame(const Arrival& arrival, const char* what) const {
  throw FormatError(fmt::format("a frame of {} from PE {} for {} is not valid: {}",
                                counted(arrival.header.count, "message"), arrival.header.source, description(), what));
}

void Core::refuse_frame(const Arrival& arrival, const char* what, std::uint64_t actual, const char* relation,
                        std::uint64_t expected) const {
  refuse_frame(arrival, fmt::format("{} is {}, expected {} {}", what, actual, relation, expected).c_str());
}

void Core::refuse_whole(std::size_t bytes, std::size_t expected) {
  throw FormatError(fmt::format("a message in parts has {}; its type has {}", counted(bytes, "byte"), expected));
}

void Core::refuse_to_post_row() const {
  throw UsageError(fmt::format("the program sends or waits while {} reads its messages, which is not allowed: {}",
                               in_batch_ ? "send_n()" : "send_range()", description()));
}

// --- slots

am::OpenFrame Core::claim_waiting(std::size_t target, std::size_t bytes, std::uint8_t hops_left, am::Writing writing) {
  am::FrameStore& store = engine_->store();
  am::OpenFrame frame;
  auto claimed = [&] {
    if (store.queued(target, hops_left) || store.spilling()) return false;
    frame = store.try_claim(target, bytes, hops_left, writing);
    return bool(frame);
  };
  if (!claimed()) engine_->wait_until(claimed, report::Phase::sending, std::uint32_t(target));
  return frame;
}

void Core::enter_scope(am::ScopeId scope) {
  current_ = &sets_.of(scope, route_);
  slots_ = current_->slots.data();
  gatherings_ = current_->gatherings.data();
}

std::size_t Core::next_frame_bytes(std::uint32_t slot, std::size_t padded) {
  ColdSlot& cold = current_->cold[slot];
  const SizeLimits& limits = sizes_[cold.level];
  cold.size.hold(limits, frame_overhead + padding_ + padded + slot_entries_[slot].bytes + entry_slack);
  return cold.size.next(limits);
}

bool Core::open_slot(std::uint32_t slot, std::size_t padded, Wait wait) {
  const std::uint32_t target = current_->cold[slot].target;
  if (wait == Wait::no) return try_open_slot(slot, padded);
  const std::size_t bytes = next_frame_bytes(slot, padded);
  if (!engine_->may_block()) {
    start_frame(slot, engine_->store().claim_or_spill(target, bytes, hops_left(slot), am::Writing::in_pieces));
    return true;
  }
  const am::OpenFrame frame = claim_waiting(target, bytes, hops_left(slot), am::Writing::in_pieces);
  if (is_open(slot)) {
    engine_->store().drop(target, frame);  // a handler has opened it meanwhile
  } else {
    start_frame(slot, frame);
  }
  return true;
}

std::size_t Core::room_everywhere(std::size_t bytes) const {
  if (one_hop_size_ == 0 || one_hop_size_ > Batch::slots_max) return 0;
  auto room = ~std::size_t(0);
  for (std::size_t slot = 0; slot != one_hop_size_ && room != 0; ++slot) {
    room = std::min(room, std::size_t(slots_[slot].limit - slots_[slot].cursor));
  }
  return room / bytes;
}

bool Core::try_open_slot(std::uint32_t slot, std::size_t padded) {
  const std::uint32_t target = current_->cold[slot].target;
  if (engine_->store().queued(target, hops_left(slot))) return false;
  const am::OpenFrame frame =
      engine_->store().try_claim(target, next_frame_bytes(slot, padded), hops_left(slot), am::Writing::in_pieces);
  if (!frame) return false;
  start_frame(slot, frame);
  return true;
}

void Core::start_frame(std::uint32_t slot, const am::OpenFrame& frame) {
  Slot& s = slots_[slot];
  ColdSlot& cold = current_->cold[slot];
  cold.frame = frame;
  s.begin = s.cursor = frame.frame->payload() + padding_;
  const std::size_t bytes = frame.bytes;
  if (shape_.fixed_bytes == 0) {
    s.limit = frame.end();
    s.kept_free = bytes - std::min(filled(bytes), bytes) + slot_entries_[slot].bytes + entry_slack - 1;
  } else {
    // Without entries push_entry() still writes, to memory that is never read.
    s.tail = slot_entries_[slot].bytes != 0 ? frame.end() : unread_entry_ + sizeof unread_entry_;
    s.limit = s.begin + capacity(cold.level, bytes) * shape_.fixed_bytes;
  }
  cold.due = timeout_ns_ == am::never ? am::never : engine_->now() + timeout_ns_;
  current_->link(slot);
  open_bytes_ += bytes;
  engine_->count_open_buffers(1);
  update_peaks(cold.target);
}

/// Called when this PE has opened a buffer for `target`.
void Core::update_peaks(std::size_t target) {
  const std::uint64_t together = merger_ == nullptr ? 0 : merger_->open_bytes();
  open_bytes_peak_ = std::max(open_bytes_peak_, open_bytes_ + together);
  peak_target_bytes_ = std::max(peak_target_bytes_, engine_->store().outstanding_bytes(target));
}

std::size_t Core::tail_bytes(const SlotSet& set, std::uint32_t slot) const {
  if (slot_entries_[slot].bytes == 0) return 0;
  const Slot& s = set.slots[slot];
  const std::byte* tail = shape_.fixed_bytes == 0 ? s.limit : s.tail;
  return std::size_t(set.cold[slot].frame.end() - tail);
}

std::size_t Core::messages_in(const SlotSet& set, std::uint32_t slot) const {
  const Slot& s = set.slots[slot];
  const unsigned entry_bytes = entries_[set.cold[slot].level].bytes();
  return entry_bytes != 0 ? tail_bytes(set, slot) / entry_bytes : std::size_t(s.cursor - s.begin) / shape_.fixed_bytes;
}

void Core::count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const {
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open; slot != none; slot = set->cold[slot].next) {
      if (const std::size_t messages = messages_in(*set, slot)) by_target[set->cold[slot].target] += messages;
    }
  }
  if (merger_ != nullptr) merger_->count_open(by_target);
}

void Core::post_slot(SlotSet& set, std::uint32_t slot, am::FlushReason reason) {
  Slot& s = set.slots[slot];
  ColdSlot& cold = set.cold[slot];
  if (cold.in_row || in_batch_) refuse_to_post_row();
  const std::size_t tail = tail_bytes(set, slot);
  const auto payload_bytes = std::size_t(s.cursor - cold.frame.frame->payload());
  const std::size_t count = messages_in(set, slot);
  s = {};
  set.unlink(slot);
  open_bytes_ -= cold.frame.bytes;
  engine_->count_open_buffers(-1);
  if (count == 0) return engine_->store().drop(cold.target, cold.frame);
  // Only for the last hop, which keeps the order: earlier messages are at the same target, or on their way to it.
  if (idle_flush_ && is_last_hop(cold)) set.gatherings[slot].posted(reason, count);
  const std::size_t used = frame_overhead + payload_bytes + tail;
  cold.size.posted(sizes_[cold.level], reason, used);
  engine_->count_created(count, set.scope);
  created_ += count;
  payload_bytes_ += payload_bytes - padding_;
  if (merger_ != nullptr && merge(set, slot, payload_bytes, tail, count, reason)) {
    return engine_->store().drop(cold.target, cold.frame);
  }
  count_buffered(reason, used, cold.frame.bytes);
  post_frame(cold.target, cold.frame, set.scope, payload_bytes, tail, std::uint32_t(count), 0);
}

void Core::count_buffered(am::FlushReason reason, std::size_t used_bytes, std::size_t frame_bytes) {
  ++flushes_[std::size_t(reason)];
  ++buffered_frames_;
  fills_ += double(used_bytes) / double(frame_bytes);
}

void Core::post_frame(std::size_t target, const am::OpenFrame& frame, am::ScopeId scope, std::size_t payload_bytes,
                      std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) {
  fill_header(frame.frame->header, scope, frame.hops_left, payload_bytes, tail_bytes, count, flags);
  count_frame(target, payload_bytes + tail_bytes);
  engine_->store().post(target, frame);
}

void Core::fill_header(FrameHeader& header, am::ScopeId scope, std::uint8_t hops_left, std::size_t payload_bytes,
                       std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) const {
  header.payload_bytes = std::uint32_t(payload_bytes);
  header.tail_bytes = std::uint32_t(tail_bytes);
  header.count = count;
  header.flags = flags;
  engine_->stamp(header, id_, signature_, hops_left, scope);
}

bool Core::flush_set(SlotSet& set, am::FlushReason reason) {
  const bool any = !set.empty();
  while (!set.empty()) post_slot(set, set.first_open, reason);
  return any;
}

bool Core::flush_open(am::FlushReason reason) {
  bool any = false;
  for (const auto& set : sets_) any |= flush_set(*set, reason);
  if (merger_ != nullptr) any |= merger_->flush(reason);
  return any;
}

/// Posts one buffer in each call: messages that arrive in between still find open buffers, and PEs that forward get
/// fewer frames at once. First hops go first, because their messages may gather once more on the route.
bool Core::flush_idle(am::IdleFlush how) {
  if (!idle_flush_) return false;
  if (how == am::IdleFlush::all || route_.levels() == 1 || merger_ != nullptr) return flush_open(am::FlushReason::idle);
  bool any = false;
  std::size_t open = 0;
  SlotSet* turn_set = nullptr;
  std::uint32_t turn = none;
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open, next; slot != none; slot = next) {
      const ColdSlot& cold = set->cold[slot];
      next = cold.next;
      if (!leaves_host(cold.target)) {  // within the host a frame costs less than the search
        post_slot(*set, slot, am::FlushReason::idle);
        any = true;
        continue;
      }
      ++open;
      if (turn != none && cold.level >= turn_set->cold[turn].level) continue;
      turn_set = set.get();
      turn = slot;
    }
  }
  if (turn == none) return any;
  post_slot(*turn_set, turn, am::FlushReason::idle);
  if (open > 1) engine_->defer_idle_flush();
  return true;
}

bool Core::flush_scope(am::ScopeId scope, am::FlushReason reason) {
  SlotSet* set = sets_.find(scope);
  const bool any = set != nullptr && flush_set(*set, reason);
  if (merger_ != nullptr) merger_->flush_scope_soon(scope, reason);
  return any;
}

std::int64_t Core::due() const {
  std::int64_t due = am::never;
  for (const auto& set : sets_) {
    if (!set->empty()) due = std::min(due, set->cold[set->first_open].due);
  }
  due = std::min(due, reassembly_.due());
  return merger_ == nullptr ? due : std::min(due, merger_->due());
}

bool Core::flush_due(std::int64_t now) {
  bool any = false;
  for (const auto& set : sets_) {
    for (; !set->empty() && set->cold[set->first_open].due <= now; any = true) {
      post_slot(*set, set->first_open, am::FlushReason::timeout);
    }
  }
  if (merger_ != nullptr) any |= merger_->flush_due(now);
  if (reassembly_.due() <= now) reassembly_.forget();
  return any;
}

std::uint64_t Core::waiting_messages(am::ScopeId scope) const {
  std::uint64_t messages = 0;
  for (const auto& [s, waiting] : waiting_messages_) {
    if (scope == am::root_scope || s == scope) messages += waiting;
  }
  return messages;
}

AggregatorStatistics Core::statistics() const {
  AggregatorStatistics result;
  // Messages in open buffers count as sent.
  std::uint64_t open = 0, open_bytes = 0;
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open; slot != none; slot = set->cold[slot].next) {
      open += messages_in(*set, slot);
      open_bytes += std::size_t(set->slots[slot].cursor - set->slots[slot].begin);
    }
  }
  // A message by value counts as a message, a frame, and a full flush.
  result.messages = created_ + by_value_ + open;
  result.handled = handled_;
  result.forwarded = forwarded_;
  result.payload_bytes = payload_bytes_ + by_value_bytes_ + open_bytes;
  result.frames = frames_ + by_value_;
  result.frames_between_processes = frames_between_processes_;
  result.frames_between_hosts = frames_between_hosts_;
  result.wire_bytes = wire_bytes_ + by_value_ * sizeof(FrameHeader) + by_value_bytes_;
  result.alone = alone_ + by_value_;
  result.copies = result.messages + forwarded_ + further_copies_.messages;
  result.copied_bytes = result.payload_bytes + forwarded_bytes_ + further_copies_.bytes;
  result.flush_full = flushes_[std::size_t(am::FlushReason::full)] + by_value_;
  result.flush_timeout = flushes_[std::size_t(am::FlushReason::timeout)];
  result.flush_idle = flushes_[std::size_t(am::FlushReason::idle)];
  result.flush_explicit = flushes_[std::size_t(am::FlushReason::requested)];
  result.spilled_frames = engine_->store().spilled_frames();
  result.frames_past_caches = engine_->store().frames_past_caches();
  result.spilled_bytes_peak = engine_->store().spill_bytes_peak();
  result.peak_buffer_bytes = open_bytes_peak_;
  result.peak_target_bytes = peak_target_bytes_;
  result.fill_mean = buffered_frames_ == 0 ? 0 : fills_ / double(buffered_frames_);
  return result;
}

}  // namespace headway::aggregate
