// SPDX-License-Identifier: BSD-3-Clause
// Messages sent alone: by value, in a frame, or in parts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/posted.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>

namespace headway::aggregate {
namespace {

constexpr std::uint32_t posts_per_poll_alone = 32;

// Where a header's scope lies in its last word; its length is the low half of the first.
static_assert(std::endian::native == std::endian::little && offsetof(FrameHeader, payload_bytes) == 0);
constexpr unsigned scope_shift = 8 * (offsetof(FrameHeader, scope) - 16);

}  // namespace

am::OpenFrame Core::claim_alone(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing) {
  am::FrameStore& store = engine_->store();
  const std::size_t frame_bytes = frame_overhead + padding_ + bytes;
  if (wait == Wait::no) {
    return store.queued(destination, 0) ? am::OpenFrame() : store.try_claim(destination, frame_bytes, 0, writing);
  }
  return engine_->may_block() ? claim_waiting(destination, frame_bytes, 0, writing)
                              : store.claim_or_spill(destination, frame_bytes, 0, writing);
}

/// A large block rarely gets free while handlers claim returned memory. Once they have claimed as much as the frame,
/// the wait ends and the message goes in parts.
am::OpenFrame Core::claim_large(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing) {
  am::FrameStore& store = engine_->store();
  const std::size_t frame_bytes = frame_overhead + padding_ + bytes;
  if (wait == Wait::no || !engine_->may_block()) {
    return store.queued(destination, 0) ? am::OpenFrame() : store.try_claim(destination, frame_bytes, 0, writing);
  }
  std::uint64_t held = store.outstanding_bytes_with_hops(0), claimed_by_others = 0;
  bool has_room = false;
  const auto is_decided = [&] {
    has_room = !store.queued(destination, 0) && !store.spilling() && store.has_room(destination, frame_bytes, 0);
    const std::uint64_t before = std::exchange(held, store.outstanding_bytes_with_hops(0));
    if (held > before) claimed_by_others += held - before;
    return has_room || claimed_by_others > frame_bytes;
  };
  if (!is_decided()) engine_->wait_until(is_decided, report::Phase::sending, std::uint32_t(destination));
  return has_room ? store.try_claim(destination, frame_bytes, 0, writing) : am::OpenFrame();
}

/// After a message sent alone: as often as with direct().
void Core::poll_every_few_posts() {
  if (++posts_ % posts_per_poll_alone == 0) [[unlikely]]
    poll_some();
}

void Core::count_alone(std::size_t bytes) {
  engine_->count_created(1);
  ++created_;
  ++alone_;
  payload_bytes_ += bytes;
  ++flushes_[std::size_t(am::FlushReason::full)];
}

void Core::post_alone(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes, std::uint8_t flags) {
  count_alone(bytes);
  post_frame(destination, frame, engine_->scope(), padding_ + bytes, 0, 1, flags);
  poll_every_few_posts();
}

bool Core::post_by_value(std::size_t destination, SmallFrame& message, std::size_t bytes, Wait wait) {
  return post_small(alone_header_, destination, message, bytes, wait);
}

bool Core::post_key_by_value(std::size_t destination, SmallFrame& message, std::size_t bytes) {
  return post_small(key_header_, destination, message, bytes, Wait::yes);
}

/// Written as words: the header is read again at once, and loads after narrower stores would stall.
inline __attribute__((always_inline)) void Core::complete(HeaderWords& header, const HeaderWords& form,
                                                          std::size_t bytes) const {
  header[0] = form[0] | bytes;
  header[1] = form[1];
  header[2] = form[2] | std::uint64_t(engine_->scope_tag()) << scope_shift;
}

inline __attribute__((always_inline)) void Core::count_by_value(std::size_t destination, std::size_t bytes) {
  engine_->count_created(1);
  ++by_value_;
  if (leaves_process(destination)) {
    ++frames_between_processes_;
    frames_between_hosts_ += leaves_host(destination);
  }
  by_value_bytes_ += bytes;
  poll_every_few_posts();
}

void Core::post_in_place(std::size_t destination, std::size_t bytes) {
  HeaderWords words;
  complete(words, alone_header_, bytes);
  FrameHeader header;
  std::memcpy(&header, words, sizeof header);
  engine_->store().post_in_place(destination, header);
  count_by_value(destination, bytes);
}

inline __attribute__((always_inline)) bool Core::post_small(const HeaderWords& form, std::size_t destination,
                                                            SmallFrame& message, std::size_t bytes, Wait wait) {
  am::FrameStore& store = engine_->store();
  HeaderWords header;
  complete(header, form, bytes);
  std::memcpy(&message.frame.header, header, sizeof header);
  if (store.spilling() || !store.try_post_by_value(destination, message.frame)) [[unlikely]] {
    if (!post_by_value_later(destination, message, wait)) return false;
  }
  count_by_value(destination, bytes);
  return true;
}

bool Core::post_by_value_later(std::size_t destination, SmallFrame& message, Wait wait) {
  am::FrameStore& store = engine_->store();
  if (wait == Wait::no) return false;
  if (engine_->may_block()) {
    engine_->wait_polling([&] { return !store.spilling() && store.try_post_by_value(destination, message.frame); },
                          report::Phase::sending, std::uint32_t(destination));
    return true;
  }
  const FrameHeader& header = message.frame.header;
  const am::OpenFrame spilled = store.claim_or_spill(destination, frame_overhead + header.payload_bytes, 0);
  spilled.frame->header = header;
  std::memcpy(spilled.frame->payload(), message.message, header.payload_bytes);
  store.post(destination, spilled);
  return true;
}

void Core::write_past_caches(const am::OpenFrame& frame, Pieces pieces, std::size_t bytes) {
  PieceReader(pieces, bytes).read(message_of(frame), bytes, copy_past_caches);
}

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

/// The faster path depends on whether both processors share a cache, which a virtual machine may change while the
/// program runs. The measured time covers both PEs: this one's, extended by the bytes that the receiver has not read
/// yet.
bool Core::send_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  const std::size_t part_max = part_bytes_max();
  // This processor reads the parts itself: they are for this PE or for the wire.
  const bool read_here = destination == engine_->id() || leaves_host(destination);
  if (wait == Wait::no) {
    if (!room_for(destination, 0, part_frame_bytes_, (bytes + part_max - 1) / part_max)) return false;
    const DeferHandlers nobody_takes_it(engine_->pe());
    put_in_parts(destination, pieces, bytes, part_max, read_here ? in_caches : past_caches);
    return true;
  }
  if (read_here) {
    put_in_parts(destination, pieces, bytes, part_max, in_caches);
    return true;
  }
  if (part_paths_ == nullptr) part_paths_ = std::make_unique<rma::FastestPath<2>>();
  const auto path = PartPath(part_paths_->pick(bytes, 1u << past_caches | 1u << in_caches).path);
  am::FrameStore& store = engine_->store();
  store.reclaim();
  const std::uint64_t before = store.outstanding_bytes(destination);
  const std::int64_t begin = engine_->now();
  const std::size_t short_max = engine_->sizes().short_part_frame_bytes - (part_frame_bytes_ - part_max);
  const std::size_t most = path == in_caches ? std::min(part_max, short_max) : part_max;
  const bool claimed = put_in_parts(destination, pieces, bytes, most, path);
  const std::int64_t ns = engine_->now() - begin;
  store.reclaim();
  const std::uint64_t now = store.outstanding_bytes(destination), left = now > before ? now - before : 0;
  // A receiver that has hardly begun gives no measurement.
  if (claimed && left < bytes - bytes / 8) {
    part_paths_->learn(path, bytes, std::int64_t(double(ns) * double(bytes) / double(bytes - left)));
  }
  return true;
}

