#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <headway/aggregate/core.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>

namespace headway::aggregate {
namespace {

// Larger buffers have fewer frames, but all open ones of a PE should stay in its cache. Measured: docs/performance.md.
constexpr std::size_t default_buffer_bytes_max = 64_KiB, default_buffer_bytes_min = 4_KiB;
constexpr std::size_t default_open_bytes = 256_KiB;
constexpr std::size_t alone_frame_bytes_max = 256_KiB;
constexpr std::chrono::nanoseconds default_timeout = std::chrono::milliseconds(1);
constexpr std::uint32_t posts_per_poll_alone = 32;

// Where a header's scope lies in its last word; its length is the low half of the first.
static_assert(std::endian::native == std::endian::little && offsetof(FrameHeader, payload_bytes) == 0);
constexpr unsigned scope_shift = 8 * (offsetof(FrameHeader, scope) - 16);

void require(bool holds, const char* option, double value, const char* allowed) {
  if (!holds) throw SettingError(fmt::format("aggregator option {} = {}: allowed is {}", option, value, allowed));
}

std::uint16_t hash16(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return std::uint16_t(hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48);
}

}  // namespace

Core::Core(Pe& pe, const AggregatorOptions& options, MessageShape shape)
    : engine_(&pe.engine()),
      process_first_(engine_->id() - engine_->id() % engine_->endpoint().pes_per_process()),
      process_pes_(engine_->endpoint().pes_per_process()),
      options_(options),
      shape_(std::move(shape)),
      name_(options.name),
      route_((require(is_allowed(options.topology), "topology", options.topology.dimensions,
                      "direct(), grid(1) to grid(8), or one of processes from grid(1) to grid(7)"),
              engine_->id()),
             engine_->size(), options.topology, process_pes_),
      direct_(options.topology.dimensions == 0) {
  resolve_options(options);
  enter_scope(engine_->scope());
  lay_out(false);
  id_ = engine_->add_handler(*this);
}

Core::~Core() {
  if (engine_->has_failed()) return;
  flush_open(am::FlushReason::requested);  // never blocks; what finds no room waits with the PE
  engine_->remove_handler(id_);
}

void Core::resolve_options(const AggregatorOptions& given) {
  options_.name = name_;
  const std::vector<std::size_t> extents = route_extents(engine_->size(), given.topology, process_pes_);
  std::size_t peers = 0;  // of the PE with the most: all PEs must come to the same sizes
  for (const std::size_t extent : extents) peers += extent;

  if (given.buffer_bytes == derived_bytes) {
    options_.buffer_bytes =
        std::clamp(std::bit_floor(default_open_bytes / peers), default_buffer_bytes_min, default_buffer_bytes_max);
  } else {
    require(given.buffer_bytes >= buffer_bytes_min && given.buffer_bytes <= buffer_bytes_max, "buffer_bytes",
            double(given.buffer_bytes), "256 B to 256 MiB");
  }
  const std::size_t share = engine_->store().budget_bytes() / (2 * peers);
  options_.buffer_bytes = std::max(std::min(options_.buffer_bytes, share), buffer_bytes_min);

  const bool variable = shape_.fixed_bytes == 0;
  auto is_fraction = [](double f) { return f >= 0 && f <= 1; };
  if (given.threshold != derived_fraction)
    require(is_fraction(given.threshold), "threshold", given.threshold, "0 to 1");
  if (given.cutoff != derived_fraction) require(is_fraction(given.cutoff), "cutoff", given.cutoff, "0 to 1");
  if (given.threshold == derived_fraction) {
    options_.threshold = !variable ? 1 : given.cutoff == derived_fraction ? 0.9 : std::min(0.9, 1 - given.cutoff);
  }
  if (given.cutoff == derived_fraction) options_.cutoff = !variable ? 1 : std::min(0.1, 1 - options_.threshold);
  if (variable && options_.threshold + options_.cutoff > 1 + 1e-9) {
    throw SettingError(
        fmt::format("aggregator options threshold = {} and cutoff = {}: for messages of variable size "
                    "their sum must be at most 1",
                    options_.threshold, options_.cutoff));
  }
  if (given.timeout == derived_timeout) options_.timeout = default_timeout;
  require(options_.timeout.count() >= 0, "timeout", double(options_.timeout.count()) * 1e-9, "0 or more (seconds)");
  timeout_ns_ = options_.timeout.count() > am::never / 2 ? am::never : options_.timeout.count();  // centuries
  idle_flush_ = options_.flush_when_idle;
}

void Core::lay_out(bool ready) {
  const unsigned levels = route_.levels();
  const bool variable = shape_.fixed_bytes == 0;
  padding_ = shape_.alignment > 32 ? 32 : 0;  // a payload starts 32 bytes behind an address aligned to 64
  frame_bytes_ = options_.buffer_bytes;
  by_value_bytes_max_ = padding_ == 0 ? std::min<std::size_t>(engine_->endpoint().by_value_bytes_max(), 32) : 0;
  alone_frame_bytes_ =
      std::max(std::min(alone_frame_bytes_max, engine_->store().budget_bytes() / 16), std::size_t(buffer_bytes_min));

  // Lengths in a tail: up to the cutoff, and one value that marks a part.
  const std::size_t content = frame_bytes_ - frame_overhead - padding_;
  const auto cutoff_bytes = std::size_t(options_.cutoff * double(frame_bytes_));
  const unsigned length_bytes = variable ? std::max(1u, bytes_for_values(std::min(cutoff_bytes, content) + 2)) : 0;
  // Parts that keep their order are put together by source.
  const bool needs_source = shape_.wants_source || (options_.ordered && variable);
  const unsigned source_bytes = needs_source && levels > 1 ? bytes_for_values(engine_->size()) : 0;
  entries_.clear();
  capacity_.clear();
  unsigned entry_bytes_most = 0;
  const auto filled = std::size_t(options_.threshold * double(frame_bytes_));
  for (unsigned level = 0; level < levels; ++level) {
    entries_.push_back({length_bytes, route_.key_bytes(level), source_bytes});
    const unsigned bytes = entries_.back().bytes();
    entry_bytes_most = std::max(entry_bytes_most, bytes);
    if (variable) continue;
    const std::size_t outside = frame_overhead + padding_ + (bytes != 0 ? entry_slack : 0);
    const std::size_t usable = std::max(filled, outside) - outside;
    const std::size_t most = content < (bytes ? entry_slack : 0) ? 0 : content - (bytes ? entry_slack : 0);
    // the threshold may leave no room for even one message: then each is sent as it comes
    const std::size_t per_message = shape_.fixed_bytes + bytes;
    capacity_.push_back(std::max(usable / per_message, std::min<std::size_t>(most / per_message, 1)));
  }
  kept_free_ = frame_bytes_ - std::min(filled, frame_bytes_);

  if (direct_) {
    alone_from_ = 0;
  } else if (variable) {
    const std::size_t outside = entry_bytes_most + entry_slack + shape_.alignment;
    alone_from_ = content <= outside ? 0 : std::min(cutoff_bytes, content - outside) + 1;
  } else {
    const bool fits = *std::ranges::min_element(capacity_) > 0 && shape_.fixed_bytes <= cutoff_bytes;
    alone_from_ = fits ? ~std::size_t(0) : 0;
  }
  slot_entries_.clear();
  for (std::uint32_t slot = 0; slot < route_.slots(); ++slot) {
    const Entry& e = entries_[route_.level(slot)];
    slot_entries_.push_back({e.bytes(), std::uint8_t(e.shift()), std::uint8_t(8 * e.length_bytes),
                             std::uint8_t(8 * (e.length_bytes + e.key_bytes)), e.source_bytes != 0});
  }
  // Until on() has been called, and where messages travel by themselves, everything leaves the fast path.
  routed_size_ = ready && alone_from_ != 0 ? engine_->size() : 0;
  fast_size_ = levels == 1 ? routed_size_ : 0;
  direct_size_ = ready && direct_ && !variable && shape_.fixed_bytes <= by_value_bytes_max_ ? engine_->size() : 0;
  entry_at_ = spare(slot_entries_[0]) - 1 - 8;
  length_shift_ = slot_entries_[0].shift;
  entry_bytes_ = slot_entries_[0].bytes;
  // Sizes too: what one PE buffers, another must be able to forward.
  signature_ =
      hash16(fmt::format("{} {} {} {} {} {} {} {} {} {}", shape_.type, to_string(options_.topology), shape_.fixed_bytes,
                         length_bytes, source_bytes, options_.ordered, name_, frame_bytes_, alone_from_, kept_free_));
}

void Core::mark_ready(bool wants_source) {
  if (ready_) throw UsageError(fmt::format("on() was called twice for {}", description()));
  shape_.wants_source = wants_source;
  lay_out(true);
  ready_ = true;
  FrameHeader header;
  fill_header(header, engine_->scope(), 0, 0, 0, 1, frame_of_one);
  header.scope = 0;
  std::memcpy(alone_header_, &header, sizeof header);
  engine_->handler_ready();
}

std::string Core::description() const {
  return fmt::format("aggregator number {}{} <{}, {}{}> with buffers of {}", id_,
                     name_.empty() ? "" : " '" + name_ + "'", shape_.type, to_string(options_.topology),
                     options_.ordered ? ", ordered" : "", format_bytes(frame_bytes_));
}

void Core::check_send(std::size_t destination) const {
  if (destination >= engine_->size()) throw_destination_out_of_range(destination, engine_->size());
  if (!ready_) throw UsageError(fmt::format("send() before on() for {}", description()));
}

void Core::refuse_frame(const Arrival& arrival, const char* what) const {
  throw FormatError(fmt::format("a frame of {} messages from PE {} for {} is not valid: {}", arrival.header.count,
                                arrival.header.source, description(), what));
}

// --- slots

am::OpenFrame Core::claim_waiting(std::size_t target, std::size_t bytes, std::uint8_t hops_left) {
  am::FrameStore& store = engine_->store();
  am::OpenFrame frame;
  auto claimed = [&] {
    if (store.queued(target, hops_left) || store.spilling()) return false;
    frame = store.try_claim(target, bytes, hops_left);
    return bool(frame);
  };
  if (!claimed()) engine_->wait_until(claimed, am::Phase::sending, std::uint32_t(target));
  return frame;
}

void Core::enter_scope(am::ScopeId scope) {
  current_ = &sets_.of(scope, route_);
  slots_ = current_->slots.data();
}

bool Core::open_slot(std::uint32_t slot, Wait wait) {
  const std::uint32_t target = current_->cold[slot].target;
  const auto hops_left = std::uint8_t(route_.levels() - 1 - current_->cold[slot].level);
  if (wait == Wait::no) return try_open_slot(slot);
  if (!engine_->may_block()) {
    start_frame(slot, engine_->store().claim_or_spill(target, frame_bytes_, hops_left));
    return true;
  }
  const am::OpenFrame frame = claim_waiting(target, frame_bytes_, hops_left);
  if (is_open(slot)) {
    engine_->store().drop(target, frame);  // a handler has opened it meanwhile
  } else {
    start_frame(slot, frame);
  }
  return true;
}

bool Core::try_open_slot(std::uint32_t slot) {
  const std::uint32_t target = current_->cold[slot].target;
  const auto hops_left = std::uint8_t(route_.levels() - 1 - current_->cold[slot].level);
  if (engine_->store().queued(target, hops_left)) return false;
  const am::OpenFrame frame = engine_->store().try_claim(target, frame_bytes_, hops_left);
  if (!frame) return false;
  start_frame(slot, frame);
  return true;
}

void Core::start_frame(std::uint32_t slot, const am::OpenFrame& frame) {
  Slot& s = slots_[slot];
  ColdSlot& cold = current_->cold[slot];
  cold.frame = frame;
  s.begin = s.cursor = frame.frame->payload() + padding_;
  s.tail = frame.end;
  s.limit = shape_.fixed_bytes == 0 ? frame.end - spare(slot_entries_[slot]) + 1
                                    : s.begin + capacity_[cold.level] * shape_.fixed_bytes;
  cold.due = timeout_ns_ == am::never ? am::never : engine_->now() + timeout_ns_;
  current_->link(slot);
  open_slots_peak_ = std::max(open_slots_peak_, ++open_slots_);
  engine_->count_open_buffers(1);
  peak_target_bytes_ = std::max(peak_target_bytes_, engine_->store().outstanding_bytes(cold.target));
}

std::size_t Core::tail_bytes(const SlotSet& set, std::uint32_t slot) const {
  const Slot& s = set.slots[slot];
  const std::byte* tail = shape_.fixed_bytes == 0 ? s.limit - 1 + spare(slot_entries_[slot]) : s.tail;
  return std::size_t(set.cold[slot].frame.end - tail);
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
}

void Core::flush_slot(SlotSet& set, std::uint32_t slot, am::FlushReason reason) {
  Slot& s = set.slots[slot];
  ColdSlot& cold = set.cold[slot];
  const std::size_t tail = tail_bytes(set, slot);
  const auto payload_bytes = std::size_t(s.cursor - cold.frame.frame->payload());
  const std::size_t count = messages_in(set, slot);
  s = {};
  set.unlink(slot);
  --open_slots_;
  engine_->count_open_buffers(-1);
  if (count == 0) return engine_->store().drop(cold.target, cold.frame);
  // Only towards the last hop, so that order is kept: what went before is with the same target, or on its way to it.
  if (idle_flush_ && cold.level + 1u == route_.levels()) cold.gathering.posted(reason, count);
  engine_->count_created(count, set.scope);
  created_ += count;
  payload_bytes_ += payload_bytes - padding_;
  ++flushes_[std::size_t(reason)];
  ++buffered_frames_;
  used_bytes_ += frame_overhead + payload_bytes + tail;
  post_frame(cold.target, cold.frame, set.scope, payload_bytes, tail, std::uint32_t(count), 0);
}

void Core::post_frame(std::size_t target, const am::OpenFrame& frame, am::ScopeId scope, std::size_t payload_bytes,
                      std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) {
  fill_header(frame.frame->header, scope, frame.hops_left, payload_bytes, tail_bytes, count, flags);
  ++frames_;
  frames_between_processes_ += leaves_process(target);
  wire_bytes_ += sizeof(FrameHeader) + payload_bytes + tail_bytes;
  engine_->store().post(target, frame, frame.end);
}

void Core::fill_header(FrameHeader& header, am::ScopeId scope, std::uint8_t hops_left, std::size_t payload_bytes,
                       std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) const {
  header.payload_bytes = std::uint32_t(payload_bytes);
  header.tail_bytes = std::uint32_t(tail_bytes);
  header.count = count;
  header.flags = flags;
  engine_->stamp(header, id_, signature_, hops_left, scope);
}

/// After a message by itself: as often as with direct().
void Core::poll_now_and_then() {
  if (++posts_ % posts_per_poll_alone == 0) [[unlikely]]
    poll_some();
}

bool Core::flush_set(SlotSet& set, am::FlushReason reason) {
  const bool any = !set.empty();
  while (!set.empty()) flush_slot(set, set.first_open, reason);
  return any;
}

bool Core::flush_open(am::FlushReason reason) {
  bool any = false;
  for (const auto& set : sets_) any |= flush_set(*set, reason);
  return any;
}

bool Core::flush_scope(am::ScopeId scope, am::FlushReason reason) {
  SlotSet* set = sets_.find(scope);
  return set != nullptr && flush_set(*set, reason);
}

std::int64_t Core::due() const {
  std::int64_t due = am::never;
  for (const auto& set : sets_) {
    if (!set->empty()) due = std::min(due, set->cold[set->first_open].due);
  }
  return due;
}

bool Core::flush_due(std::int64_t now) {
  bool any = false;
  for (const auto& set : sets_) {
    for (; !set->empty() && set->cold[set->first_open].due <= now; any = true) {
      flush_slot(*set, set->first_open, am::FlushReason::timeout);
    }
  }
  return any;
}

std::uint64_t Core::waiting_messages(am::ScopeId scope) const {
  std::uint64_t messages = 0;
  for (const auto& [s, waiting] : waiting_messages_) {
    if (scope == am::root_scope || s == scope) messages += waiting;
  }
  return messages;
}

// --- messages by themselves

am::OpenFrame Core::claim_alone(std::size_t destination, std::size_t bytes, Wait wait) {
  am::FrameStore& store = engine_->store();
  const std::size_t frame_bytes = frame_overhead + padding_ + bytes;
  if (wait == Wait::no) {
    return store.queued(destination, 0) ? am::OpenFrame() : store.try_claim(destination, frame_bytes, 0);
  }
  return engine_->may_block() ? claim_waiting(destination, frame_bytes, 0)
                              : store.claim_or_spill(destination, frame_bytes, 0);
}

void Core::count_alone(std::size_t bytes) {
  engine_->count_created(1);
  ++created_;
  ++alone_;
  payload_bytes_ += bytes;
  ++flushes_[std::size_t(am::FlushReason::full)];
}

void Core::post_alone(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes) {
  count_alone(bytes);
  post_frame(destination, frame, engine_->scope(), padding_ + bytes, 0, 1, frame_of_one);
  poll_now_and_then();
}

bool Core::post_by_value(std::size_t destination, SmallFrame& message, std::size_t bytes, Wait wait) {
  am::FrameStore& store = engine_->store();
  // In words, as it is read again at once: what is put together from pieces in memory would stall that.
  const std::uint64_t header[3] = {alone_header_[0] | bytes, alone_header_[1],
                                   alone_header_[2] | std::uint64_t(engine_->scope_tag()) << scope_shift};
  std::memcpy(&message.frame.header, header, sizeof header);
  if (store.spilling() || !store.try_post_by_value(destination, message.frame)) [[unlikely]] {
    if (!post_by_value_later(destination, message, wait)) return false;
  }
  engine_->count_created(1);
  ++by_value_;
  frames_between_processes_ += leaves_process(destination);
  by_value_bytes_ += bytes;
  poll_now_and_then();
  return true;
}

bool Core::post_by_value_later(std::size_t destination, SmallFrame& message, Wait wait) {
  am::FrameStore& store = engine_->store();
  if (wait == Wait::no) return false;
  if (engine_->may_block()) {
    engine_->wait_unrung([&] { return !store.spilling() && store.try_post_by_value(destination, message.frame); },
                         am::Phase::sending, std::uint32_t(destination));
    return true;
  }
  const FrameHeader& header = message.frame.header;
  const am::OpenFrame spilled = store.claim_or_spill(destination, frame_overhead + header.payload_bytes, 0);
  spilled.frame->header = header;
  std::memcpy(spilled.frame->payload(), message.message, header.payload_bytes);
  store.post(destination, spilled, spilled.end);
  return true;
}

namespace {

/// Reads the bytes of several pieces one after the other.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::span<const std::byte>> pieces) : pieces_(pieces) {}

