// SPDX-License-Identifier: BSD-3-Clause
/// The properties on which all members of a call must agree, as a number and as text.
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

/// A kind of collective for one type of elements and one type of operator. Static initialisation makes one for each
/// that the program can call. So every PE can describe a number that another PE sends.
class Operation {
 public:
  Operation(Kind kind, std::uint32_t hash, std::string (*type)(), std::string (*op)(), ReduceBytes reduce_bytes);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// The number in messages; bit 0 is for `ordered`. Each operation has its own: of operations with the same hash the
  /// first to be initialised keeps it, and others take the next free number. All processes of a run execute the same
  /// program, and initialise in the same order.
  std::uint32_t number(bool ordered = false) const { return number_ | std::uint32_t(ordered); }

  Kind kind() const { return kind_; }
  /// Combines contributions without an operator of a call; nullptr if the operator has state, or elements are
  /// serialized.
  ReduceBytes reduce() const { return reduction_; }

  /// nullptr if this program has no operation of that number, `ordered` or not.
  static const Operation* find(std::uint32_t number);

  /// "reduce of 5 double with std::plus<>, ordered, root 2". Operators with types of the same name, for example two
  /// closures of one function, are numbered.
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

/// Whether any PE can combine contributions: the operator has no state, and elements are not serialized.
template <class T, class Op>
constexpr bool reduces_by_type = FixedSize<T>&& std::is_empty_v<Op>&& std::is_trivially_copyable_v<Op>;

template <class T, class Op>
constexpr ReduceBytes reduce_of() {
  if constexpr (reduces_by_type<T, Op>)
    return &reduce_by_type<T, Op>;
  else
    return nullptr;
}

/// Operators differ by their types; two functions of one type are the same operation.
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
