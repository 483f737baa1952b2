// SPDX-License-Identifier: BSD-3-Clause
/// One call of each type and operator, as Headway makes it.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "made.hpp"

namespace values {

template <class T>
std::vector<T> as_elements(const Bytes& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}
template <class T>
Bytes as_bytes(const std::vector<T>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

/// `elements`: the elements lent to the call. bytes(value of the future, elements).
template <class Future, class T, class ToBytes>
class MadeOf final : public Made {
 public:
  MadeOf(Future future, std::vector<T> elements, ToBytes to_bytes)
      : future_(std::move(future)), elements_(std::move(elements)), to_bytes_(std::move(to_bytes)) {}
  Bytes take() override {
    if constexpr (std::is_void_v<decltype(future_.get())>) {
      future_.get();
      return to_bytes_(elements_);
    } else {
      return to_bytes_(future_.get());
    }
  }

 private:
  Future future_;
  std::vector<T> elements_;
  ToBytes to_bytes_;
};
template <class T, class Future, class ToBytes>
std::unique_ptr<Made> made(Future future, ToBytes to_bytes, std::vector<T> elements = {}) {
  return std::make_unique<MadeOf<Future, T, ToBytes>>(std::move(future), std::move(elements), std::move(to_bytes));
}

// --- operators: those of the library's that are defined for all values of all types

struct Times {
  template <class T>
  T operator()(const T& a, const T& b) const {
    if constexpr (std::is_unsigned_v<T>)
      return T(std::uint64_t(a) * b);  // two of 16 bits overflow an int
    else
      return T(a * b);
  }
};
struct Least {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return std::min(a, b);
  }
};
struct Most {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return std::max(a, b);
  }
};
struct After {
  Matrix operator()(const Matrix& a, const Matrix& b) const {
    return {a.at[0] * b.at[0] + a.at[1] * b.at[2], a.at[0] * b.at[1] + a.at[1] * b.at[3],
            a.at[2] * b.at[0] + a.at[3] * b.at[2], a.at[2] * b.at[1] + a.at[3] * b.at[3]};
  }
};

template <class T, class Use>
std::unique_ptr<Made> with_operator(Op op, Use use) {
  if constexpr (std::is_same_v<T, Matrix>) {
    return use(After());
  } else {
    switch (op) {
      case Op::sum: return use(std::plus<>());
      case Op::product: return use(Times());
      case Op::least: return use(Least());
      case Op::most: return use(Most());
      default: break;
    }
    if constexpr (std::is_integral_v<T>) {
      switch (op) {
        case Op::bit_and: return use(std::bit_and<>());
        case Op::bit_or: return use(std::bit_or<>());
        case Op::bit_xor: return use(std::bit_xor<>());
        case Op::logical_and: return use(std::logical_and<>());
        case Op::logical_or: return use(std::logical_or<>());
        default: break;
      }
    }
    throw std::logic_error("there is no such operator of that type");
  }
}

// --- calls

template <class T>
using Blocks = std::vector<std::vector<T>>;

template <class T>
Blocks<T> blocks_of(const Call& call, std::size_t rank, std::size_t members, std::span<const T> all) {
  Blocks<T> blocks;
  for (std::size_t to = 0, at = 0; to < members; at += call.block(rank, to++)) {
    const auto block = all.subspan(at, call.block(rank, to));
    blocks.emplace_back(block.begin(), block.end());
  }
  return blocks;
}