/// Returns whether all parts found frame memory.
bool Core::put_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, std::size_t part_max,
                        PartPath path) {
  PieceReader reader(pieces, bytes);
  count_alone(bytes);
  const std::uint64_t message = next_message_++;
  bool claimed = true;
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    const am::OpenFrame frame = claim_alone(destination, sizeof(PartHeader) + n, Wait::yes);
    claimed = claimed && frame.memory != am::OpenFrame::Memory::spilled;
    const PartHeader part{message, bytes, offset, n};
    std::memcpy(message_of(frame), &part, sizeof part);
    reader.read(message_of(frame) + sizeof part, n, path == in_caches ? copy_bytes : copy_past_caches);
    if (offset != 0) ++flushes_[std::size_t(am::FlushReason::full)];
    const bool last = offset + n == bytes;
    post_frame(destination, frame, engine_->scope(), padding_ + sizeof part + n, 0, last ? 1 : 0, frame_of_part);
    poll_every_few_posts();
    offset += n;
  }
  return claimed;
}

bool Core::send_in_order(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  const Route::Hop& hop = route_.first(destination);
  const std::size_t outside = frame_overhead + padding_ + 8 + entry_slack + shape_.alignment + sizeof(PartHeader);
  const std::size_t part_max = std::max<std::size_t>((frame_bytes_ - outside) / 2, 1);
  if (wait == Wait::no) {
    const std::size_t frames = (bytes + part_max - 1) / part_max;
    if (!room_for(route_.target(hop.slot), hops_left(hop.slot), frame_bytes_, frames)) return false;
    const DeferHandlers nobody_takes_it(engine_->pe());
    return send_in_order(destination, pieces, bytes, Wait::yes);
  }
  PieceReader reader(pieces, bytes);
  ++alone_;
  const std::uint64_t message = next_message_++;
  const std::uint64_t value = slot_entries_[hop.slot].encode(part_mark, hop.key, engine_->id());
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    // Each entry of a frame counts as a message: of the parts of one message only the last one may count.
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
          reader.read(at + sizeof part, n, copy_bytes);
        },
        Wait::yes);
    offset += n;
  }
  return true;
}

KeyedMessage Core::keyed_message(const Arrival& arrival, std::size_t header_bytes) const {
  const FrameHeader& header = arrival.header;
  check_single(arrival);
  if (header.payload_bytes < padding_ + header_bytes) {
    refuse_frame(arrival, "its payload", header.payload_bytes, "at least", padding_ + header_bytes);
  }
  if (header.count != 1) refuse_frame(arrival, "its count of messages", header.count, "equal to", 1);
  KeyedMessage message;
  std::memcpy(&message.header, arrival.payload + padding_, sizeof message.header);
  message.at = arrival.payload + padding_ + header_bytes;
  message.bytes = header.payload_bytes - padding_ - header_bytes;
  if (message.header.key.pe != header.source) {
    refuse_frame(arrival, "the owner of its content", message.header.key.pe, "equal to PE", header.source);
  }
  return message;
}

void refuse_content(std::uint64_t bytes, std::size_t element_bytes) {
  throw FormatError(fmt::format("zero-copy content has {}, which is no multiple of its elements of {}",
                                counted(bytes, "byte"), counted(element_bytes, "byte")));
}

void KeyedMessage::keep() {
  kept.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
  if (bytes != 0) std::memcpy(kept.data(), at, bytes);
  at = reinterpret_cast<const std::byte*>(kept.data());
}

void refuse_destination(PeId source, std::size_t wanted, std::size_t given) {
  throw UsageError(fmt::format("room for {} was posted for {} that PE {} sends: they do not fit",
                               counted(given, "element"), wanted, source.value));
}

}  // namespace headway::aggregate
