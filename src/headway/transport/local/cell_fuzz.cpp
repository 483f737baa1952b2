// SPDX-License-Identifier: BSD-3-Clause
// Damaged shared memory: cells of an inbox, frames that they refer to, and the stack of returned frames.
//
// An input:  | what, 1 byte | header, 24 | content of the cell, 224 | links of returned frames, 8 each |
#include <algorithm>
#include <array>
#include <cstring>
#include <fuzz/fuzz.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/format_error.hpp>
#include <headway/transport/local/local.hpp>
#include <memory>
#include <string>

namespace headway::local {
namespace {

using fuzz::Broken;
using fuzz::Bytes;

constexpr std::size_t pes = 3, me = 1;
constexpr std::size_t cell_at = 1 + sizeof(transport::FrameHeader), links_at = cell_at + sizeof(Cell::bytes);

class Cells final : public fuzz::Target {
 public:
  std::vector<Bytes> valid_inputs() override {
    begin_round(0);
    std::vector<Bytes> inputs;
    for (const std::size_t source : {std::size_t(0), me, std::size_t(2)}) {
      for (const std::size_t payload : {0, 8, 24, 32, 100, 194, 216, 224, 225, 3000}) {
        for (const std::size_t tail : {0, 8, 30}) inputs.push_back(posted(source, payload, tail));
      }
    }
    Bytes returns = inputs.back();
    for (const std::uint64_t at : lent_) append(returns, at);
    inputs.push_back(returns);
    return inputs;
  }

  /// One round in eight has eager slots, which only large frame memory has.
  void begin_round(std::uint64_t round) override {
    for (std::unique_ptr<transport::Endpoint>& endpoint : endpoints_) endpoint.reset();
    arena_bytes_ = round % 8 == 3 ? 16_MiB : 64_KiB;
    segment_ = std::make_unique<Segment>(pes, 1, pes, arena_bytes_);
    for (std::size_t pe = 0; pe < pes; ++pe) endpoints_[pe] = make_endpoint(*segment_, pe);
    ticket_ = 0;
    lent_.clear();
    for (std::size_t i = 0; i < 4; ++i) lend();
  }

  void mutate(Bytes& input, const Bytes& other, Random& random) override {
    input.resize(std::max(input.size(), links_at));
    switch (random.below(7)) {
      case 0: put(input, 1 + 4 * random.below(4), std::uint32_t(fuzz::boundary_value(random, 32))); return;
      case 1: input[1 + offsetof(transport::FrameHeader, kind)] ^= std::byte(1 << random.below(8)); return;
      case 2: put(input, cell_at + 8 * random.below(2), place(random)); return;
      case 3:
        if (input.size() < links_at + 64) append(input, random.one_in(2) ? place(random) : lent_[random.below(4)]);
        return;
      case 4: input[0] = std::byte(random.below(256)); return;
      case 5:
        put(input, 1 + 4 * random.below(2), std::uint32_t(transport::by_value_bytes_most + random.below(5) - 2));
        return;
      default: fuzz::change_bytes(input, 1, other, random);
    }
  }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    Bytes& whole = input_;
    whole.assign(input.begin(), input.end());
    whole.resize(std::max(whole.size(), links_at));
    try {
      if (whole.size() > links_at)
        take_back(whole);
      else
        take(whole);
    } catch (const FormatError& error) {
      refusal_ = error.what();
    }
    return refusal_;
  }

 private:
  template <class T>
  static void put(Bytes& input, std::size_t at, T value) {
    std::memcpy(input.data() + at, &value, sizeof value);
  }
  template <class T>
  static T get(const Bytes& input, std::size_t at) {
    T value;
    std::memcpy(&value, input.data() + at, sizeof value);
    return value;
  }
  static void append(Bytes& input, std::uint64_t value) {
    input.resize(input.size() + sizeof value);
    put(input, input.size() - sizeof value, value);
  }

  /// The content of a cell from a correct sender.
  Bytes posted(std::size_t source, std::size_t payload, std::size_t tail) {
    Bytes input(links_at);
    transport::FrameHeader header{
        std::uint32_t(payload), std::uint32_t(tail), 1, std::uint16_t(source), 0, 0, 0, 0, 0, 0};
    if (payload + tail > sizeof(Cell::bytes)) {
      header.kind = kind_by_reference;
      const std::uint64_t block = segment_->offset(segment_->arena(source)) + 4096;
      const Cell::Reference reference{block, block + transport::frame_overhead + payload + tail};
      std::memcpy(input.data() + cell_at, &reference, sizeof reference);
    }
    put(input, 1, header);
    return input;
  }

  /// An offset in the segment, at an edge of its parts, or beyond it.
  std::uint64_t place(Random& random) const {
    const std::uint64_t arena = segment_->offset(segment_->arena(random.below(pes + 1)));
    switch (random.below(4)) {
      case 0: return arena + (random.below(9) - 4) * 128;
      case 1: return arena + random.below(arena_bytes_) / 128 * 128;
      case 2: return arena + fuzz::boundary_value(random, arena_bytes_);
      default: return fuzz::boundary_value(random, segment_->bytes());
    }
  }

