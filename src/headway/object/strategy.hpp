// SPDX-License-Identifier: BSD-3-Clause
/// Loads of elements, strategies that balance them, and the table of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/pe.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway {

/// The load of one element. A strategy changes only `pe`.
struct ElementLoad {
  std::uint64_t element;  // index in the list of all elements, in the order of PEs
  PeId pe;
  double load_s;
  std::uint32_t collection = 0;  // index among the collections of the call
};

/// Runs on PE 0, or on the PE that requested it.
using BalanceFunction = std::function<void(std::span<ElementLoad> elements, std::size_t pes)>;

class BalanceStrategy {
 public:
  /// UsageError for an empty function.
  BalanceStrategy(std::string name, BalanceFunction function);
  const std::string& name() const { return name_; }
  /// Whether strategies of this name decide alike: it is a strategy of this library.
  bool known_by_name() const { return known_by_name_; }
  /// UsageError if the function gives a PE out of range.
  void operator()(std::span<ElementLoad> elements, std::size_t pes) const;

 private:
  friend BalanceStrategy greedy();
  friend BalanceStrategy refine(double);
  friend BalanceStrategy rotate();
  static BalanceStrategy known(std::string name, BalanceFunction function);

  std::string name_;
  BalanceFunction function_;
  bool known_by_name_ = false;
};

/// Computes the largest load that results if each element, heaviest first, goes to the least loaded PE. Among several
/// assignments within 2 percent of the best it takes the one with the fewest moves. No element moves if the gain is
/// below 3 percent.
BalanceStrategy greedy();
/// Relieves only PEs with more than mean * (1 + tolerance): moves their heaviest elements to the least loaded PEs,
/// while that helps. SettingError for a tolerance that is negative, infinite or not a number.
BalanceStrategy refine(double tolerance = 0.05);
/// For tests: each element to the next PE.
BalanceStrategy rotate();
/// UsageError for an empty function.
BalanceStrategy balance_by(BalanceFunction own);
/// The strategy "greedy", "refine" or "rotate"; SettingError for another name.
BalanceStrategy parse_balance(std::string_view name);

/// The result of balance() or request_balance(), the same on every PE.
struct BalanceTable {
  struct Row {
    std::uint64_t elements_before, elements_after;
    double before_s, after_s;  // measured; predicted from the same loads
  };
  std::uint64_t elements = 0;
  std::uint64_t moved = 0, moved_bytes = 0;
  std::uint64_t moving = 0;  // will move when their coroutines have ended
  std::uint64_t missed = 0;  // had left by migrate_to() or erase()
  double max_before_s = 0, max_after_s = 0, mean_s = 0;
  double seconds = 0;     // of balancing, on the PE that ran the strategy
  bool counted = false;   // no load was measured: the load of each element is 1
  std::vector<Row> rows;  // by PE
  std::string strategy;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(elements, moved, moved_bytes, moving, missed, max_before_s, max_after_s, mean_s, seconds, counted, rows,
            strategy);
  }
};
/// The table as text.
std::string to_string(const BalanceTable& table);

namespace object {

/// The loads of the elements of one PE, collection by collection.
struct Loads {
  std::vector<std::uint64_t> counts;  // elements of each collection
  std::vector<double> loads_s;
};

/// The loads of all elements; if all are 0, each is 1. UsageError if PEs give different numbers of collections.
struct LoadList {
  std::vector<ElementLoad> elements;
  bool counted = false;
};
LoadList list_of(std::span<const Loads> loads);
/// The table for elements before and after the strategy.
BalanceTable table_of(std::span<const ElementLoad> before, std::span<const ElementLoad> after, std::size_t pes);

}  // namespace object

}  // namespace headway
