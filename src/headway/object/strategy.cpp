// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/strategy.hpp>
#include <limits>
#include <numeric>
#include <queue>

namespace headway {

namespace {

std::vector<double> sums_of(std::span<const ElementLoad> elements, std::size_t pes) {
  std::vector<double> sums(pes);
  for (const ElementLoad& element : elements) sums[element.pe] += element.load_s;
  return sums;
}

using Order = std::vector<std::size_t>;
Order heaviest_first(std::span<const ElementLoad> elements) {
  Order order(elements.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return elements[i].load_s; });
  return order;
}

/// Finds the least loaded PE while loads change.
class LeastLoaded {
 public:
  explicit LeastLoaded(std::vector<double> sums) : sums_(std::move(sums)) {
    for (std::size_t pe = 0; pe < sums_.size(); ++pe) queue_.emplace(sums_[pe], PeId(pe));
  }
  double sum(PeId pe) const { return sums_[pe]; }
  double max() const { return *std::ranges::max_element(sums_); }
  PeId pe() {
    while (queue_.top().first != sums_[queue_.top().second]) queue_.pop();  // outdated
    return queue_.top().second;
  }
  void add(PeId pe, double load_s) {
    sums_[pe] += load_s;
    queue_.emplace(sums_[pe], pe);
  }

 private:
  using Sum = std::pair<double, PeId>;
  std::vector<double> sums_;
  std::priority_queue<Sum, std::vector<Sum>, std::greater<>> queue_;
};

enum class Others { at_once, last };

/// Heaviest first. An element stays if its PE does not exceed `limit` with it. The others go to the least loaded PE: in
/// their turn, or after all that stay.
void spread(std::span<ElementLoad> elements, const Order& order, std::size_t pes, double limit, Others when) {
  LeastLoaded least((std::vector<double>(pes)));
  std::vector<std::size_t> others;
  const auto assign = [&](ElementLoad& element) {
    const PeId to = least.pe();
    if (least.sum(element.pe) > least.sum(to)) element.pe = to;
    least.add(element.pe, element.load_s);
  };
  for (const std::size_t i : order) {
    if (least.sum(elements[i].pe) + elements[i].load_s <= limit)
      least.add(elements[i].pe, elements[i].load_s);
    else if (when == Others::at_once)
      assign(elements[i]);
    else
      others.push_back(i);
  }
  for (const std::size_t i : others) assign(elements[i]);
}

/// From PEs with more than `allowed`, most loaded first, moves the heaviest elements to the least loaded PEs.
void relieve(std::span<ElementLoad> elements, const Order& order, std::size_t pes, double allowed) {
  LeastLoaded least(sums_of(elements, pes));
  std::vector<std::vector<std::size_t>> of(pes);
  for (const std::size_t i : order) of[elements[i].pe].push_back(i);
  std::vector<PeId> loaded;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    if (least.sum(PeId(pe)) > allowed) loaded.emplace_back(pe);
  }
  std::ranges::stable_sort(loaded, [&](PeId a, PeId b) { return least.sum(a) > least.sum(b); });
  for (const PeId from : loaded) {
    for (const std::size_t i : of[from]) {
      if (least.sum(from) <= allowed) break;
      ElementLoad& element = elements[i];
      const PeId to = least.pe();
      if (element.load_s <= 0 || least.sum(to) + element.load_s > allowed) continue;
      least.add(from, -element.load_s);
      least.add(to, element.load_s);
      element.pe = to;
    }
  }
}

/// An assignment of elements to PEs, and its cost.
struct Assignment {
  std::vector<PeId> targets;
  double max_s = 0;
  std::size_t moves = 0;
};

/// Of several assignments with nearly the smallest maximum, takes the one with the fewest moves.
void balance_greedily(std::span<ElementLoad> elements, std::size_t pes) {
  constexpr double close = 1.02, gain_least = 1.03;
  const std::vector<double> sums = sums_of(elements, pes);
  const double before = std::ranges::max(sums), mean = std::accumulate(sums.begin(), sums.end(), 0.0) / double(pes);
  if (before <= mean * gain_least) return;
  const Order order = heaviest_first(elements);
  std::vector<Assignment> assignments;
  std::vector<ElementLoad> placed;
  const auto add_assignment = [&](auto assign, auto... how) {
    placed.assign(elements.begin(), elements.end());
    assign(placed, order, pes, how...);
    Assignment assignment{{}, std::ranges::max(sums_of(placed, pes))};
    for (std::size_t i = 0; i < elements.size(); ++i) {
      assignment.targets.push_back(placed[i].pe);
      assignment.moves += placed[i].pe != elements[i].pe;
    }
    assignments.push_back(std::move(assignment));
  };
  add_assignment(spread, -1.0, Others::at_once);
  const double reachable = assignments[0].max_s;
  if (before <= reachable * gain_least) return;
  for (const double limit : {mean, (mean + reachable) / 2, reachable, reachable * (1 + close) / 2, reachable * close}) {
    const double rounded = limit * (1 + 1e-9);
    add_assignment(relieve, rounded);
    add_assignment(spread, rounded, Others::at_once);
    add_assignment(spread, rounded, Others::last);
  }
  const double best = std::ranges::min(assignments, {}, &Assignment::max_s).max_s;
  const auto moves_if_close = [&](const Assignment& assignment) {
    return assignment.max_s <= best * close ? assignment.moves : std::numeric_limits<std::size_t>::max();
  };
  const Assignment& chosen = *std::ranges::min_element(assignments, {}, moves_if_close);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i].pe = chosen.targets[i];
}

}  // namespace