  void lend() {
    transport::Frame* frame = endpoints_[me]->try_claim(300, lent_.size());
    if (frame == nullptr) throw Broken("frame memory is lost");
    lent_.push_back(segment_->offset(frame));
  }

  /// Polls the cell. Payload and tail of the arrival must lie in readable memory of its source.
  void take(const Bytes& input) {
    const std::size_t number = ticket_ % inbox_cells;
    Cell& cell = segment_->inbox(me)[number];
    cell.header = get<transport::FrameHeader>(input, 1);
    std::memcpy(cell.bytes, input.data() + cell_at, sizeof cell.bytes);
    cell.sequence.store(2 * (ticket_ / inbox_cells) + 1);
    ++ticket_;
    transport::Arrival arrival;
    if (!endpoints_[me]->poll(arrival)) throw Broken("a published cell is not seen");
    const transport::FrameHeader& header = arrival.header;
    if (reinterpret_cast<std::uintptr_t>(arrival.payload) % 64 != 32) throw Broken("a payload is not aligned");
    if (arrival.owned == 0 && (cell.header.kind & kind_in_eager_slot) != 0) {
      expect_inside(arrival, segment_->eager_slots(me)[eager_slot_of(number)].bytes, transport::in_place_bytes_most);
    } else if (arrival.owned == 0) {
      expect_inside(arrival, cell.bytes, sizeof cell.bytes);
    } else {
      if (header.source >= pes) throw Broken("a frame of no PE has come");
      expect_inside(arrival, segment_->arena(header.source) + transport::frame_overhead,
                    arena_bytes_ - transport::frame_overhead);
    }
    endpoints_[me]->release(arrival);
    if (arrival.owned != 0) swallow(header.source);
  }

  static void expect_inside(const transport::Arrival& arrival, const std::byte* memory, std::size_t bytes) {
    const std::byte* const end = memory + bytes;
    const std::byte* const tail = arrival.tail_end - arrival.header.tail_bytes;
    const bool inside = arrival.payload >= memory && arrival.payload <= end && arrival.tail_end >= memory &&
                        arrival.tail_end <= end && tail >= arrival.payload &&
                        arrival.header.payload_bytes <= std::size_t(tail - arrival.payload);
    if (!inside) throw Broken("an arrival lies outside the memory that it came in");
  }

  /// Releases memory that was never claimed.
  void swallow(std::size_t pe) {
    try {
      if (pe == me)
        take_all();
      else
        (void)endpoints_[pe]->reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr);
    } catch (const FormatError&) {
    }
  }

  /// The stack of returned frames starts at the first link, and each frame's own link is the next one.
  void take_back(const Bytes& input) {
    const std::size_t links = (input.size() - links_at) / sizeof(std::uint64_t);
    if (links == 0) return;
    const auto first = get<std::uint64_t>(input, links_at);
    std::uint64_t at = first;
    for (std::size_t i = 1; i <= links; ++i) {
      const std::uint64_t next = i == links ? 0 : get<std::uint64_t>(input, links_at + 8 * i);
      if (at > segment_->bytes() - sizeof(transport::Frame) || at % alignof(transport::Frame) != 0 ||
          at < segment_->offset(segment_->arena(0))) {
        break;
      }
      reinterpret_cast<transport::Frame*>(segment_->at(at))->link = next;
      at = next;
    }
    segment_->control(me).returned.store(first);
    take_all();
  }

  /// Checks that each returned frame was lent, and returned once.
  void take_all() {
    struct Taken {
      std::array<bool, 4> back{};
    } taken;
    auto restore = [&] {
      for (std::size_t i = 0; i < taken.back.size(); ++i) {
        if (!taken.back[i]) continue;
        transport::Frame* frame = endpoints_[me]->try_claim(300, i);
        if (frame == nullptr) throw Broken("frame memory is lost");
        lent_[i] = segment_->offset(frame);
      }
    };
    try {
      (void)endpoints_[me]->reclaim(
          [](void* context, std::size_t bytes, std::uint64_t tag) {
            auto& back = static_cast<Taken*>(context)->back;
            if (bytes != 512 || tag >= back.size()) throw Broken("what was never lent has come back");
            if (back[tag]) throw Broken("a frame has come back twice");
            back[tag] = true;
          },
          &taken);
    } catch (const FormatError&) {
      restore();
      throw;
    }
    restore();
  }

  std::size_t arena_bytes_ = 64_KiB;
  std::unique_ptr<Segment> segment_;
  std::array<std::unique_ptr<transport::Endpoint>, pes> endpoints_;
  std::uint64_t ticket_ = 0;
  std::vector<std::uint64_t> lent_;  // frames of this PE that others hold, by tag
  Bytes input_;
  std::string refusal_;
};

}  // namespace
}  // namespace headway::local

int main(int argc, char** argv) {
  headway::local::Cells cells;
  return headway::fuzz::run(argc, argv, "headway_cell_fuzz", cells);
}