  void read(std::byte* to, std::size_t bytes) {
    while (bytes > 0) {
      const std::span<const std::byte> piece = pieces_.front().subspan(at_);
      const std::size_t n = std::min(bytes, piece.size());
      if (n != 0) std::memcpy(to, piece.data(), n);
      to += n;
      bytes -= n;
      at_ += n;
      if (at_ == pieces_.front().size()) {
        pieces_ = pieces_.subspan(1);
        at_ = 0;
      }
    }
  }

 private:
  std::span<const std::span<const std::byte>> pieces_;
  std::size_t at_ = 0;
};

}  // namespace

bool Core::room_for(std::size_t target, std::uint8_t hops_left, std::size_t frame_bytes, std::size_t frames) {
  am::FrameStore& store = engine_->store();
  if (store.queued(target, hops_left)) return false;
  std::vector<am::OpenFrame> claimed;
  while (claimed.size() < frames) {
    const am::OpenFrame frame = store.try_claim(target, frame_bytes, hops_left);
    if (!frame) break;
    claimed.push_back(frame);
  }
  for (const am::OpenFrame& frame : claimed) store.drop(target, frame);
  return claimed.size() == frames;
}

bool Core::send_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  const std::size_t part_max = alone_bytes_max() - sizeof(PartHeader);
  if (wait == Wait::no) {
    if (!room_for(destination, 0, alone_frame_bytes_, (bytes + part_max - 1) / part_max)) return false;
    const DeferHandlers nobody_takes_it(engine_->pe());
    return send_in_parts(destination, pieces, bytes, Wait::yes);
  }
  count_alone(bytes);
  PieceReader reader(pieces);
  const std::uint64_t message = next_message_++;
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    const am::OpenFrame frame = claim_alone(destination, sizeof(PartHeader) + n, Wait::yes);
    const PartHeader part{message, bytes, offset, n};
    std::memcpy(message_of(frame), &part, sizeof part);
    reader.read(message_of(frame) + sizeof part, n);
    if (offset != 0) ++flushes_[std::size_t(am::FlushReason::full)];
    post_frame(destination, frame, engine_->scope(), padding_ + sizeof part + n, 0, offset == 0 ? 1 : 0, frame_of_part);
    poll_now_and_then();
    offset += n;
  }
  return true;
}

