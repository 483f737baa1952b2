// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/meeting.hpp>
#include <headway/collective/tree.hpp>
#include <headway/report/board.hpp>
#include <map>
#include <optional>
#include <vector>

namespace headway::collective {
namespace {

using Bytes = std::vector<std::byte>;

// Each reads the boards of all others.
constexpr std::size_t meeting_pes_max = 32;
// Polls before a member asks to be woken. A poll notices a soon arrival cheaply; a wake message costs the last member
// about 100 ns. Below the number of polls after which a spinning PE sleeps.
constexpr unsigned looks_when_spinning = 100;

[[noreturn]] void fail_sizes(std::size_t own, std::size_t pe, std::size_t others, std::size_t other) {
  throw UsageError(
      fmt::format("allreduce() with values of different sizes, {} on PE {} and {} on PE {}: all PEs call the same "
                  "collectives in the same order",
                  base::counted(own, "byte"), pe, others, other));
}

struct Boards {
  std::size_t size() const { return places.size(); }
  std::atomic<std::uint64_t>& round(std::size_t pe, std::size_t slot) { return places[pe]->slots[slot].round; }
  std::atomic<std::uint32_t>& asks(std::size_t pe) { return places[pe]->asks; }
  report::MeetingPlace::Slot& slot(std::size_t pe, std::uint64_t round) const {
    return places[pe]->slots[BasicMeeting<Boards>::slot(round)];
  }

  std::vector<report::MeetingPlace*> places;  // by PE
};

/// Where all PEs share memory, their boards. Elsewhere the place of a PE in the binomial tree over all PEs: the
/// subtree of a PE holds consecutive PEs, its own first. So reducing the children in ascending order combines all
/// values in the order of the PEs.
class ReductionState final : public am::Extension {
 public:
  explicit ReductionState(Pe& pe) : meeting(boards, pe.id()) {
    am::Engine& engine = pe.engine();
    transport::Endpoint& endpoint = engine.endpoint();
    wake = engine.add_control([](std::size_t, std::span<const std::byte>) {});
    if (endpoint.shared_memory().shares_boards() && pe.size() > 1 && pe.size() <= meeting_pes_max &&
        engine.collective_strategy() != base::CollectiveStrategy::messages) {
      for (std::size_t other = 0; other < pe.size(); ++other) {
        boards.places.push_back(&report::board_of(endpoint, other).meeting);
      }
    }
    const std::size_t id = engine.id();
    parent = id & (id - 1);
    for (std::size_t bit = 1; (id & bit) == 0 && id + bit < engine.size(); bit <<= 1) children.push_back(id + bit);
    from_child.resize(children.size());
    contribution = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
      const auto child = std::size_t(std::ranges::find(children, source) - children.begin());
      if (child == children.size())
        throw FormatError(
            fmt::format("a contribution of PE {} arrived, which is no child of this PE in the tree", source));
      if (from_child[child])
        throw FormatError(fmt::format("a second contribution of PE {} arrived, expected 1", source));
      from_child[child].emplace(bytes.begin(), bytes.end());
    });
    outcome = engine.add_control([this, id](std::size_t source, std::span<const std::byte> bytes) {
      if (id == 0 || source != parent)
        throw FormatError(fmt::format("an outcome of PE {} arrived, expected one of PE {}", source, parent));
      if (result) throw FormatError(fmt::format("a second outcome of PE {} arrived, expected 1", source));
      result.emplace(bytes.begin(), bytes.end());
    });
  }

  void add_waits_for(std::vector<std::uint32_t>& pes) const override {
    if (!inside) return;
    if (meets) {
      for (std::size_t other = 0; other < boards.size(); ++other) {
        if (!meeting.has_arrived(other, round)) pes.push_back(std::uint32_t(other));
      }
      return;
    }
    for (std::size_t c = 0; c < children.size(); ++c) {
      if (!given && !from_child[c]) pes.push_back(std::uint32_t(children[c]));
    }
    if (given) pes.push_back(std::uint32_t(parent));
  }

  bool children_in() const {
    for (const auto& value : from_child) {
      if (!value) return false;
    }
    return true;
  }

  /// Starts the next round.
  void arrive(std::size_t pe, std::span<const std::byte> value) {
    ++round;
    report::MeetingPlace::Slot& own = boards.slot(pe, round);
    own.bytes = value.size();
    if (meets && !value.empty()) std::memcpy(own.value, value.data(), value.size());
    meeting.arrive(round);
  }

