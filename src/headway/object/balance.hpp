/// Load balancing: elements move to where there is time for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/collective/gather.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/object/collection.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway {

/// One line of the global picture. Strategies change `pe`, and nothing else.
struct ElementLoad {
  std::uint64_t element;  // a running number of this picture: by PE
  PeId pe;
  double load_s;
};

/// Runs on PE 0 alone.
using BalanceFunction = std::function<void(std::span<ElementLoad> elements, std::size_t pes)>;

class BalanceStrategy {
 public:
  /// UsageError for an empty function.
  BalanceStrategy(std::string name, BalanceFunction function);
  const std::string& name() const { return name_; }
  /// UsageError where it names a PE out of range.
  void operator()(std::span<ElementLoad> elements, std::size_t pes) const;

 private:
  std::string name_;
  BalanceFunction function_;
};

/// Heaviest first to the least loaded PE; of several of these, to where it is, or else the lowest.
BalanceStrategy greedy();
/// Moves as few as will do to bring every PE below mean * (1 + tolerance), heaviest first, from the most loaded PE to the
/// least loaded, while that helps. SettingError for a tolerance that is negative or no number.
BalanceStrategy refine(double tolerance = 0.05);
/// Everything to the next PE, to test.
BalanceStrategy rotate();
/// UsageError for an empty function.
BalanceStrategy balance_by(BalanceFunction own);
/// "greedy", "refine", "rotate"; else SettingError.
BalanceStrategy parse_balance(std::string_view name);

/// What balance() did, the same on every PE.
struct BalanceTable {
  struct Row {
    std::uint64_t elements_before, elements_after;
    double before_s, after_s;  // measured; the same loads where the elements are now
  };
  std::uint64_t elements = 0, moved = 0, moved_bytes = 0;
  double max_before_s = 0, max_after_s = 0, mean_s = 0;
  double seconds = 0;     // that balancing took, on PE 0
  bool counted = false;   // nothing was measured: each element counts as 1
  std::vector<Row> rows;  // by PE
  std::string strategy;
};
/// A table for people.
std::string to_string(const BalanceTable& table);

namespace object {

/// Loads by PE -> the picture: all zero counts as 1 each.
struct Picture {
  std::vector<ElementLoad> elements;
  bool counted = false;
};
Picture picture_of(const std::vector<std::vector<double>>& loads);
/// Of the decision: where each element was, by PE, and goes.
BalanceTable table_of(std::span<const std::uint64_t> counts, std::span<const double> loads,
                      std::span<const std::uint32_t> targets, bool counted);

}  // namespace object

/// Moves elements as the strategy says, by the loads that were measured (CollectionOptions::measure_load) since the last
/// time; without any, each counts as 1. Collective, from the main program; quiesces before and after. Linear in the
/// elements, on every PE.
template <class T>
BalanceTable balance(Collection<T>& collection, const BalanceStrategy& strategy = greedy()) {
  static_assert(object::NamingOf<typename T::ElementNaming>::moves, "headway: elements of groups stay where they are");
  static_assert(object::Migratable<T>, "headway: what is balanced has a constructor without arguments and serialize()");
  Pe& pe = collection.pe();
  pe.quiesce();
  const std::int64_t begin = pe.engine().now();
  std::vector<double> own;
  std::vector<T*> mine;
  collection.for_each_local([&](T& element) {
    mine.push_back(&element);
    own.push_back(Collection<T>::state(element).load_s);
    Collection<T>::state(element).load_s = 0;
  });
  const auto all = gather(pe, std::span<const double>(own), 0).get();
  std::vector<std::uint64_t> counts;
  std::vector<double> loads;
  std::vector<std::uint32_t> targets;
  std::uint64_t counted = 0;
  if (pe.id() == 0) {
    object::Picture picture = object::picture_of(all);
    strategy(picture.elements, pe.size());
    for (const auto& of : all) counts.push_back(of.size());
    for (const ElementLoad& element : picture.elements) {
      loads.push_back(element.load_s);
      targets.push_back(std::uint32_t(element.pe));
    }
    counted = picture.counted ? 1 : 0;
  }
  counts = broadcast(pe, std::span<const std::uint64_t>(counts), 0).get();
  loads = broadcast(pe, std::span<const double>(loads), 0).get();
  targets = broadcast(pe, std::span<const std::uint32_t>(targets), 0).get();
  counted = broadcast(pe, counted, 0).get();
  BalanceTable table = object::table_of(counts, loads, targets, counted != 0);
  table.strategy = strategy.name();
  std::size_t first = 0;
  for (std::size_t other = 0; other < pe.id(); ++other) first += counts[other];
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (targets[first + i] == pe.id()) continue;
    bytes += Collection<T>::pack(*mine[i]).size();
    collection.move_now(*mine[i], targets[first + i]);
  }
  pe.quiesce();
  table.moved_bytes = allreduce(pe, bytes, std::plus<>());
  table.seconds = broadcast(pe, double(pe.engine().now() - begin) * 1e-9, 0).get();
  return table;
}

}  // namespace headway
