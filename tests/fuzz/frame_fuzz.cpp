// SPDX-License-Identifier: BSD-3-Clause
// Hostile frames: Engine, every kind of Aggregator, calls and collectives decode bytes that were a valid frame once.
//
// The transport has checked the bounds: payload and tail lie in the memory that the frame came in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <fuzz/frame_input.hpp>
#include <fuzz/frame_kinds.hpp>
#include <fuzz/fuzz.hpp>
#include <fuzz/memory_endpoint.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/collective/allreduce.hpp>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headway {
namespace {

using fuzz::body_at;
using fuzz::Broken;
using fuzz::Bytes;
using fuzz::header_at;
using fuzz::How;
using fuzz::Kinds;
using fuzz::MemoryEndpoint;
using fuzz::mutate_frame;
using fuzz::seen;
using fuzz::Seen;
using enum How;

constexpr std::size_t budget_bytes = 64_KiB;
constexpr std::int64_t buffers_wait_ns = 1'000'000;  // no buffer of a process waits so long for more

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("nothing more arrives") {}
};

constexpr std::array<std::size_t, 3> hosts{0, 4, 5};
/// How many PEs, which of them decodes, how many are threads of one process, and the first PE of each host.
struct Shape {
  std::size_t pes, me, pes_per_process;
  std::span<const std::size_t> hosts = {};
};
constexpr Shape shapes[] = {{7, 4, 1}, {20, 9, 1}, {13, 5, 4}, {18, 7, 3}, {11, 6, 1, hosts}};

/// Facts of the valid frames to all PEs of a shape: the signature of each handler, and lengths.
struct Valid {
  std::map<std::uint32_t, std::uint16_t> signatures;
  fuzz::FrameLengths lengths;
};

/// A PE by itself.
struct Node {
  Node(std::size_t id, const Shape& shape, MemoryEndpoint::Process& process, MemoryEndpoint::OnPost posted)
      : endpoint(id, shape.pes, sizeof(report::PeBoard), process, std::move(posted), shape.hosts),
        engine(endpoint, {.budget_bytes = budget_bytes,
                          .spill_bytes = 4_MiB,
                          .idle = am::Idle::sleep,
                          .while_waiting = [] { throw Stop(); }}),
        seen{shape.pes},
        kinds(std::make_unique<Kinds>(engine.pe(), seen)) {}

  MemoryEndpoint endpoint;
  am::Engine engine;
  Seen seen;
  std::unique_ptr<Kinds> kinds;
};

Bytes input_of(How how, const transport::FrameHeader& header, const std::byte* payload, const std::byte* tail_end) {
  Bytes input(body_at);
  input[0] = std::byte(how);
  std::memcpy(input.data() + header_at, &header, sizeof header);
  input.insert(input.end(), payload, payload + header.payload_bytes);
  input.insert(input.end(), tail_end - header.tail_bytes, tail_end);
  return input;
}

