// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <headway/base/counted.hpp>
#include <headway/report/stall_page.hpp>
#include <map>
#include <utility>

namespace headway::report {
namespace {

constexpr std::size_t all_described_max = 8;  // with at most so many PEs each is described in full
constexpr std::size_t described_max = 12;     // with more PEs, so many of them
constexpr std::size_t named_max = 8;          // ranges of PEs in a list

using Numbers = std::vector<std::size_t>;

/// "PE 3", "PE 3 and 5", "PE 3 to 7, 9 to 12 and 20 more".
std::string name_of(const Numbers& pes) {
  std::vector<std::string> ranges;
  std::size_t named = 0;
  for (std::size_t i = 0; i < pes.size() && ranges.size() < named_max;) {
    std::size_t end = i + 1;
    while (end < pes.size() && pes[end] == pes[end - 1] + 1) ++end;
    if (end - i == 2) end = i + 1;  // a range has at least three PEs
    ranges.push_back(end - i == 1 ? fmt::format("{}", pes[i]) : fmt::format("{} to {}", pes[i], pes[end - 1]));
    named += end - i;
    i = end;
  }
  std::string text = fmt::format("PE {}", fmt::join(ranges, ", "));
  if (named < pes.size()) text += fmt::format(" and {} more", pes.size() - named);
  return text;
}

/// The graph of PEs that wait for PEs.
class WaitGraph {
 public:
  explicit WaitGraph(std::span<const PeView> pes) : pes_(pes), waited_for_by_(pes.size()) {
    for (std::size_t pe = 0; pe < pes.size(); ++pe) {
      for (const std::uint32_t other : edges(pe)) {
        if (other < pes.size()) waited_for_by_[other].push_back(pe);
      }
    }
  }

  /// The PEs of one cycle, in order; empty if there is none. Only PEs that have not moved since they were asked: else
  /// the cycle may never have existed at one time.
  Numbers cycle() const {
    enum class Mark : char { fresh, on_path, done };
    std::vector<Mark> marks(pes_.size(), Mark::fresh);
    std::vector<std::size_t> next(pes_.size(), 0);  // index of the next edge to follow
    for (std::size_t start = 0; start < pes_.size(); ++start) {
      if (marks[start] != Mark::fresh || !pes_[start].consistent) continue;
      Numbers path = {start};
      marks[start] = Mark::on_path;
      while (!path.empty()) {
        const std::size_t pe = path.back();
        if (next[pe] == edges(pe).size()) {
          marks[pe] = Mark::done;
          path.pop_back();
          continue;
        }
        const std::size_t other = edges(pe)[next[pe]++];
        if (other >= pes_.size() || !pes_[other].consistent) continue;
        if (marks[other] == Mark::on_path) return {std::ranges::find(path, other), path.end()};
        if (marks[other] == Mark::done) continue;
        marks[other] = Mark::on_path;
        path.push_back(other);
      }
    }
    return {};
  }

  /// PEs that others wait for and that wait for no PE. Most awaited first.
  std::vector<std::pair<std::size_t, std::size_t>> roots() const {
    std::vector<std::pair<std::size_t, std::size_t>> found;  // PE, number of PEs that wait for it
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
      if (!waited_for_by_[pe].empty() && edges(pe).empty()) found.emplace_back(pe, count_waiting_for(pe));
    }
    std::ranges::stable_sort(found, std::greater(), [](const auto& root) { return root.second; });
    return found;
  }

 private:
  /// A PE with an outside cause of delay, such as a stop signal, waits for no PE.
  std::span<const std::uint32_t> edges(std::size_t pe) const {
    if (!pes_[pe].state.empty()) return {};
    return pes_[pe].report.waits_for;
  }

  /// Number of PEs that wait for `root`, directly or through others.
  std::size_t count_waiting_for(std::size_t root) const {
    std::vector<char> seen(pes_.size(), 0);
    Numbers reached = {root};
    seen[root] = 1;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::size_t pe : waited_for_by_[reached[i]]) {
        if (!std::exchange(seen[pe], char(1))) reached.push_back(pe);
      }
    }
    return reached.size() - 1;
  }

  std::span<const PeView> pes_;
  std::vector<Numbers> waited_for_by_;
};

std::string state_of(const PeView& pe) {
  std::string text = pe.meeting ? "waits for the others to start" : describe(pe.phase);
  if (!pe.state.empty()) text += " and " + pe.state;
  return text;
}

std::string describe_pe(std::size_t number, const PeView& pe) {
  std::string text = fmt::format("\n  PE {}{} {}", number, pe.process.empty() ? "" : " (" + pe.process + ")",
                                 pe.meeting ? "waits for the others to start" : describe(pe.phase));
  if (!pe.report.waits_for.empty()) {
    text += (pe.meeting ? ": " : " for ") + name_of({pe.report.waits_for.begin(), pe.report.waits_for.end()});
  }
  if (!pe.state.empty()) text += " and " + pe.state;
  text += fmt::format("; {}messages created {}, handled {}; frames held {}",
                      pe.answered ? "" : "when it last waited: ", pe.created, pe.handled, pe.held_frames);
  if (!pe.last_handler.empty()) {
    text += fmt::format("\n    {}: {}", pe.phase == Phase::handling ? "in the handler of" : "last handler run",
                        pe.last_handler);
  }
  for (const std::string& line : pe.report.lines) text += "\n    " + line;
  for (std::size_t i = 0; i < pe.stack.size(); ++i) text += (i == 0 ? "\n    in " : "\n      by ") + pe.stack[i];
  return text;
}