bool Core::send_in_order(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  const Route::Hop& hop = route_.first(destination);
  const std::size_t outside = frame_overhead + padding_ + 8 + entry_slack + shape_.alignment + sizeof(PartHeader);
  const std::size_t part_max = std::max<std::size_t>((frame_bytes_ - outside) / 2, 1);
  if (wait == Wait::no) {
    const auto hops_left = std::uint8_t(route_.levels() - 1 - route_.level(hop.slot));
    if (!room_for(route_.target(hop.slot), hops_left, frame_bytes_, (bytes + part_max - 1) / part_max)) return false;
    const DeferHandlers nobody_takes_it(engine_->pe());
    return send_in_order(destination, pieces, bytes, Wait::yes);
  }
  ++alone_;
  PieceReader reader(pieces);
  const std::uint64_t message = next_message_++;
  const std::uint64_t value = slot_entries_[hop.slot].encode(part_mark(), hop.key, engine_->id());
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    // Frames count their entries; of the parts of one message only one may count, the one that completes it.
    if (offset + n < bytes) {
      engine_->count_created(~std::uint64_t(0));
      --created_;
    }
    payload_bytes_ -= align_up(sizeof(PartHeader) + n, shape_.alignment) - n;  // counts the message alone
    put(
        hop.slot, sizeof(PartHeader) + n, value,
        [&](std::byte* at) {
          const PartHeader part{message, bytes, offset, n};
          std::memcpy(at, &part, sizeof part);
          reader.read(at + sizeof part, n);
        },
        Wait::yes);
    offset += n;
  }
  return true;
}