/// All PEs in this process, delivering to each other; keeps the frames to one of them.
class Capture {
 public:
  Capture(const Shape& shape, std::vector<Bytes>& inputs, Valid& valid)
      : me_(shape.me), inputs_(inputs), valid_(valid), pending_(shape.pes) {
    for (std::size_t pe = 0; pe < shape.pes; ++pe) {
      if (pe % shape.pes_per_process == 0) processes_.emplace_back().pes = shape.pes_per_process;
      nodes_.push_back(std::make_unique<Node>(
          pe, shape, processes_.back(),
          [this](std::size_t target, const transport::FrameHeader& header, const std::byte* payload,
                 const std::byte* tail_end) { post(target, header, payload, tail_end); }));
    }
    Random random(shape.pes);
    for (const std::size_t times : {1, 3, 12}) {
      for (const auto& node : nodes_) {
        seen = &node->seen;
        node->kinds->send(times, random);
        node->kinds->flush();
        deliver();
      }
      deliver();
    }
    for (const auto& node : nodes_) collect(*node, [&] { node->engine.quiesce(); });
    for (const auto& node : nodes_) collect(*node, [&] { (void)allreduce(node->engine.pe(), 1.5, std::plus<>()); });
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  void post(std::size_t target, const transport::FrameHeader& header, const std::byte* payload,
            const std::byte* tail_end) {
    const bool small =
        header.hops_left == 0 && header.payload_bytes + header.tail_bytes <= transport::by_value_bytes_most;
    Bytes input = input_of(small ? by_value : How(0), header, payload, tail_end);
    if (header.kind == std::uint8_t(transport::FrameKind::messages))
      valid_.signatures[header.handler] = header.signature;
    valid_.lengths.learn(header);
    if (target == me_ && often_enough(header)) inputs_.push_back(input);
    pending_[target].push_back(std::move(input));
  }

  /// A few of each kind will do.
  bool often_enough(const transport::FrameHeader& header) {
    const auto kind = std::array<unsigned, 5>{header.kind, header.handler, header.hops_left, header.flags,
                                              header.count > 3 ? 3u : header.count};
    return ++taken_[kind] <= 4;
  }

  void deliver() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t pe = 0; pe < nodes_.size(); ++pe) {
        any |= !pending_[pe].empty();
        give(pe);
        seen = &nodes_[pe]->seen;
        nodes_[pe]->endpoint.sleep(buffers_wait_ns);
        while (nodes_[pe]->engine.progress()) any = true;
      }
    }
  }

  void give(std::size_t pe) {
    for (Bytes& input : pending_[pe]) {
      const std::size_t bytes = input.size() - body_at;
      auto& lines = memory_.emplace_back((32 + bytes) / sizeof(Line) + 1);
      std::byte* const payload = reinterpret_cast<std::byte*>(lines.data()) + 32;
      if (bytes != 0) std::memcpy(payload, input.data() + body_at, bytes);
      transport::Arrival arrival;
      std::memcpy(&arrival.header, input.data() + header_at, sizeof arrival.header);
      arrival.payload = payload;
      arrival.tail_end = payload + bytes;
      arrival.owned = input[0] == std::byte(by_value) ? 0 : memory_.size();
      nodes_[pe]->endpoint.arrive(arrival);
    }
    pending_[pe].clear();
  }

  /// Keeps the frames that a PE posts in a collective until it has to wait.
  template <class Call>
  void collect(Node& node, Call call) {
    give(node.endpoint.id());
    try {
      call();
    } catch (const Stop&) {
    }
  }

  std::size_t me_;
  std::vector<Bytes>& inputs_;
  Valid& valid_;
  std::vector<std::vector<Bytes>> pending_;
  std::vector<std::vector<Line>> memory_;  // of frames that have been delivered: some are held until the end
  std::map<std::array<unsigned, 5>, int> taken_;
  std::deque<MemoryEndpoint::Process> processes_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

class Frames final : public fuzz::Target {
 public:
  std::vector<Bytes> valid_inputs() override {
    std::vector<Bytes> inputs;
    for (std::size_t i = 0; i < std::size(shapes); ++i) {
      Capture(shapes[i], inputs, valid_[i]);
      if (valid_[i].lengths.fixed_with_entries() < 5) throw Broken("the lengths of valid frames are not understood");
    }
    return inputs;
  }

  void begin_round(std::uint64_t round) override {
    shape_ = round % std::size(shapes);
    const Shape& shape = shapes[shape_];
    node_.reset();
    process_.pes = shape.pes_per_process;
    node_ =
        std::make_unique<Node>(shape.me, shape, process_,
                               [](std::size_t, const transport::FrameHeader&, const std::byte*, const std::byte*) {});
    seen = &node_->seen;
    for (const Held& held : held_) free_.push_back(held.place);
    held_.clear();
    next_owned_ = 1;
    spoilt_ = false;
    for (Place* place : free_) place->let_go();
  }

  bool exhausted() const override { return spoilt_ || (free_.empty() && places_.size() == places_max); }