/// Describes PEs in the same state together.
std::string describe_group(const Numbers& group, std::span<const PeView> pes) {
  if (group.size() == 1) return describe_pe(group[0], pes[group[0]]);
  std::uint64_t created = 0, handled = 0, frames = 0;
  for (const std::size_t pe : group) {
    created += pes[pe].created;
    handled += pes[pe].handled;
    frames += pes[pe].held_frames;
  }
  const PeView& first = pes[group[0]];
  std::string text =
      fmt::format("\n  {} ({}): each {}; together messages created {}, handled {}; frames held {}", name_of(group),
                  base::counted(group.size(), "PE"), state_of(first), created, handled, frames);
  for (std::size_t i = 0; i < first.stack.size(); ++i) {
    text += (i == 0 ? fmt::format("\n    PE {} in ", group[0]) : "\n      by ") + first.stack[i];
  }
  return text;
}

/// Selects PEs by relevance: those in a cycle, those that others wait for, those with an outside cause, those with
/// messages. Sorted by number.
Numbers most_relevant(std::span<const PeView> pes, const Numbers& cycle,
                      const std::vector<std::pair<std::size_t, std::size_t>>& roots) {
  Numbers numbers;
  std::vector<char> taken(pes.size(), 0);
  auto take = [&](std::size_t pe) {
    if (numbers.size() < described_max && !std::exchange(taken[pe], char(1))) numbers.push_back(pe);
  };
  for (const std::size_t pe : cycle) take(pe);
  for (const auto& [pe, waiting] : roots) {
    if (pes[pe].phase != Phase::finished) take(pe);
  }
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    if (!pes[pe].state.empty()) take(pe);
  }
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    if (waits(pes[pe].phase) && !pes[pe].report.lines.empty()) take(pe);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string conclusions(std::span<const PeView> pes, const Numbers& cycle,
                        const std::vector<std::pair<std::size_t, std::size_t>>& roots) {
  std::string text;
  if (!cycle.empty()) {
    text += fmt::format("\n  a cycle: PE {} waits for PE {}", fmt::join(cycle, " waits for PE "), cycle[0]);
  }
  // One line for PEs in the same state that equally many PEs wait for.
  std::vector<std::pair<std::pair<std::size_t, std::string>, Numbers>> lines;
  for (const auto& [pe, waiting] : roots) {
    const std::pair key(waiting, state_of(pes[pe]));
    auto line = std::ranges::find(lines, key, [](const auto& known) { return known.first; });
    if (line == lines.end()) line = lines.insert(line, {key, {}});
    line->second.push_back(pe);
  }
  constexpr std::size_t lines_max = 4;
  for (std::size_t i = 0; i < std::min(lines.size(), lines_max); ++i) {
    const auto& [key, named] = lines[i];
    const auto& [waiting, state] = key;
    text +=
        fmt::format("\n  {} {} in the end for {}{} {}",
                    waiting == pes.size() - 1 && waiting > 1 ? "all others"
                    : waiting == 1                           ? "one PE"
                                                             : base::counted(waiting, "PE"),
                    waiting == 1 ? "waits" : "wait", name_of(named), named.size() == 1 ? ", which" : "; each", state);
  }
  return text;
}

}  // namespace

PeView view_of(const PeBoard& board) {
  PeView view;
  view.phase = board.phase.load(std::memory_order_relaxed);
  view.created = board.created.load(std::memory_order_relaxed);
  view.handled = board.handled.load(std::memory_order_relaxed);
  view.held_frames = board.held_frames.load(std::memory_order_relaxed);
  const std::uint32_t peer = board.waiting_for.load(std::memory_order_relaxed);
  if (waits(view.phase) && peer != no_pe) view.report.waits_for = {peer};
  if (const LastHandler last = board.last_handler.load(std::memory_order_relaxed); last.number != 0) {
    const std::size_t handler = last.number - 1;
    view.last_handler =
        handler < handler_names_max ? board.handler_names[handler] : fmt::format("aggregator number {}", handler);
    view.last_handler += fmt::format(", for a frame from PE {}", last.source);
  }
  return view;
}

std::string stall_page(const std::string& title, std::span<const PeView> pes) {
  const WaitGraph waiting(pes);
  const Numbers cycle = waiting.cycle();
  const auto roots = waiting.roots();
  std::string text = title + conclusions(pes, cycle, roots);
  Numbers shown;
  if (pes.size() <= all_described_max) {
    for (std::size_t pe = 0; pe < pes.size(); ++pe) shown.push_back(pe);
  } else {
    shown = most_relevant(pes, cycle, roots);
  }
  for (const std::size_t pe : shown) text += describe_pe(pe, pes[pe]);
  std::map<std::string, Numbers> others;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    if (!std::ranges::binary_search(shown, pe)) others[state_of(pes[pe])].push_back(pe);
  }
  for (const auto& [state, group] : others) text += describe_group(group, pes);
  return text;
}

}  // namespace headway::report