/// What has come justifies a few times as much: copying on costs little then, whatever a first part promises.
void Core::make_room(Partial& partial, std::uint64_t bytes) {
  constexpr std::uint64_t growth = 8, alignment = 64;
  if (bytes <= partial.capacity) return;
  partial.capacity = std::min(partial.total, bytes * growth);
  std::unique_ptr<std::byte[]> memory(new std::byte[partial.capacity + alignment]);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
  std::byte* const message = memory.get() + (align_up(address, alignment) - address);
  if (partial.received != 0) std::memcpy(message, partial.message, partial.received);
  partial.memory = std::move(memory);
  partial.message = message;
}

std::span<const std::byte> Core::take_part(std::size_t source, const std::byte* part, std::size_t bytes) {
  PartHeader header;
  if (bytes < sizeof header) throw FormatError("a part of a message is shorter than its header");
  std::memcpy(&header, part, sizeof header);
  if (header.bytes != bytes - sizeof header || header.bytes == 0) {
    throw FormatError("a part of a message does not have the length that it states");
  }
  const auto key = std::pair(source, header.message);
  const auto found = partial_.find(key);
  const std::uint64_t received = found == partial_.end() ? 0 : found->second.received;
  if (header.total > ~std::uint64_t(0) / 2) throw FormatError("a message is said to be longer than 2^63 bytes");
  if (header.offset != received || header.bytes > header.total - received ||
      (received != 0 && header.total != found->second.total)) {
    throw FormatError("a part of a message does not continue what came before");
  }
  Partial& partial = found == partial_.end() ? partial_[key] : found->second;
  partial.total = header.total;
  make_room(partial, received + header.bytes);
  std::memcpy(partial.message + header.offset, part + sizeof header, header.bytes);
  partial.received += header.bytes;
  if (partial.received != partial.total) return {};
  whole_ = std::move(partial);
  partial_.erase(key);
  return {whole_.message, whole_.total};
}

