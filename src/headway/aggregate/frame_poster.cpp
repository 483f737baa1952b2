// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cstring>
#include <headway/aggregate/frame_poster.hpp>

namespace headway::aggregate {
namespace {

constexpr std::uint32_t posts_per_poll_alone = 32;

// Where a header's scope lies in its last word; its length is the low half of the first.
static_assert(std::endian::native == std::endian::little && offsetof(transport::FrameHeader, payload_bytes) == 0);
constexpr unsigned scope_shift = 8 * (offsetof(transport::FrameHeader, scope) - 16);

}  // namespace

FramePoster::FramePoster(am::Engine& engine, std::size_t padding)
    : engine_(&engine),
      process_first_(engine.id() - engine.id() % engine.endpoint().host_map().pes_per_process),
      process_pes_(engine.endpoint().host_map().pes_per_process),
      host_(engine.endpoint().host_map().own_host()),
      padding_(padding) {}

void FramePoster::identify(std::uint32_t number, std::uint16_t signature) {
  number_ = number;
  signature_ = signature;
  const auto fill_words = [this](HeaderWords& words, std::uint8_t flags) {
    transport::FrameHeader header;
    fill_header(header, engine_->scope(), 0, 0, 0, 1, flags);
    header.scope = 0;
    std::memcpy(words, &header, sizeof header);
  };
  fill_words(alone_header_, frame_of_one);
  fill_words(key_header_, frame_of_key);
}

void FramePoster::fill_header(transport::FrameHeader& header, am::ScopeId scope, std::uint8_t hops_left,
                              std::size_t payload_bytes, std::size_t tail_bytes, std::uint32_t count,
                              std::uint8_t flags) const {
  header.payload_bytes = std::uint32_t(payload_bytes);
  header.tail_bytes = std::uint32_t(tail_bytes);
  header.count = count;
  header.flags = flags;
  engine_->stamp(header, number_, signature_, hops_left, scope);
}

void FramePoster::count_frame(std::size_t target, std::size_t bytes) {
  ++counters_.frames;
  counters_.frames_between_processes += leaves_process(target);
  counters_.frames_between_hosts += leaves_host(target);
  counters_.wire_bytes += sizeof(transport::FrameHeader) + bytes;
}

// --- frames

am::OpenFrame FramePoster::claim_waiting(std::size_t target, std::size_t bytes, std::uint8_t hops_left,
                                         am::Writing writing) {
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

am::OpenFrame FramePoster::claim_alone(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing) {
  am::FrameStore& store = engine_->store();
  const std::size_t frame_bytes = transport::frame_overhead + padding_ + bytes;
  if (wait == Wait::no) {
    return store.queued(destination, 0) ? am::OpenFrame() : store.try_claim(destination, frame_bytes, 0, writing);
  }
  return engine_->may_block() ? claim_waiting(destination, frame_bytes, 0, writing)
                              : store.claim_or_spill(destination, frame_bytes, 0, writing);
}

void FramePoster::post(std::size_t target, const am::OpenFrame& frame, am::ScopeId scope, std::size_t payload_bytes,
                       std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) {
  fill_header(frame.frame->header, scope, frame.hops_left, payload_bytes, tail_bytes, count, flags);
  count_frame(target, payload_bytes + tail_bytes);
  engine_->store().post(target, frame);
}

void FramePoster::post_merged(std::size_t target, am::OpenFrame frame, std::size_t owner, std::uint8_t tag,
                              std::size_t payload_bytes, std::size_t tail_bytes, std::uint32_t count) {
  if (owner != engine_->id()) frame.memory = am::OpenFrame::Memory::of_another;
  count_frame(target, payload_bytes + tail_bytes);
  transport::FrameHeader& header = frame.frame->header;
  fill_header(header, am::root_scope, frame.hops_left, payload_bytes, tail_bytes, count, 0);
  header.source = std::uint16_t(owner);
  header.scope = tag;
  engine_->store().post(target, frame);
}

// --- single messages

void FramePoster::poll_every_few_posts() {
  if (++posts_ % posts_per_poll_alone == 0) [[unlikely]]
    poll_some();
}

void FramePoster::count_alone(std::size_t bytes) {
  engine_->count_created(1);
  ++counters_.created;
  ++counters_.alone;
  counters_.payload_bytes += bytes;
  ++counters_.flushes[std::size_t(am::FlushReason::full)];
}

void FramePoster::post_alone(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes,
                             std::uint8_t flags) {
  count_alone(bytes);
  post(destination, frame, engine_->scope(), padding_ + bytes, 0, 1, flags);
  poll_every_few_posts();
}

bool FramePoster::post_by_value(std::size_t destination, transport::SmallFrame& message, std::size_t bytes, Wait wait) {
  return post_small(alone_header_, destination, message, bytes, wait);
}

bool FramePoster::post_key_by_value(std::size_t destination, transport::SmallFrame& message, std::size_t bytes) {
  return post_small(key_header_, destination, message, bytes, Wait::yes);
}

/// Written as words: the header is read again at once, and loads after narrower stores would stall.
inline __attribute__((always_inline)) void FramePoster::complete(HeaderWords& header, const HeaderWords& form,
                                                                 std::size_t bytes) const {
  header[0] = form[0] | bytes;
  header[1] = form[1];
  header[2] = form[2] | std::uint64_t(engine_->scope_tag()) << scope_shift;
}

inline __attribute__((always_inline)) void FramePoster::count_by_value(std::size_t destination, std::size_t bytes) {
  engine_->count_created(1);
  ++counters_.by_value;
  if (leaves_process(destination)) {
    ++counters_.frames_between_processes;
    counters_.frames_between_hosts += leaves_host(destination);
  }
  counters_.by_value_bytes += bytes;
  poll_every_few_posts();
}

void FramePoster::post_in_place(std::size_t destination, std::size_t bytes) {
  HeaderWords words;
  complete(words, alone_header_, bytes);
  transport::FrameHeader header;
  std::memcpy(&header, words, sizeof header);
  engine_->store().post_in_place(destination, header);
  count_by_value(destination, bytes);
}

inline __attribute__((always_inline)) bool FramePoster::post_small(const HeaderWords& form, std::size_t destination,
                                                                   transport::SmallFrame& message, std::size_t bytes,
                                                                   Wait wait) {
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

bool FramePoster::post_by_value_later(std::size_t destination, transport::SmallFrame& message, Wait wait) {
  am::FrameStore& store = engine_->store();
  if (wait == Wait::no) return false;
  if (engine_->may_block()) {
    engine_->wait_polling([&] { return !store.spilling() && store.try_post_by_value(destination, message.frame); },
                          report::Phase::sending, std::uint32_t(destination));
    return true;
  }
  const transport::FrameHeader& header = message.frame.header;
  const am::OpenFrame spilled = store.claim_or_spill(destination, transport::frame_overhead + header.payload_bytes, 0);
  spilled.frame->header = header;
  std::memcpy(spilled.frame->payload(), message.message, header.payload_bytes);
  store.post(destination, spilled);
  return true;
}

}  // namespace headway::aggregate