template <class T>
std::unique_ptr<Made> make_of(const headway::Team& team, const Call& call) {
  const std::size_t rank = team.rank(), members = team.size(), root = call.root_of(members);
  std::vector<T> own = as_elements<T>(given(call, rank, members));
  const std::span<const T> all(own);
  const bool is_value = call.form == Form::value, in_place = call.form == Form::in_place;
  const auto from_vector = [](const std::vector<T>& elements) { return as_bytes(elements); };
  const auto from_value = [](const T& value) { return as_bytes(std::vector<T>{value}); };
  const auto from_optional = [](const std::optional<T>& value) {
    return value ? as_bytes(std::vector<T>{*value}) : Bytes();
  };
  // The elements are where they stay: a vector that is moved keeps its memory.
  const auto borrowing = [&](auto call_it, bool has_result) {
    auto future = call_it(std::span(own));
    return made(
        std::move(future),
        [has_result](const std::vector<T>& elements) { return has_result ? as_bytes(elements) : Bytes(); },
        std::move(own));
  };
  switch (call.kind) {
    case Kind::reduce:
      return with_operator<T>(call.op, [&](auto op) {
        const headway::ReduceOptions options{.ordered = call.in_order()};
        if (is_value) return made<T>(reduce_async(team, own[0], op, root, options), from_optional);
        if (!in_place) return made<T>(reduce_async(team, all, op, root, options), from_vector);
        return borrowing([&](std::span<T> own_all) { return reduce_in_place_async(team, own_all, op, root, options); },
                         rank == root);
      });
    case Kind::allreduce:
      return with_operator<T>(call.op, [&](auto op) {
        const headway::ReduceOptions options{.ordered = call.in_order()};
        if (is_value) return made<T>(allreduce_async(team, own[0], op, options), from_value);
        if (!in_place) return made<T>(allreduce_async(team, all, op, options), from_vector);
        return borrowing([&](std::span<T> own_all) { return allreduce_in_place_async(team, own_all, op, options); },
                         true);
      });
    case Kind::scan:
      return with_operator<T>(call.op, [&](auto op) {
        if (is_value) return made<T>(scan_async(team, own[0], op), from_value);
        return made<T>(scan_async(team, all, op), from_vector);
      });
    case Kind::exclusive_scan:
      return with_operator<T>(call.op, [&](auto op) {
        const T init = as_elements<T>(initial(call, members))[0];
        if (is_value) return made<T>(exclusive_scan_async(team, own[0], init, op), from_value);
        return made<T>(exclusive_scan_async(team, all, init, op), from_vector);
      });
    case Kind::all_gather:
    case Kind::gather: {
      const bool to_all = call.kind == Kind::all_gather;
      if (is_value)
        return made<T>(to_all ? all_gather_async(team, own[0]) : gather_async(team, own[0], root), from_vector);
      return made<T>(to_all ? all_gather_async(team, all) : gather_async(team, all, root),
                     [call, is_receiver = to_all || rank == root, members](const auto& blocks) {
                       if (blocks.size() != (is_receiver ? members : 0)) {
                         throw std::runtime_error(describe(call) + ": another number of blocks");
                       }
                       Bytes bytes;
                       for (std::size_t r = 0; r < blocks.size(); ++r) {
                         if (blocks[r].size() != call.block(r)) {
                           throw std::runtime_error(describe(call) + ": a block of another length");
                         }
                         const Bytes block = as_bytes(blocks[r]);
                         bytes.insert(bytes.end(), block.begin(), block.end());
                       }
                       return bytes;
                     });
    }
    case Kind::broadcast:
      if (is_value) return made<T>(broadcast_async(team, own[0], root), from_value);
      if (!in_place)
        return made<T>(broadcast_async(team, rank == root ? all : std::span<const T>(), root), from_vector);
      return borrowing([&](std::span<T> own_all) { return broadcast_in_place_async(team, own_all, root); }, true);
    case Kind::scatter: {
      if (is_value) return made<T>(scatter_async(team, own, root), from_value);
      if (!in_place) return made<T>(scatter_async(team, all, root), from_vector);
      const Blocks<T> blocks = rank == root ? blocks_of(call, rank, members, all) : Blocks<T>();
      return made<T>(scatter_async(team, blocks, root), from_vector);
    }
    case Kind::exchange: {
      if (is_value) return made<T>(all_to_all_async(team, own), from_vector);
      const Blocks<T> blocks = blocks_of(call, rank, members, all);
      return made<T>(all_to_all_async(team, blocks), [call, rank](const Blocks<T>& received) {
        Bytes bytes;
        for (std::size_t r = 0; r < received.size(); ++r) {
          if (received[r].size() != call.block(r, rank)) {
            throw std::runtime_error(describe(call) + ": a block of another length");
          }
          const Bytes block = as_bytes(received[r]);
          bytes.insert(bytes.end(), block.begin(), block.end());
        }
        return bytes;
      });
    }
    case Kind::reduce_scatter:
      return with_operator<T>(call.op, [&](auto op) {
        if (is_value) return made<T>(reduce_scatter_async(team, own, op), from_value);
        if (!in_place) return made<T>(reduce_scatter_async(team, all, op), from_vector);
        const Blocks<T> blocks = blocks_of(call, rank, members, all);
        return made<T>(reduce_scatter_async(team, blocks, op), from_vector);
      });
    case Kind::all_to_all: return made<T>(all_to_all_async(team, all), from_vector);
  }
  throw std::logic_error("there is no such call");
}

}  // namespace values