AggregatorStatistics Core::statistics() const {
  AggregatorStatistics result;
  // What lies in open buffers counts as sent.
  std::uint64_t open = 0, open_bytes = 0;
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open; slot != none; slot = set->cold[slot].next) {
      open += messages_in(*set, slot);
      open_bytes += std::size_t(set->slots[slot].cursor - set->slots[slot].begin);
    }
  }
  // One by value is a message, a frame, and full.
  result.messages = created_ + by_value_ + open;
  result.handled = handled_;
  result.forwarded = forwarded_;
  result.payload_bytes = payload_bytes_ + by_value_bytes_ + open_bytes;
  result.frames = frames_ + by_value_;
  result.frames_between_processes = frames_between_processes_;
  result.wire_bytes = wire_bytes_ + by_value_ * sizeof(FrameHeader) + by_value_bytes_;
  result.alone = alone_ + by_value_;
  result.flush_full = flushes_[std::size_t(am::FlushReason::full)] + by_value_;
  result.flush_timeout = flushes_[std::size_t(am::FlushReason::timeout)];
  result.flush_idle = flushes_[std::size_t(am::FlushReason::idle)];
  result.flush_explicit = flushes_[std::size_t(am::FlushReason::requested)];
  result.spilled_frames = engine_->store().spilled_frames();
  result.spilled_bytes_peak = engine_->store().spill_bytes_peak();
  result.peak_buffer_bytes = open_slots_peak_ * frame_bytes_;
  result.peak_target_bytes = peak_target_bytes_;
  result.fill_mean =
      buffered_frames_ == 0 ? 0 : double(used_bytes_) / (double(buffered_frames_) * double(frame_bytes_));
  return result;
}

}  // namespace headway::aggregate
