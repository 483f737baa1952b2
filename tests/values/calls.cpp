// SPDX-License-Identifier: BSD-3-Clause
#include "calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <headway/base/random.hpp>
#include <limits>
#include <numeric>
#include <type_traits>

namespace values {
namespace {

using headway::Random;

constexpr Type numbers[] = {Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8,
                            Type::u16, Type::u32, Type::u64, Type::f32, Type::f64};
constexpr Op operators[] = {Op::sum,    Op::product, Op::least,       Op::most,      Op::bit_and,
                            Op::bit_or, Op::bit_xor, Op::logical_and, Op::logical_or};
constexpr Kind reducing[] = {Kind::reduce, Kind::allreduce, Kind::scan, Kind::exclusive_scan};
constexpr Kind moving[] = {Kind::gather, Kind::broadcast, Kind::all_to_all};

bool is_real(Type type) { return type == Type::f32 || type == Type::f64; }
/// Those that MPI has for both.
bool goes_with(Op op, Type type) { return op <= Op::most || !is_real(type); }

/// So many bits of the random ones, signed.
template <class T>
T small(std::uint64_t random, int bits) {
  return T(std::int64_t(random) >> (64 - bits));
}

template <class T>
T yes(std::uint64_t random) {
  const T value = random >> 60 == 0 ? T(256) : T(random >> 8);
  return value == T(0) ? T(2) : value;
}

/// Element i of a rank's.
template <class T>
T element(const Call& call, std::size_t rank, std::size_t members, std::size_t i, Random& random) {
  constexpr int bits = int(sizeof(T) * 8);
  const std::uint64_t next = random.next();
  switch (call.op) {
    case Op::sum:
      if constexpr (std::is_floating_point_v<T>) {
        if (call.inexact) return T(small<std::int64_t>(next, 60)) * T(std::exp2(double(next % 40)));
        return T(small<std::int64_t>(next, std::numeric_limits<T>::digits - 8));
      } else if constexpr (std::is_signed_v<T>) {
        return small<T>(next, bits - 6);
      } else {
        return bits <= 16 ? T(next >> (64 - bits + 6)) : T(next);  // such sums of Open MPI's 4.1 do not wrap, but stop
      }
    case Op::product:
      if constexpr (std::is_floating_point_v<T>) {
        return T(std::ldexp(next >> 63 == 0 ? 1.0 : -1.0, int(next % 5) - 2));
      } else if constexpr (std::is_signed_v<T>) {  // one member has more than a sign
        return rank == (call.number + i) % members ? small<T>(next, bits - 3) : T(next >> 63 == 0 ? 1 : -1);
      } else {
        return T(next | 1);
      }
    // Now and then all of them say yes, and all no; yes is any number but 0, such as 256 and 2.
    case Op::logical_and: return next % (members + 1) == 0 ? T(0) : yes<T>(next);
    case Op::logical_or: return next % (members + 1) != 0 ? T(0) : yes<T>(next);
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>)
    return T(small<std::int64_t>(next | 1, 63)) * T(std::exp2(double(next % 60) - 30));
  else if constexpr (std::is_unsigned_v<T>)
    return call.op == Op::least || call.op == Op::most ? T(next >> 1 >> (64 - bits)) : T(next);  // see README.md
  else
    return T(next);
}

template <class T>
void fill(const Call& call, std::size_t rank, std::size_t members, Bytes& bytes) {
  Random random(call.number * 1000 + rank);
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    if constexpr (std::is_same_v<T, Matrix>) {
      for (std::uint32_t& number : value.at) number = std::uint32_t(random.next());
    } else {
      value = element<T>(call, rank, members, i, random);
    }
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

Bytes elements(const Call& call, std::size_t rank, std::size_t members, std::size_t count) {
  Bytes bytes(count * bytes_of(call.type));
  switch (call.type) {
    case Type::i8: fill<std::int8_t>(call, rank, members, bytes); break;
    case Type::i16: fill<std::int16_t>(call, rank, members, bytes); break;
    case Type::i32: fill<std::int32_t>(call, rank, members, bytes); break;
    case Type::i64: fill<std::int64_t>(call, rank, members, bytes); break;
    case Type::u8: fill<std::uint8_t>(call, rank, members, bytes); break;
    case Type::u16: fill<std::uint16_t>(call, rank, members, bytes); break;
    case Type::u32: fill<std::uint32_t>(call, rank, members, bytes); break;
    case Type::u64: fill<std::uint64_t>(call, rank, members, bytes); break;
    case Type::f32: fill<float>(call, rank, members, bytes); break;
    case Type::f64: fill<double>(call, rank, members, bytes); break;
    case Type::matrix: fill<Matrix>(call, rank, members, bytes); break;
  }
  return bytes;
}

template <class T>
std::vector<double> bounds_of(const Call& call, std::size_t members) {
  std::vector<double> sums(call.count);
  for (std::size_t rank = 0; rank < members; ++rank) {
    const Bytes bytes = given(call, rank, members);
    for (std::size_t i = 0; i < call.count; ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      sums[i] += std::abs(double(value));
    }
  }
  // Each addition rounds by at most half an epsilon of a sum that is no larger than that of the operands (Higham,
  // "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2).
  for (double& sum : sums) sum *= 2 * double(members) * double(std::numeric_limits<T>::epsilon());
  return sums;
}

}  // namespace

std::vector<std::vector<std::size_t>> teams_of(std::size_t family, std::size_t pes) {
  std::vector<std::size_t> all(pes);
  std::iota(all.begin(), all.end(), 0);
  if (family == 0) return {all};
  if (family == 1) std::ranges::reverse(all);
  if (family >= 4) {
    Random random(family * 100 + pes);
    for (std::size_t i = pes; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  }
  if (family == 5) all.resize((pes + 1) / 2);  // the others are in none
  const std::size_t teams = family == 2 ? 2 : family == 3 ? 3 : 1;
  std::vector<std::vector<std::size_t>> result(std::min(teams, pes));
  for (const std::size_t pe : all) result[pe % teams].push_back(pe);
  return result;
}

std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::i8:
    case Type::u8: return 1;
    case Type::i16:
    case Type::u16: return 2;
    case Type::i32:
    case Type::u32:
    case Type::f32: return 4;
    case Type::i64:
    case Type::u64:
    case Type::f64: return 8;
    case Type::matrix: return sizeof(Matrix);
  }
  return 0;
}

std::size_t Call::block(std::size_t rank) const {
  if (form == Form::value) return 1;
  return count > 1000 ? count - rank : Random(number * 7 + rank).below(count + 1);
}

std::size_t Call::block(std::size_t from, std::size_t to) const {
  if (form == Form::value) return 1;
  if (kind != Kind::exchange && form == Form::span) return count;
  const std::size_t pair = kind == Kind::exchange ? from * 64 + to : to;
  return count > 1000 ? count - pair : Random(number * 7 + pair).below(count + 1);
}

Bytes given(const Call& call, std::size_t rank, std::size_t members) {
  std::size_t count = call.count;
  if (call.kind == Kind::gather || call.kind == Kind::all_gather) count = call.block(rank);
  if (call.kind == Kind::all_to_all) count *= members;
  if (call.kind == Kind::scatter || call.kind == Kind::exchange || call.kind == Kind::reduce_scatter) {
    count = 0;
    const bool gives = call.kind != Kind::scatter || rank == call.root_of(members);
    for (std::size_t to = 0; gives && to < members; ++to) count += call.block(rank, to);
  }
  return elements(call, rank, members, count);
}

Bytes initial(const Call& call, std::size_t members) { return elements(call, members, members, 1); }

std::vector<double> bounds(const Call& call, std::size_t members) {
  return call.type == Type::f32 ? bounds_of<float>(call, members) : bounds_of<double>(call, members);
}

std::string describe(const Call& call) {
  constexpr const char* kinds[] = {"reduce",  "allreduce", "scan",          "exclusive_scan",
                                   "gather",  "broadcast", "all_to_all",    "all_gather",
                                   "scatter", "exchange",  "reduce_scatter"};
  constexpr const char* types[] = {"int8",   "int16",  "int32", "int64",  "uint8", "uint16",
                                   "uint32", "uint64", "float", "double", "matrix"};
  constexpr const char* ops[] = {"sum",    "product", "least",       "most",       "bit_and",
                                 "bit_or", "bit_xor", "logical_and", "logical_or", "after"};
  constexpr const char* forms[] = {"", ", in place", ", as a value"};
  return fmt::format("call {}: {} of {} {}, {}{}{}{}, family {}, root {}", call.number, kinds[std::size_t(call.kind)],
                     call.count, types[std::size_t(call.type)], ops[std::size_t(call.op)],
                     forms[std::size_t(call.form)], call.ordered ? ", ordered" : "", call.inexact ? ", inexact" : "",
                     call.family, call.root);
}

std::vector<Call> calls_for(std::size_t pes, Which which) {
  std::vector<Call> calls;
  const auto add = [&](Kind kind, Type type, Op op, std::size_t family, std::size_t root, std::size_t count,
                       bool inexact = false) {
    const std::uint64_t n = calls.size();
    const Form form = count == 1 && n % 2 == 0 ? Form::value : n % 3 == 0 ? Form::in_place : Form::span;
    calls.push_back({kind, type, op, form, op == Op::after || n / 2 % 2 == 0, inexact, family, root, count, n});
  };
  const auto add_everywhere = [&](Kind kind, Type type, Op op, std::size_t count, bool inexact = false) {
    const std::uint64_t n = calls.size();
    if (which != Which::every) return add(kind, type, op, n % families, n / families, count, inexact);
    for (std::size_t family = 0; family < families; ++family) {
      const bool has_root =
          kind == Kind::reduce || kind == Kind::gather || kind == Kind::broadcast || kind == Kind::scatter;
      const std::size_t roots = has_root ? teams_of(family, pes)[0].size() : 1;
      for (std::size_t root = 0; root < roots; ++root) add(kind, type, op, family, root, count, inexact);
    }
  };
  if (which == Which::large) {
    constexpr std::size_t million = 1'000'000;
    add(Kind::reduce, Type::i32, Op::sum, 0, pes - 1, million);
    add(Kind::allreduce, Type::f64, Op::most, 1, 0, million);
    add(Kind::allreduce, Type::u64, Op::bit_xor, 0, 0, million);
    add(Kind::reduce, Type::matrix, Op::after, 4, pes / 2, million / 4);
    add(Kind::scan, Type::i64, Op::sum, 4, 0, million);
    add(Kind::exclusive_scan, Type::f32, Op::sum, 0, 0, million);
    add(Kind::gather, Type::u8, Op::least, 3, 1, million);
    add(Kind::broadcast, Type::f64, Op::least, 2, 1, million);
    add(Kind::all_to_all, Type::i32, Op::least, 0, 0, million / pes);
    add(Kind::all_gather, Type::u16, Op::least, 0, 0, million / 4);
    add(Kind::scatter, Type::f32, Op::least, 4, 1, million / pes);
    add(Kind::exchange, Type::u64, Op::least, 1, 0, million / pes);
    add(Kind::reduce_scatter, Type::i64, Op::sum, 0, 0, million / pes);
    add(Kind::reduce_scatter, Type::matrix, Op::after, 4, 0, million / 4 / pes);
    return calls;
  }
  const std::vector<std::size_t> counts =
      which == Which::all ? std::vector<std::size_t>{0, 1, 2, 7, 1000} : std::vector<std::size_t>{1, 7};
  for (const std::size_t count : counts) {
    for (const Kind kind : reducing) {
      for (const Type type : numbers) {
        for (const Op op : operators) {
          if (goes_with(op, type)) add_everywhere(kind, type, op, count);
        }
      }
      add_everywhere(kind, Type::matrix, Op::after, count);
      for (const Type type : {Type::f32, Type::f64}) {
        if (kind <= Kind::allreduce) add_everywhere(kind, type, Op::sum, count, true);
      }
    }
    for (const Kind kind : moving) {
      for (const Type type : numbers) add_everywhere(kind, type, Op::least, count);
    }
  }
  // After the calls above, which keep their numbers and so their elements.
  const auto add_blocks = [&] {
    for (const std::size_t count : counts) {
      for (const Kind kind : {Kind::all_gather, Kind::scatter, Kind::exchange}) {
        for (const Type type : numbers) add_everywhere(kind, type, Op::least, count);
      }
      for (const Type type : numbers) {
        for (const Op op : operators) {
          if (goes_with(op, type)) add_everywhere(Kind::reduce_scatter, type, op, count);
        }
      }
      add_everywhere(Kind::reduce_scatter, Type::matrix, Op::after, count);
    }
  };
  if (which == Which::every) {
    add_blocks();
    return calls;
  }
  for (std::size_t family = 0; family < families; ++family) {
    for (std::size_t root = 0; root < teams_of(family, pes)[0].size(); ++root) {
      for (const std::size_t count : {0, 1, 7, 1000}) {
        for (const Kind kind : {Kind::reduce, Kind::gather, Kind::broadcast}) {
          const std::size_t n = calls.size();
          add(kind, numbers[n % std::size(numbers)], kind == Kind::reduce ? Op(n % 4) : Op::least, family, root, count);
        }
      }
    }
  }
  add_blocks();
  return calls;
}

}  // namespace values
