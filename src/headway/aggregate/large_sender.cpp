// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <headway/aggregate/large_sender.hpp>
#include <headway/aggregate/reassembly.hpp>
#include <headway/base/copy_large.hpp>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// A large block rarely gets free while handlers claim returned memory. Once they have claimed as much as the frame,
/// the wait ends and the message goes in parts.
am::OpenFrame LargeSender::claim(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing) {
  am::Engine& engine = poster_->engine();
  am::FrameStore& store = engine.store();
  const std::size_t frame_bytes = transport::frame_overhead + table_->layout().padding + bytes;
  if (wait == Wait::no || !engine.may_block()) {
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
  if (!is_decided()) engine.wait_until(is_decided, report::Phase::sending, std::uint32_t(destination));
  return has_room ? store.try_claim(destination, frame_bytes, 0, writing) : am::OpenFrame();
}

void LargeSender::write_past_caches(const am::OpenFrame& frame, Pieces pieces, std::size_t bytes) {
  PieceReader(pieces, bytes).read(poster_->message_of(frame), bytes, base::copy_past_caches);
}

bool LargeSender::has_room(std::size_t target, std::uint8_t hops_left, std::size_t frame_bytes, std::size_t frames) {
  am::FrameStore& store = poster_->engine().store();
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
bool LargeSender::send_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  am::Engine& engine = poster_->engine();
  const FrameLayout& layout = table_->layout();
  const std::size_t part_max = layout.part_bytes_max;
  // This processor reads the parts itself: they are for this PE or for the wire.
  const bool read_here = destination == engine.id() || poster_->leaves_host(destination);
  if (wait == Wait::no) {
    if (!has_room(destination, 0, layout.part_frame_bytes, (bytes + part_max - 1) / part_max)) return false;
    const DeferHandlers nobody_takes_it(engine.pe());
    put_in_parts(destination, pieces, bytes, part_max, read_here ? in_caches : past_caches);
    return true;
  }
  if (read_here) {
    put_in_parts(destination, pieces, bytes, part_max, in_caches);
    return true;
  }
  if (part_paths_ == nullptr) part_paths_ = std::make_unique<rma::FastestPath<2>>();
  const auto path = PartPath(part_paths_->pick(bytes, 1u << past_caches | 1u << in_caches).path);
  am::FrameStore& store = engine.store();
  store.reclaim();
  const std::uint64_t before = store.outstanding_bytes(destination);
  const std::int64_t begin = engine.now();
  const std::size_t short_max = engine.sizes().short_part_frame_bytes - (layout.part_frame_bytes - part_max);
  const std::size_t most = path == in_caches ? std::min(part_max, short_max) : part_max;
  const bool claimed = put_in_parts(destination, pieces, bytes, most, path);
  const std::int64_t ns = engine.now() - begin;
  store.reclaim();
  const std::uint64_t now = store.outstanding_bytes(destination), left = now > before ? now - before : 0;
  // A receiver that has hardly begun gives no measurement.
  if (claimed && left < bytes - bytes / 8) {
    part_paths_->learn(path, bytes, std::int64_t(double(ns) * double(bytes) / double(bytes - left)));
  }
  return true;
}

/// Returns whether all parts found frame memory.
bool LargeSender::put_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, std::size_t part_max,
                               PartPath path) {
  PieceReader reader(pieces, bytes);
  poster_->count_alone(bytes);
  const std::uint64_t message = next_message_++;
  bool claimed = true;
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    const am::OpenFrame frame = poster_->claim_alone(destination, sizeof(PartHeader) + n, Wait::yes);
    claimed = claimed && frame.memory != am::OpenFrame::Memory::spilled;
    const PartHeader part{message, bytes, offset, n};
    std::byte* const at = poster_->message_of(frame);
    std::memcpy(at, &part, sizeof part);
    reader.read(at + sizeof part, n, path == in_caches ? base::copy_bytes : base::copy_past_caches);
    if (offset != 0) ++poster_->counters().flushes[std::size_t(am::FlushReason::full)];
    const bool last = offset + n == bytes;
    poster_->post(destination, frame, poster_->engine().scope(), table_->layout().padding + sizeof part + n, 0,
                  last ? 1 : 0, frame_of_part);
    poster_->poll_every_few_posts();
    offset += n;
  }
  return claimed;
}

bool LargeSender::send_in_order(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait) {
  am::Engine& engine = poster_->engine();
  const FrameLayout& layout = table_->layout();
  const Route::Hop& hop = route_->first(destination);
  const std::size_t outside =
      transport::frame_overhead + layout.padding + 8 + entry_slack + layout.alignment + sizeof(PartHeader);
  const std::size_t part_max = std::max<std::size_t>((layout.frame_bytes - outside) / 2, 1);
  if (wait == Wait::no) {
    const std::size_t frames = (bytes + part_max - 1) / part_max;
    if (!has_room(route_->target(hop.slot), table_->hops_left(hop.slot), layout.frame_bytes, frames)) return false;
    const DeferHandlers nobody_takes_it(engine.pe());
    return send_in_order(destination, pieces, bytes, Wait::yes);
  }
  PieceReader reader(pieces, bytes);
  Counters& counters = poster_->counters();
  ++counters.alone;
  const std::uint64_t message = next_message_++;
  const std::uint64_t value = table_->entry(hop.slot).encode(part_mark, hop.key, engine.id());
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t n = std::min(part_max, bytes - offset);
    // Each entry of a frame counts as a message: of the parts of one message only the last one may count.
    if (offset + n < bytes) {
      engine.count_created(~std::uint64_t(0));
      --counters.created;
    }
    counters.payload_bytes -= base::align_up(sizeof(PartHeader) + n, layout.alignment) - n;  // counts the message alone
    table_->put(
        hop.slot, sizeof(PartHeader) + n, value,
        [&](std::byte* at) {
          const PartHeader part{message, bytes, offset, n};
          std::memcpy(at, &part, sizeof part);
          reader.read(at + sizeof part, n, base::copy_bytes);
        },
        Wait::yes);
    offset += n;
  }
  return true;
}

}  // namespace headway::aggregate
