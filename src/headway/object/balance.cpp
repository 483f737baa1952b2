#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/error.hpp>
#include <headway/object/balance.hpp>
#include <queue>

namespace headway {

namespace {

std::vector<double> sums_of(std::span<const ElementLoad> elements, std::size_t pes) {
  std::vector<double> sums(pes);
  for (const ElementLoad& element : elements) sums[element.pe] += element.load_s;
  return sums;
}

std::vector<std::size_t> heaviest_first(std::span<const ElementLoad> elements) {
  std::vector<std::size_t> order(elements.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return elements[a].load_s > elements[b].load_s; });
  return order;
}

void spread(std::span<ElementLoad> elements, std::size_t pes) {
  using Sum = std::pair<double, PeId>;
  std::priority_queue<Sum, std::vector<Sum>, std::greater<>> least;
  std::vector<double> sums(pes);
  for (std::size_t pe = 0; pe < pes; ++pe) least.push({0, PeId(pe)});
  for (const std::size_t i : heaviest_first(elements)) {
    ElementLoad& element = elements[i];
    while (least.top().first != sums[least.top().second]) least.pop();  // of before
    if (sums[element.pe] > least.top().first) element.pe = least.top().second;
    sums[element.pe] += element.load_s;
    least.push({sums[element.pe], element.pe});
  }
}

void relieve(std::span<ElementLoad> elements, std::size_t pes, double tolerance) {
  std::vector<double> sums = sums_of(elements, pes);
  double total = 0;
  for (const double sum : sums) total += sum;
  const double allowed = total / double(pes) * (1 + tolerance);
  std::vector<std::vector<std::size_t>> of(pes);
  for (const std::size_t i : heaviest_first(elements)) of[elements[i].pe].push_back(i);
  using Sum = std::pair<double, PeId>;
  std::priority_queue<Sum, std::vector<Sum>, std::greater<>> least;
  std::vector<PeId> loaded;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    least.push({sums[pe], PeId(pe)});
    if (sums[pe] > allowed) loaded.push_back(PeId(pe));
  }
  std::ranges::stable_sort(loaded, [&](PeId a, PeId b) { return sums[a] > sums[b]; });
  for (const PeId from : loaded) {
    for (const std::size_t i : of[from]) {
      if (sums[from] <= allowed) break;
      while (least.top().first != sums[least.top().second]) least.pop();  // of before
      const PeId to = least.top().second;
      ElementLoad& element = elements[i];
      if (element.load_s <= 0 || sums[to] + element.load_s > allowed) continue;
      sums[from] -= element.load_s;
      sums[to] += element.load_s;
      element.pe = to;
      least.push({sums[from], from});
      least.push({sums[to], to});
    }
  }
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
    throw UsageError(fmt::format("balancing by \"{}\": element {} is to go to PE {}: PEs are 0 to {}", name_, element.element,
                                 element.pe, pes - 1));
  }
}

BalanceStrategy greedy() { return {"greedy", spread}; }

BalanceStrategy refine(double tolerance) {
  if (!(tolerance >= 0) || std::isinf(tolerance)) {
    throw SettingError(fmt::format("refine({}): the tolerance is a number from 0 on", tolerance));
  }
  return {"refine", [tolerance](std::span<ElementLoad> elements, std::size_t pes) { relieve(elements, pes, tolerance); }};
}

BalanceStrategy rotate() {
  return {"rotate", [](std::span<ElementLoad> elements, std::size_t pes) {
            for (ElementLoad& element : elements) element.pe = PeId((element.pe + 1) % pes);
          }};
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
  std::string text = fmt::format("balance by {}: {} of {} elements moved, {} bytes, in {:.6f} s{}\n", table.strategy,
                                 table.moved, table.elements, table.moved_bytes, table.seconds,
                                 table.counted ? "; no loads measured: each element counts as 1" : "");
  text += fmt::format("{:>6} {:>10} {:>10} {:>14} {:>14}\n", "PE", "elements", "now", "load", "predicted");
  for (std::size_t pe = 0; pe < table.rows.size(); ++pe) {
    const BalanceTable::Row& row = table.rows[pe];
    text += fmt::format("{:>6} {:>10} {:>10} {:>12.6f}{:2} {:>12.6f}{:2}\n", pe, row.elements_before, row.elements_after,
                        row.before_s, unit, row.after_s, unit);
  }
  text += fmt::format("max/mean {:.3f}, predicted {:.3f}\n", table.max_before_s / mean, table.max_after_s / mean);
  return text;
}

namespace object {

Picture picture_of(const std::vector<std::vector<double>>& loads) {
  Picture picture;
  bool measured = false;
  for (std::size_t pe = 0; pe < loads.size(); ++pe) {
    for (const double load : loads[pe]) {
      picture.elements.push_back({picture.elements.size(), PeId(pe), load});
      measured = measured || load > 0;
    }
  }
  picture.counted = !measured;
  if (!measured) {
    for (ElementLoad& element : picture.elements) element.load_s = 1;
  }
  return picture;
}

BalanceTable table_of(std::span<const std::uint64_t> counts, std::span<const double> loads,
                      std::span<const std::uint32_t> targets, bool counted) {
  BalanceTable table;
  table.counted = counted;
  table.elements = targets.size();
  table.rows.resize(counts.size(), BalanceTable::Row{0, 0, 0, 0});
  std::size_t i = 0;
  double total = 0;
  for (std::size_t pe = 0; pe < counts.size(); ++pe) {
    BalanceTable::Row& row = table.rows[pe];
    row.elements_before = counts[pe];
    for (const std::size_t end = i + counts[pe]; i < end; ++i) {
      row.before_s += loads[i];
      total += loads[i];
      BalanceTable::Row& target = table.rows[targets[i]];
      ++target.elements_after;
      target.after_s += loads[i];
      if (targets[i] != pe) ++table.moved;
    }
  }
  for (const BalanceTable::Row& row : table.rows) {
    table.max_before_s = std::max(table.max_before_s, row.before_s);
    table.max_after_s = std::max(table.max_after_s, row.after_s);
  }
  table.mean_s = counts.empty() ? 0 : total / double(counts.size());
  return table;
}

}  // namespace object

}  // namespace headway