BalanceStrategy::BalanceStrategy(std::string name, BalanceFunction function)
    : name_(std::move(name)), function_(std::move(function)) {
  if (!function_)
    throw UsageError(
        fmt::format("balancing by \"{}\": the strategy is an empty function: give one that can be called", name_));
}

void BalanceStrategy::operator()(std::span<ElementLoad> elements, std::size_t pes) const {
  function_(elements, pes);
  for (const ElementLoad& element : elements) {
    if (element.pe < pes) continue;
    throw UsageError(fmt::format("balancing by \"{}\": the strategy gave element {} to PE {}: PEs are 0 to {}", name_,
                                 element.element, element.pe, pes - 1));
  }
}

BalanceStrategy BalanceStrategy::known(std::string name, BalanceFunction function) {
  BalanceStrategy strategy(std::move(name), std::move(function));
  strategy.known_by_name_ = true;
  return strategy;
}

BalanceStrategy greedy() { return BalanceStrategy::known("greedy", balance_greedily); }

BalanceStrategy refine(double tolerance) {
  if (!(tolerance >= 0) || std::isinf(tolerance)) {
    throw SettingError(fmt::format("refine({}): the tolerance must be finite and at least 0", tolerance));
  }
  const auto assign = [tolerance](std::span<ElementLoad> elements, std::size_t pes) {
    const std::vector<double> sums = sums_of(elements, pes);
    const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / double(pes);
    relieve(elements, heaviest_first(elements), pes, mean * (1 + tolerance));
  };
  return BalanceStrategy::known(tolerance == 0.05 ? "refine" : fmt::format("refine({})", tolerance), assign);
}

BalanceStrategy rotate() {
  return BalanceStrategy::known("rotate", [](std::span<ElementLoad> elements, std::size_t pes) {
    for (ElementLoad& element : elements) element.pe = PeId((element.pe + 1) % pes);
  });
}

BalanceStrategy balance_by(BalanceFunction own) { return {"own", std::move(own)}; }

BalanceStrategy parse_balance(std::string_view name) {
  if (name == "greedy") return greedy();
  if (name == "refine") return refine();
  if (name == "rotate") return rotate();
  throw SettingError(fmt::format("balance \"{}\": greedy, refine and rotate are allowed", name));
}

std::string to_string(const BalanceTable& table) {
  const char* const unit = table.counted ? "" : " s";
  const double mean = table.mean_s > 0 ? table.mean_s : 1;
  std::string text = fmt::format("balance by {}: {} of {} moved, {}, in {:.6f} s{}\n", table.strategy, table.moved,
                                 base::counted(table.elements, "element"), base::counted(table.moved_bytes, "byte"),
                                 table.seconds, table.counted ? "; no loads measured: each element counts as 1" : "");
  if (table.moving != 0)
    text += fmt::format("{} more {} coroutines are done\n", table.moving,
                        base::by_number(table.moving, "moves when its", "move when their"));
  if (table.missed != 0) text += fmt::format("{} more had left before\n", table.missed);
  text += fmt::format("{:>6} {:>10} {:>10} {:>14} {:>14}\n", "PE", "elements", "now", "load", "predicted");
  for (std::size_t pe = 0; pe < table.rows.size(); ++pe) {
    const BalanceTable::Row& row = table.rows[pe];
    text += fmt::format("{:>6} {:>10} {:>10} {:>12.6f}{:2} {:>12.6f}{:2}\n", pe, row.elements_before,
                        row.elements_after, row.before_s, unit, row.after_s, unit);
  }
  text += fmt::format("max/mean {:.3f}, predicted {:.3f}\n", table.max_before_s / mean, table.max_after_s / mean);
  return text;
}

namespace object {

LoadList list_of(std::span<const Loads> loads) {
  LoadList list;
  bool measured = false;
  for (std::size_t pe = 0; pe < loads.size(); ++pe) {
    const std::vector<std::uint64_t>& counts = loads[pe].counts;
    if (counts.size() != loads[0].counts.size()) {
      throw UsageError(fmt::format("balancing {} on PE 0 and {} on PE {}: all PEs must give the same collections",
                                   base::counted(loads[0].counts.size(), "collection"), counts.size(), pe));
    }
    std::size_t i = 0;
    for (std::size_t collection = 0; collection < counts.size(); ++collection) {
      for (const std::size_t end = i + counts[collection]; i < end; ++i) {
        const double load_s = loads[pe].loads_s.at(i);
        list.elements.push_back({list.elements.size(), PeId(pe), load_s, std::uint32_t(collection)});
        measured = measured || load_s > 0;
      }
    }
  }
  list.counted = !measured;
  if (!measured) {
    for (ElementLoad& element : list.elements) element.load_s = 1;
  }
  return list;
}

BalanceTable table_of(std::span<const ElementLoad> before, std::span<const ElementLoad> after, std::size_t pes) {
  BalanceTable table;
  table.elements = before.size();
  table.rows.resize(pes, BalanceTable::Row{0, 0, 0, 0});
  double total = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    BalanceTable::Row &from = table.rows[before[i].pe], &to = table.rows[after[i].pe];
    ++from.elements_before;
    ++to.elements_after;
    from.before_s += before[i].load_s;
    to.after_s += before[i].load_s;
    total += before[i].load_s;
  }
  for (const BalanceTable::Row& row : table.rows) {
    table.max_before_s = std::max(table.max_before_s, row.before_s);
    table.max_after_s = std::max(table.max_after_s, row.after_s);
  }
  table.mean_s = total / double(pes);
  return table;
}

}  // namespace object

}  // namespace headway
