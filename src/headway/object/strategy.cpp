#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/strategy.hpp>
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

/// Picks the least loaded PE of sums that change.
class Least {
 public:
  explicit Least(std::vector<double> sums) : sums_(std::move(sums)) {
    for (std::size_t pe = 0; pe < sums_.size(); ++pe) queue_.push({sums_[pe], PeId(pe)});
  }
  double sum(PeId pe) const { return sums_[pe]; }
  double max() const { return *std::ranges::max_element(sums_); }
  PeId pe() {
    while (queue_.top().first != sums_[queue_.top().second]) queue_.pop();  // of before
    return queue_.top().second;
  }
  void add(PeId pe, double load_s) {
    sums_[pe] += load_s;
    queue_.push({sums_[pe], pe});
  }

 private:
  using Sum = std::pair<double, PeId>;
  std::vector<double> sums_;
  std::priority_queue<Sum, std::vector<Sum>, std::greater<>> queue_;
};

enum class Others { at_once, last };

/// Heaviest first: those stay that fit where they are without making it more than `limit`; the others go to the least
/// loaded PE each, in their turn or when all that stay have been counted.
void spread(std::span<ElementLoad> elements, const Order& order, std::size_t pes, double limit, Others when) {
  Least least((std::vector<double>(pes)));
  std::vector<std::size_t> others;
  const auto place = [&](ElementLoad& element) {
    const PeId to = least.pe();
    if (least.sum(element.pe) > least.sum(to)) element.pe = to;
    least.add(element.pe, element.load_s);
  };
  for (const std::size_t i : order) {
    if (least.sum(elements[i].pe) + elements[i].load_s <= limit)
      least.add(elements[i].pe, elements[i].load_s);
    else if (when == Others::at_once)
      place(elements[i]);
    else
      others.push_back(i);
  }
  for (const std::size_t i : others) place(elements[i]);
}

/// From PEs that have more than `allowed`, most loaded first, heaviest elements first, to the least loaded each.
void relieve(std::span<ElementLoad> elements, const Order& order, std::size_t pes, double allowed) {
  Least least(sums_of(elements, pes));
  std::vector<std::vector<std::size_t>> of(pes);
  for (const std::size_t i : order) of[elements[i].pe].push_back(i);
  std::vector<PeId> loaded;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    if (least.sum(PeId(pe)) > allowed) loaded.push_back(PeId(pe));
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

/// A candidate to place elements, and what it costs.
struct Candidate {
  std::vector<PeId> targets;
  double max_s = 0;
  std::size_t moves = 0;
};

/// Of several candidates the one that moves fewest, of those that come close to the best.
void even_out(std::span<ElementLoad> elements, std::size_t pes) {
  constexpr double close = 1.02, gain_least = 1.03;
  const std::vector<double> sums = sums_of(elements, pes);
  const double before = std::ranges::max(sums), mean = std::accumulate(sums.begin(), sums.end(), 0.0) / double(pes);
  if (before <= mean * gain_least) return;
  const Order order = heaviest_first(elements);
  std::vector<Candidate> candidates;
  std::vector<ElementLoad> placed;
  const auto add_way = [&](auto place, auto... how) {
    placed.assign(elements.begin(), elements.end());
    place(placed, order, pes, how...);
    Candidate candidate{{}, std::ranges::max(sums_of(placed, pes))};
    for (std::size_t i = 0; i < elements.size(); ++i) {
      candidate.targets.push_back(placed[i].pe);
      candidate.moves += placed[i].pe != elements[i].pe;
    }
    candidates.push_back(std::move(candidate));
  };
  add_way(spread, -1.0, Others::at_once);
  const double possible = candidates[0].max_s;
  if (before <= possible * gain_least) return;
  for (const double limit : {mean, (mean + possible) / 2, possible, possible * (1 + close) / 2, possible * close}) {
    const double rounded = limit * (1 + 1e-9);
    add_way(relieve, rounded);
    add_way(spread, rounded, Others::at_once);
    add_way(spread, rounded, Others::last);
  }
  const double best = std::ranges::min(candidates, {}, &Candidate::max_s).max_s;
  const Candidate* chosen = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.max_s <= best * close && (chosen == nullptr || candidate.moves < chosen->moves)) chosen = &candidate;
  }
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i].pe = chosen->targets[i];
}

}  // namespace

BalanceStrategy::BalanceStrategy(std::string name, BalanceFunction function)
    : name_(std::move(name)), function_(std::move(function)) {
  if (!function_) throw UsageError(fmt::format("balancing by \"{}\": the strategy is an empty function", name_));
}

void BalanceStrategy::operator()(std::span<ElementLoad> elements, std::size_t pes) const {
  function_(elements, pes);
  for (const ElementLoad& element : elements) {
    if (element.pe < pes) continue;
    throw UsageError(fmt::format("balancing by \"{}\": element {} is to go to PE {}: PEs are 0 to {}", name_,
                                 element.element, element.pe, pes - 1));
  }
}

BalanceStrategy BalanceStrategy::known(std::string name, BalanceFunction function) {
  BalanceStrategy strategy(std::move(name), std::move(function));
  strategy.known_by_name_ = true;
  return strategy;
}

BalanceStrategy greedy() { return BalanceStrategy::known("greedy", even_out); }

BalanceStrategy refine(double tolerance) {
  if (!(tolerance >= 0) || std::isinf(tolerance)) {
    throw SettingError(fmt::format("refine({}): the tolerance is a number from 0 on", tolerance));
  }
  const auto place = [tolerance](std::span<ElementLoad> elements, std::size_t pes) {
    const std::vector<double> sums = sums_of(elements, pes);
    const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / double(pes);
    relieve(elements, heaviest_first(elements), pes, mean * (1 + tolerance));
  };
  return BalanceStrategy::known(tolerance == 0.05 ? "refine" : fmt::format("refine({})", tolerance), place);
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
                                 counted(table.elements, "element"), counted(table.moved_bytes, "byte"), table.seconds,
                                 table.counted ? "; no loads measured: each element counts as 1" : "");
  if (table.moving != 0) text += fmt::format("{} more {} coroutines are done\n", table.moving,
                                             by_number(table.moving, "moves when its", "move when their"));
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

Picture picture_of(std::span<const Loads> loads) {
  Picture picture;
  bool measured = false;
  for (std::size_t pe = 0; pe < loads.size(); ++pe) {
    const std::vector<std::uint64_t>& counts = loads[pe].counts;
    if (counts.size() != loads[0].counts.size()) {
      throw UsageError(fmt::format("balancing {} on PE 0 and {} on PE {}: they are the same on all PEs",
                                   counted(loads[0].counts.size(), "collection"), counts.size(), pe));
    }
    std::size_t i = 0;
    for (std::size_t collection = 0; collection < counts.size(); ++collection) {
      for (const std::size_t end = i + counts[collection]; i < end; ++i) {
        const double load_s = loads[pe].loads_s.at(i);
        picture.elements.push_back({picture.elements.size(), PeId(pe), load_s, std::uint32_t(collection)});
        measured = measured || load_s > 0;
      }
    }
  }
  picture.counted = !measured;
  if (!measured) {
    for (ElementLoad& element : picture.elements) element.load_s = 1;
  }
  return picture;
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
