/// What the members of a team must agree on when they call a collective, as a number and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/invoke.hpp>
#include <headway/base/sendable.hpp>
#include <headway/collective/elements.hpp>
#include <string>
#include <type_traits>

namespace headway::collective {

enum class Kind : std::uint8_t {
  reduce,
  allreduce,
  broadcast,
  barrier,
  scan,
  exclusive_scan,
  gather,
  all_gather,
  scatter,
  all_to_all,
  reduce_scatter
};
/// The name of its function.
const char* name_of(Kind kind);

/// A kind of collective for a type of elements and a type of operator. There is one for each that the program can call,
/// from before it starts: what a PE names by number any other can describe.
class Operation {
 public:
  Operation(Kind kind, std::uint32_t hash, std::string (*type)(), std::string (*op)(), ReduceBytes reduce_bytes);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// What travels; bit 0 is for `ordered`. Each operation has its own: of those with the same hash the first to be
  /// initialised keeps it, and others take the next that are free. All processes of a run execute the same program, and
  /// initialise in the same order.
  std::uint32_t number(bool ordered = false) const { return number_ | std::uint32_t(ordered); }

  Kind kind() const { return kind_; }
  /// What combines contributions without anything of a call; nullptr where the operator is more than its type, or
  /// elements do not travel as they lie.
  ReduceBytes reduce() const { return reduction_; }

  /// nullptr where this program has none of that number, `ordered` or not.
  static const Operation* find(std::uint32_t number);

  /// "reduce of 5 double with std::plus<void>, ordered, root 2". Operators whose types have the same name, as two
  /// closures of one function may, are numbered.
  static std::string describe(std::uint32_t number, std::uint64_t count, std::uint32_t root);

 private:
  /// "", or " (1 of 2 of this name)".
  std::string place_among_namesakes() const;

  static inline constinit const Operation* first_ = nullptr;

  Kind kind_;
  std::uint32_t number_;
  std::string (*type_)();
  std::string (*op_)();  // nullptr: none
  ReduceBytes reduction_;
  const Operation* next_;
};

/// Whether contributions can be combined without anything of a call: the operator is nothing but its type, and elements
/// travel as they lie.
template <class T, class Op>
constexpr bool reduces_by_type = FixedSize<T>&& std::is_empty_v<Op>&& std::is_trivially_copyable_v<Op>;

template <class T, class Op>
constexpr ReduceBytes reduce_of() {
  if constexpr (reduces_by_type<T, Op>)
    return &reduce_by_type<T, Op>;
  else
    return nullptr;
}

/// Operators are told apart by their types: two functions of one type are not.
template <Kind kind, class T, class Op = NoOperator>
struct OperationOf {
  static constexpr std::uint32_t hash_of_names = [] {
    std::uint64_t hash = 0xcbf29ce484222325 ^ std::uint64_t(kind);  // FNV-1a
    for (const char c : aggregate::pretty_name<T, Op>()) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
    return std::uint32_t(((hash * 0x9e3779b97f4a7c15) >> 32) & ~std::uint64_t(1));
  }();
  static const Operation operation;
};
template <Kind kind, class T, class Op>
const Operation OperationOf<kind, T, Op>::operation{
    kind, hash_of_names, &aggregate::type_name<T>, std::is_same_v<Op, NoOperator> ? nullptr : &aggregate::type_name<Op>,
    reduce_of<T, Op>()};

}  // namespace headway::collective