  void mutate(Bytes& input, const Bytes& other, Random& random) override { mutate_frame(input, other, random); }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    if (input.size() < body_at) return refusal_;
    const auto how = How(std::to_integer<std::uint8_t>(input[0]));
    const transport::Arrival arrival = arrive(how, input);
    const bool alone = held_.size() == 1;
    node_->endpoint.refuse_claims((how & no_room) != 0);
    run(how);
    const bool refused = !refusal_.empty();
    if (refused) check_text(arrival, alone);
    settle(refused);
    if ((how & no_room) != 0 && !refused) go_on();
    if (node_->seen.broken != nullptr) throw Broken(node_->seen.broken);
    return refusal_;
  }

  /// Serialized tables: an entry is a node of 88 bytes and comes in two.
  std::size_t allocated_bytes_max(std::size_t input_bytes) const override { return (128u << 10) + 64 * input_bytes; }

 private:
  static constexpr std::size_t places_max = 256;

  /// Where a frame's payload and tail lie until it is given back.
  struct Place {
    fuzz::FencedMemory payload{8_KiB}, tail{8_KiB};
    void let_go() { payload.let_go(), tail.let_go(); }
  };

  struct Held {
    std::uint64_t number;
    bool by_value;
    Place* place;
    transport::FrameHeader header;
  };

  Place* free_place() {
    if (free_.empty()) {
      places_.push_back(std::make_unique<Place>());
      free_.push_back(places_.back().get());
    }
    Place* place = free_.back();
    free_.pop_back();
    return place;
  }

  transport::Arrival arrive(How how, std::span<const std::byte> input) {
    transport::Arrival arrival;
    transport::FrameHeader& header = arrival.header;
    std::memcpy(&header, input.data() + header_at, sizeof header);
    const std::span body = input.subspan(body_at);
    header.payload_bytes = std::uint32_t(std::min<std::size_t>(header.payload_bytes, body.size()));
    header.tail_bytes = std::uint32_t(std::min<std::size_t>(header.tail_bytes, body.size() - header.payload_bytes));
    const std::size_t bytes = header.payload_bytes + std::size_t(header.tail_bytes);
    if ((how & keep_signature) == 0) {
      const auto known = valid_[shape_].signatures.find(header.handler);
      if (known != valid_[shape_].signatures.end()) header.signature = known->second;
    }
    Place* const place = free_place();
    if ((how & tail_apart) != 0) {
      arrival.payload = place->payload.hold(body.first(header.payload_bytes), 64, 32, 0);
      // tails are read in words that reach up to 7 bytes below them
      arrival.tail_end =
          place->tail.hold(body.subspan(header.payload_bytes, header.tail_bytes), 1, 0, 7) + header.tail_bytes;
    } else {
      arrival.payload = place->payload.hold(body.first(bytes), 64, 32, 7);
      arrival.tail_end = arrival.payload + bytes;
    }
    const bool fits = (how & (by_value | tail_apart)) == by_value && bytes <= node_->endpoint.by_value_bytes_max();
    arrival.owned = fits ? 0 : next_owned_;
    held_.push_back({next_owned_++, fits, place, header});
    node_->endpoint.arrive(arrival);
    return arrival;
  }

  void run(How how) {
    am::Engine& engine = node_->engine;
    try {
      if ((how & in_quiesce) != 0)
        engine.quiesce();
      else if ((how & in_allreduce) != 0)
        (void)allreduce(engine.pe(), 1.5, std::plus<>());
      else if ((how & idle) != 0)
        engine.progress();
      else
        engine.poll_some();
    } catch (const am::RunFailed& failure) {
      refusal_ = failure.what();
    } catch (const FormatError& error) {
      refusal_ = error.what();
    } catch (const UsageError& error) {  // of a collective: others take part with other sizes
      refusal_ = error.what();
    } catch (const Stop&) {
    }
  }

  /// Once there is room, paused frames go on.
  void go_on() {
    node_->endpoint.refuse_claims(false);
    for (int i = 0; i < 4 && refusal_.empty(); ++i) run(idle);
    if (!refusal_.empty()) spoilt_ = true;  // it would be tried for ever
    settle(false);
  }

  /// Frames that the engine gave back may be used again. The engine copies frames that it holds by value, and keeps no
  /// reference to refused frames.
  void settle(bool refused) {
    if (node_->endpoint.has_arrivals()) spoilt_ = true;  // it failed before it looked at this one
    const std::uint64_t last = next_owned_ - 1;
    std::erase_if(held_, [&](const Held& held) {
      const bool released = node_->endpoint.take_released(held.number);
      // Those of an epoch that has not begun are given back, too, and looked at later.
      const bool handled = released && am::scope_of_tag(held.header.scope) == am::root_scope;
      if (handled && !valid_[shape_].lengths.may_have(held.header)) {
        throw Broken("a frame is handled whose length or tail does not fit its count");
      }
      const bool back = released || held.by_value || (refused && held.number == last);
      if (back) {
        held.place->let_go();
        free_.push_back(held.place);
      }
      return back;
    });
  }

  /// A refusal names the PE and the frame's source.
  void check_text(const transport::Arrival& arrival, bool alone) const {
    static constexpr std::array expected{
        "is not valid",   "damaged bytes",   "a message",       "a part of",         "a call",
        "a view's count", "different order", "destroyed there", "undelivered on PE", "allreduce()"};
    bool known = false;
    for (const char* part : expected) known |= refusal_.find(part) != std::string::npos;
    if (!known) throw Broken("a refusal that nobody expects: " + refusal_);
    // It may be about another frame, or about what one has left in a collective.
    if (!alone || refusal_.find("allreduce()") != std::string::npos) return;
    if (refusal_.find(fmt::format("PE {}", arrival.header.source)) == std::string::npos &&
        refusal_.find("undelivered") == std::string::npos) {
      throw Broken("a refusal does not name the source: " + refusal_);
    }
  }

  std::array<Valid, std::size(shapes)> valid_;
  std::size_t shape_ = 0;
  MemoryEndpoint::Process process_;
  std::unique_ptr<Node> node_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<Place*> free_;
  std::vector<Held> held_;  // the last one is the newest
  std::uint64_t next_owned_ = 1;
  bool spoilt_ = false;
  std::string refusal_;
};

}  // namespace
}  // namespace headway

int main(int argc, char** argv) {
  headway::Frames frames;
  return headway::fuzz::run(argc, argv, "headway_frame_fuzz", frames);
}
