// SPDX-License-Identifier: BSD-3-Clause
/// Calls of collectives that Headway and an MPI make alike: the contribution of each member, and the members of the
/// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace values {

using Bytes = std::vector<std::byte>;

/// `exchange`: all_to_all with blocks of different lengths.
enum class Kind : std::uint8_t {
  reduce,
  allreduce,
  scan,
  exclusive_scan,
  gather,
  broadcast,
  all_to_all,
  all_gather,
  scatter,
  exchange,
  reduce_scatter
};
/// `matrix`: two by two unsigned numbers; their product does not commute.
enum class Type : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, matrix };
enum class Op : std::uint8_t { sum, product, least, most, bit_and, bit_or, bit_xor, logical_and, logical_or, after };
/// How the elements are given: `in_place` where there is this call, else as a span; `value`: one, not as a span. For
/// scatter and reduce_scatter: `span` has blocks of equal length, `in_place` vectors of different lengths.
enum class Form : std::uint8_t { span, in_place, value };

struct Matrix {
  std::uint32_t at[4];
};

/// Which members make a call: a set of teams that share no PE, of which each PE is in one or in none.
inline constexpr std::size_t families = 6;
/// By rank. Family 0 is all PEs.
std::vector<std::vector<std::size_t>> teams_of(std::size_t family, std::size_t pes);

struct Call {
  Kind kind;
  Type type;
  Op op;  // where nothing is reduced: `least`, so that the elements are arbitrary
  Form form;
  bool ordered;  // reductions
  bool inexact;  // sums of floating-point numbers that round
  std::size_t family, root, count;
  std::uint64_t number;

  /// A rank of a team of so many.
  std::size_t root_of(std::size_t members) const { return root % members; }
  /// How many elements a rank gives to gather() and all_gather().
  std::size_t block(std::size_t rank) const;
  /// How many elements rank `from` gives for rank `to`, in calls with a block for each member.
  std::size_t block(std::size_t from, std::size_t to) const;
  /// Whether its result depends on the order of the operands.
  bool in_order() const { return ordered || op == Op::after; }
};

std::size_t bytes_of(Type type);
/// A rank's contribution, as it lies in memory. Unless the call is inexact, no order of combining overflows or rounds,
/// up to 60 members.
Bytes given(const Call& call, std::size_t rank, std::size_t members);
/// One element, the first of an exclusive scan.
Bytes initial(const Call& call, std::size_t members);
/// The largest difference between two sums of the same contributions: twice the bound on the error of each.
std::vector<double> bounds(const Call& call, std::size_t members);

std::string describe(const Call& call);

/// The calls to make with so many PEs. `all`: each operator with each type it is for, in each reduction and scan, with
/// each of a few counts; gather, broadcast and all_to_all with each type; each root of each team; sums that round.
/// `every`: each of these with each root of each family. `large`: with 10^6 elements.
enum class Which : std::uint8_t { all, every, large };
std::vector<Call> calls_for(std::size_t pes, Which which);

}  // namespace values
