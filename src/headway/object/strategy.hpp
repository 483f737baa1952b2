/// What a balancer decides by: loads, strategies, and the table of what they do.
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

/// One line of the global picture. Strategies change `pe`, and nothing else.
struct ElementLoad {
  std::uint64_t element;  // a running number of this picture: by PE
  PeId pe;
  double load_s;
  std::uint32_t collection = 0;  // of those that are balanced together, in the order in which they were given
};

/// Runs on one PE alone: on PE 0, or the one that asked.
using BalanceFunction = std::function<void(std::span<ElementLoad> elements, std::size_t pes)>;

class BalanceStrategy {
 public:
  /// UsageError for an empty function.
  BalanceStrategy(std::string name, BalanceFunction function);
  const std::string& name() const { return name_; }
  /// Whether all that have its name decide alike: it is one of this library.
  bool known_by_name() const { return known_by_name_; }
  /// UsageError where it names a PE out of range.
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

/// Makes the largest load about as small as it is where the heaviest go first, each to the least loaded PE: of several
/// ways to within 2 percent of that, the one that moves fewest; nothing moves where that gains less than 3 percent.
BalanceStrategy greedy();
/// Moves as few as will do to bring every PE below mean * (1 + tolerance), heaviest first, from the most loaded PE to
/// the least loaded, while that helps. SettingError for a tolerance that is negative or no number.
BalanceStrategy refine(double tolerance = 0.05);
/// Everything to the next PE, to test.
BalanceStrategy rotate();
/// UsageError for an empty function.
BalanceStrategy balance_by(BalanceFunction own);
/// "greedy", "refine", "rotate"; else SettingError.
BalanceStrategy parse_balance(std::string_view name);

/// What balance() did, the same on every PE, or a request.
struct BalanceTable {
  struct Row {
    std::uint64_t elements_before, elements_after;
    double before_s, after_s;  // measured; the same loads where the elements are to go
  };
  std::uint64_t elements = 0;
  std::uint64_t moved = 0, moved_bytes = 0;
  std::uint64_t moving = 0;  // as soon as none of their coroutines lives
  std::uint64_t missed = 0;  // were to move, but had left by themselves, or been erased
  double max_before_s = 0, max_after_s = 0, mean_s = 0;
  double seconds = 0;     // that balancing took, on the PE that decided
  bool counted = false;   // nothing was measured: each element counts as 1
  std::vector<Row> rows;  // by PE
  std::string strategy;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(elements, moved, moved_bytes, moving, missed, max_before_s, max_after_s, mean_s, seconds, counted, rows,
            strategy);
  }
};
/// A table for people.
std::string to_string(const BalanceTable& table);

namespace object {

/// What one PE gives: the loads of its elements, those of each collection in a row.
struct Loads {
  std::vector<std::uint64_t> counts;  // by collection
  std::vector<double> loads_s;
};

/// By PE -> the picture: all zero counts as 1 each. UsageError where PEs balance different numbers of collections.
struct Picture {
  std::vector<ElementLoad> elements;
  bool counted = false;
};
Picture picture_of(std::span<const Loads> loads);
/// Of the decision on a picture: where elements were, and go.
BalanceTable table_of(std::span<const ElementLoad> before, std::span<const ElementLoad> after, std::size_t pes);

}  // namespace object

}  // namespace headway
