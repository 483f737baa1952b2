// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <algorithm>

namespace headway::limit {

std::size_t Exchange::bytes(std::size_t pes, std::size_t buffer_bytes) { return pes * pes * Ring::bytes(buffer_bytes); }

Exchange::Exchange(Pe& pe, std::byte* shared, std::size_t buffer_bytes, Receiver& receiver)
    : pe_(pe), receiver_(receiver), cursors_(pe.size()), own_(buffer_bytes + Ring::slack), starts_(pe.size()) {
  const auto ring = [&](std::size_t source, std::size_t target) {
    return Ring(shared + (source * pe.size() + target) * Ring::bytes(buffer_bytes), buffer_bytes);
  };
  for (std::size_t other = 0; other < pe.size(); ++other) {
    outgoing_.push_back(ring(pe.id(), other));
    incoming_.push_back(ring(other, pe.id()));
  }
}

void Exchange::clear(std::size_t depth) {
  for (Ring& ring : outgoing_) ring.clear(depth);
  std::ranges::fill(own_, std::byte(0));
}

void Exchange::begin(const PassSetup& setup) {
  setup_ = setup;
  receiver_.buffer_bytes = setup.buffer_bytes;
  ended_ = 0;
  delivered_ = 0;
  for (Ring& ring : outgoing_) ring.use(setup.depth);
  for (Ring& ring : incoming_) ring.use(setup.depth);
  for (const std::size_t target : setup_.targets) claim(target);
}

void Exchange::claim(std::size_t target) {
  std::byte* buffer = target == pe_.id() ? own_.data() : outgoing_[target].try_claim();
  for (Waiting waiting = pe_.waiting(); buffer == nullptr; buffer = outgoing_[target].try_claim()) {
    if (!deliver_arrived()) waiting.turn();
  }
  starts_[target] = buffer;
  cursors_[target] = {buffer, buffer + setup_.buffer_bytes};
}

void Exchange::turn_over(std::size_t target) {
  const auto filled = std::size_t(cursors_[target].at - starts_[target]);
  if (target == pe_.id()) {
    deliver(target, starts_[target], filled);
  } else {
    outgoing_[target].post(filled, false);
    deliver_arrived();
  }
  claim(target);
}

std::uint64_t Exchange::finish() {
  for (const std::size_t target : setup_.targets) {
    const auto filled = std::size_t(cursors_[target].at - starts_[target]);
    if (target == pe_.id()) {
      deliver(target, starts_[target], filled);
    } else {
      outgoing_[target].post(filled, true);
    }
  }
  for (Waiting waiting = pe_.waiting(); ended_ < setup_.sources;) {
    if (!deliver_arrived()) waiting.turn();
  }
  return delivered_;
}

bool Exchange::deliver_arrived() {
  bool any = false;
  for (std::size_t source = 0; source < incoming_.size(); ++source) {
    if (source == pe_.id()) continue;
    Ring& ring = incoming_[source];
    const BufferHead* const buffer = ring.peek();  // one buffer a turn: else this PE might receive and never send
    if (buffer == nullptr) continue;
    deliver(source, reinterpret_cast<const std::byte*>(buffer) + cache_line, buffer->bytes);
    ended_ += buffer->last;
    ring.release();
    any = true;
  }
  return any;
}

}  // namespace headway::limit
