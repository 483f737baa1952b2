// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <fuzz/frame_input.hpp>

namespace headway::fuzz {
namespace {

transport::FrameHeader header_of(const Bytes& input) {
  transport::FrameHeader header;
  std::memcpy(&header, input.data() + header_at, sizeof header);
  return header;
}
void set_header(Bytes& input, const transport::FrameHeader& header) {
  std::memcpy(input.data() + header_at, &header, sizeof header);
}

template <class T>
void put(Bytes& input, std::size_t at, T value) {
  if (at + sizeof value <= input.size()) std::memcpy(input.data() + at, &value, sizeof value);
}

/// More or fewer bytes at the end of the payload, or of the tail, which the header knows of.
void stretch(Bytes& input, transport::FrameHeader& header, bool tail, std::int64_t by) {
  std::uint32_t& bytes = tail ? header.tail_bytes : header.payload_bytes;
  by = std::max(by, -std::int64_t(bytes));
  const auto at = input.begin() + std::ptrdiff_t(body_at + header.payload_bytes);
  if (by < 0) {
    if (tail)
      input.erase(at, at - by);
    else
      input.erase(at + by, at);
  } else {
    const Bytes more(std::size_t(by), std::byte(by % 3));
    input.insert(at, more.begin(), more.end());
  }
  bytes = std::uint32_t(bytes + by);
}

}  // namespace

void mutate_frame(Bytes& input, const Bytes& other, Random& random) {
  if (input.size() < body_at) input.resize(body_at);
  transport::FrameHeader header = header_of(input);
  const std::size_t body = input.size() - body_at;
  header.payload_bytes = std::uint32_t(std::min<std::size_t>(header.payload_bytes, body));
  header.tail_bytes = std::uint32_t(body - header.payload_bytes);
  switch (random.below(14)) {
    case 0:
      input[0] = std::byte(random.one_in(4) ? random.below(128) : random.below(32) & ~unsigned(keep_signature));
      break;
    case 1: header.count = std::uint32_t(boundary_value(random, header.count)); break;
    case 2: header.source = std::uint16_t(random.one_in(2) ? random.below(24) : boundary_value(random, 20)); break;
    case 3: header.handler = std::uint32_t(random.one_in(8) ? boundary_value(random, 32) : random.below(36)); break;
    case 4: header.hops_left = std::uint8_t(random.one_in(4) ? random.below(256) : random.below(4)); break;
    case 5: header.flags = std::uint8_t(random.one_in(4) ? random.below(256) : random.below(4)); break;
    case 6:
      if (random.one_in(4))
        header.kind = std::uint8_t(random.below(4));
      else if (random.one_in(4))
        header.scope = std::uint8_t(random.one_in(2) ? random.below(4) : random.below(256));
      else
        header.signature = std::uint16_t(random.next());
      break;
    case 7: {  // entries and the count of them
      const auto entry = std::int64_t(random.below(8)), by = std::int64_t(random.below(5)) - 2;
      header.count = std::uint32_t(header.count + by);
      stretch(input, header, true, by * entry);
      break;
    }
    case 8: {  // messages and the count of them
      const auto size = std::int64_t(1) << random.below(7), by = std::int64_t(random.below(5)) - 2;
      if (random.one_in(2)) header.count = std::uint32_t(header.count + by);
      stretch(input, header, false, by * size);
      break;
    }
    case 9:  // the numbers of a part, a call, or a control message
      put(input, body_at + 8 * random.below(4), boundary_value(random, header.payload_bytes));
      break;
    case 10:  // an entry
      if (header.tail_bytes != 0) {
        const std::size_t at = body_at + header.payload_bytes + random.below(header.tail_bytes);
        if (random.one_in(2))
          put(input, at, std::uint8_t(boundary_value(random, 32)));
        else
          put(input, at, std::uint16_t(boundary_value(random, header.payload_bytes)));
      }
      break;
    case 11:
      if (other.size() >= body_at) header = header_of(other);
      break;
    default:
      change_bytes(input, body_at, other, random);
      header.payload_bytes =
          std::uint32_t(input.size() - body_at - std::min<std::size_t>(header.tail_bytes, input.size() - body_at));
  }
  set_header(input, header);
}

// --- lengths

void FrameLengths::Line::add(std::int64_t c, std::int64_t b) {
  if (frames++ == 0) {
    count = c;
    bytes = b;
  } else if (slope >= 0 || c == count) {
    straight &= b == (c == count ? bytes : at(c));
  } else {
    straight &= (b - bytes) % (c - count) == 0 && (b - bytes) / (c - count) >= 0;
    if (straight) slope = (b - bytes) / (c - count);
  }
}

namespace {
bool is_buffer(const transport::FrameHeader& header) {
  return header.kind == std::uint8_t(transport::FrameKind::messages) && header.flags == 0;
}
}  // namespace

void FrameLengths::learn(const transport::FrameHeader& header) {
  if (!is_buffer(header)) return;
  payloads_[header.handler].add(header.count, header.payload_bytes);
  Line& tail = tails_[{header.handler, header.hops_left}];
  if (tail.frames == 0) tail.add(0, 0);  // no messages have none
  tail.add(header.count, header.tail_bytes);
}

bool FrameLengths::may_have(const transport::FrameHeader& header) const {
  const auto payload = payloads_.find(header.handler);
  const auto tail = tails_.find({header.handler, header.hops_left});
  if (!is_buffer(header) || tail == tails_.end()) return true;
  return (!payload->second.known() || payload->second.at(header.count) == header.payload_bytes) &&
         (!tail->second.known() || tail->second.at(header.count) == header.tail_bytes);
}

std::size_t FrameLengths::fixed_with_entries() const {
  std::size_t ways = 0;
  for (const auto& [way, tail] : tails_) ways += payloads_.at(way.first).known() && tail.known() && tail.slope > 0;
  return ways;
}

}  // namespace headway::fuzz