  Boards boards;  // empty: they do not meet
  BasicMeeting<Boards> meeting;
  std::uint64_t round = 0;
  bool meets = false;  // in the call in progress
  std::uint16_t wake = 0;

  std::size_t parent = 0;
  std::vector<std::size_t> children;
  // A child contributes to the next reduction only after its parent has sent the outcome of this one, and so has
  // consumed this contribution. One place per child is enough.
  std::vector<std::optional<Bytes>> from_child;
  std::optional<Bytes> result;
  bool inside = false;  // a call is waiting
  bool given = false;   // this PE has contributed and waits for the result of its parent
  std::uint16_t contribution = 0, outcome = 0;
};

const std::size_t extension = am::register_extension(
    [](Pe& pe) -> std::unique_ptr<am::Extension> { return std::make_unique<ReductionState>(pe); });

/// By boards: each PE writes its value, and reads the values of all when all have arrived.
void meet(am::Engine& engine, ReductionState& state, std::span<std::byte> value, const Combine& combine) {
  BasicMeeting<Boards>& meeting = state.meeting;
  const std::uint64_t round = state.round;
  engine.progress();  // a PE that always arrives last would handle no messages otherwise
  if (meeting.all_have_arrived(round)) {
    meeting.tell_who_asks([&](std::size_t pe) { engine.send_control(pe, state.wake, {}); });
  } else {
    unsigned looks = engine.idle() == am::Idle::spin ? looks_when_spinning : 1;
    const auto all_have_arrived = [&] {
      if (meeting.all_have_arrived(round)) return true;
      if (looks == 0 || --looks != 0) return false;
      meeting.ask();
      return meeting.all_have_arrived(round);
    };
    engine.wait_until(all_have_arrived, report::Phase::collective);
    if (looks == 0) meeting.stop_asking();
  }
  for (std::size_t pe = 0; pe < engine.size(); ++pe) {
    const std::size_t bytes = state.boards.slot(pe, round).bytes;
    if (bytes != value.size()) fail_sizes(value.size(), engine.id(), bytes, pe);
  }
  if (value.empty()) return;
  constexpr std::size_t levels_max = std::bit_width(meeting_pes_max - 1);
  std::array<std::byte, levels_max * report::MeetingPlace::Slot::bytes_max> scratch;
  const auto given = [&](std::size_t pe) { return state.boards.slot(pe, round).value; };
  std::memcpy(value.data(), reduce_subtree(0, engine.size(), value.size(), given, combine, scratch.data()),
              value.size());
}

/// Along the tree, by control messages.
void climb(am::Engine& engine, ReductionState& state, std::span<std::byte> value, const Combine& combine) {
  engine.wait_until([&] { return state.children_in(); }, report::Phase::collective);
  for (std::size_t c = 0; c < state.children.size(); ++c) {
    std::optional<Bytes>& child = state.from_child[c];
    if (child->size() != value.size()) fail_sizes(value.size(), engine.id(), child->size(), state.children[c]);
    combine(value.data(), child->data());
    child.reset();
  }
  if (engine.id() != 0) {
    engine.send_control(state.parent, state.contribution, value);
    state.given = true;
    engine.wait_until([&] { return state.result.has_value(); }, report::Phase::collective, std::uint32_t(state.parent));
    state.given = false;
    if (state.result->size() != value.size()) {
      throw FormatError(fmt::format("the outcome of allreduce() that arrived from PE {} to PE {} has {} instead of {}",
                                    state.parent, engine.id(), base::counted(state.result->size(), "byte"),
                                    value.size()));
    }
    if (!value.empty()) std::memcpy(value.data(), state.result->data(), value.size());
    state.result.reset();
  }
  for (auto child = state.children.rbegin(); child != state.children.rend(); ++child) {
    engine.send_control(*child, state.outcome, value);
  }
}

}  // namespace

void allreduce(Pe& pe, std::span<std::byte> value, const Combine& combine) {
  am::Engine& engine = pe.engine();
  engine.require_may_block(report::Phase::collective);
  auto& state = static_cast<ReductionState&>(engine.extension(extension));
  const bool may_meet = state.boards.size() != 0;
  state.meets = may_meet && value.size() <= report::MeetingPlace::Slot::bytes_max;
  state.inside = true;
  if (may_meet)
    state.arrive(engine.id(), value);  // also a value that goes by the tree, because those of other PEs may not
  if (state.meets)
    meet(engine, state, value, combine);
  else
    climb(engine, state, value, combine);
  state.inside = false;
}

}  // namespace headway::collective
