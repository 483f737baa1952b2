// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <headway/transport/dial/delay_queue.hpp>
#include <headway/transport/endpoint.hpp>
#include <numeric>

namespace headway::dial {

DelayQueue::DelayQueue(std::size_t senders, std::size_t copies_max)
    : places_(std::make_unique_for_overwrite<Place[]>(copies_max)), free_(copies_max), last_visible_(senders) {
  std::iota(free_.rbegin(), free_.rend(), 0u);
  held_.reserve(copies_max);
}

void DelayQueue::take(const transport::Arrival& arrival, std::size_t sender, std::int64_t visible_at) {
  Held held{std::max(visible_at, last_visible_[sender]), ++sequence_, arrival, no_place};
  last_visible_[sender] = held.visible_at;
  if (arrival.owned == 0) {
    const std::size_t bytes = arrival.header.payload_bytes + std::size_t(arrival.header.tail_bytes);
    if (bytes > sizeof(Place::bytes)) {
      throw transport::InvalidFrame(fmt::format("a frame from PE {} by value has {} bytes; allowed is 0 to {}",
                                                arrival.header.source, bytes, sizeof(Place::bytes)));
    }
    held.place = free_.back();
    free_.pop_back();
    Place& place = places_[held.place];
    std::memcpy(place.bytes, arrival.payload, arrival.header.payload_bytes);
    std::memcpy(place.bytes + arrival.header.payload_bytes, arrival.tail_end - arrival.header.tail_bytes,
                arrival.header.tail_bytes);
    held.arrival.payload = place.bytes;
    held.arrival.tail_end = place.bytes + bytes;
  }
  held_.push_back(held);
  std::ranges::push_heap(held_, std::greater<>());
}

bool DelayQueue::pop(std::int64_t now, transport::Arrival& arrival) {
  free_read();
  if (next() > now) return false;
  std::ranges::pop_heap(held_, std::greater<>());
  arrival = held_.back().arrival;
  read_place_ = held_.back().place;
  held_.pop_back();
  return true;
}

void DelayQueue::free_read() {
  if (read_place_ != no_place) free_.push_back(read_place_);
  read_place_ = no_place;
}

}  // namespace headway::dial
