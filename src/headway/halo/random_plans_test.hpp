// SPDX-License-Identifier: BSD-3-Clause
/// Random plans by seed. A serial computation gives the expected value of each element. For any transport.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/halo/exchange.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace headway::random_plans {

using Triple = std::array<std::uint64_t, 3>;

/// The plan of a run: the elements of each PE, and the elements that each needs.
struct Drawing {
  std::vector<std::uint64_t> owned;
  std::vector<std::vector<halo::Place>> needed;
};

inline Drawing draw(Random& random, std::size_t pes) {
  Drawing drawing;
  for (std::size_t pe = 0; pe != pes; ++pe) drawing.owned.push_back(random.one_in(5) ? 0 : random.size(1, 80));
  drawing.needed.resize(pes);
  for (std::size_t pe = 0; pe != pes; ++pe) {
    if (random.one_in(5)) continue;
    const bool near = random.one_in(2);
    while (!random.one_in(12)) {  // a run, a row with a step, or single elements
      const std::size_t owner = near ? (pe + random.below(3)) % pes : random.below(pes);
      const std::uint64_t owned = drawing.owned[owner];
      if (owned == 0) continue;
      const std::uint64_t step = random.one_in(2) ? 1 : random.between(1, 5);
      std::uint64_t at = random.below(owned);
      for (std::uint64_t n = random.size(1, 30); n > 0; --n, at = (at + step) % owned)
        drawing.needed[pe].push_back({owner, at});
    }
  }
  return drawing;
}

inline std::uint64_t value_of(std::size_t pe, std::uint64_t index, std::uint64_t generation) {
  return Random(pe * 1000003 + index * 101 + generation).next();
}

/// `n` elements on the heap, or in mapped memory.
template <class T>
class Array {
 public:
  Array(Pe& pe, std::size_t n, bool is_mapped) {
    if (is_mapped)
      mapped_.emplace(pe, n);
    else
      heap_.resize(n);
    elements_ = is_mapped ? std::span(mapped_->data(), n) : std::span(heap_);
    std::ranges::fill(elements_, T{});
  }
  std::span<T> all() const { return elements_; }
  T& operator[](std::size_t i) const { return elements_[i]; }

 private:
  std::vector<T> heap_;
  std::optional<halo::Field<T>> mapped_;
  std::span<T> elements_;
};

/// The arrays of one PE.
class Arrays {
 public:
  Arrays(Pe& pe, std::size_t n, bool is_mapped)
      : size_(n),
        doubles_(pe, n, is_mapped),
        bytes_(pe, n, is_mapped),
        triples_(pe, n, is_mapped),
        cells_(pe, n, is_mapped) {}
  std::size_t size() const { return size_; }
  std::vector<halo::FieldRef> fields() const {
    return {halo::field(doubles_.all()), halo::field(bytes_.all()), halo::field(triples_.all()),
            halo::field(cells_.all(), &Cell::height)};
  }
  void set(std::size_t i, std::uint64_t value) {
    doubles_[i] = double(value >> 12);
    bytes_[i] = std::uint8_t(value);
    triples_[i] = {value, ~value, value * 3};
    cells_[i].height = std::int32_t(value >> 32);
  }
  void require(std::size_t i, std::uint64_t value, std::uint64_t generation) const {
    if (doubles_[i] == double(value >> 12) && bytes_[i] == std::uint8_t(value) &&
        triples_[i] == Triple{value, ~value, value * 3} && cells_[i].height == std::int32_t(value >> 32) &&
        cells_[i].unused == 7) {
      return;
    }
    throw std::logic_error(fmt::format("element {} of {} is wrong in exchange {}", i, size(), generation));
  }

 private:
  struct Cell {
    std::uint32_t unused = 7;
    std::int32_t height = 0;
  };

  std::size_t size_;
  Array<double> doubles_;
  Array<std::uint8_t> bytes_;
  Array<Triple> triples_;
  Array<Cell> cells_;
};

constexpr std::size_t parts = 3;

/// Exchanges with parts: with `threads` a thread marks each, else the PE marks them in any order.
inline void exchange_parts(halo::Exchange& exchange, Random& own, bool threads) {
  exchange.begin_parts();
  std::vector<std::jthread> workers;  // end after the exchange
  const std::size_t first = own.below(parts);
  for (std::size_t i = 0; i != parts; ++i) {
    const std::size_t part = (first + i) % parts;
    if (threads)
      workers.emplace_back([&exchange, part] { exchange.ready(part); });
    else
      exchange.ready(part);
  }
  exchange.end();
}

/// One exchange, in one of its forms. Each PE chooses its own.
inline void exchange_somehow(Pe& pe, halo::Exchange& exchange, Random& own, bool threads) {
  switch (own.below(5)) {
    case 4: return exchange_parts(exchange, own, threads && own.one_in(5));
    case 0: return exchange();
    case 1: exchange.async().get(); return;
    case 2:
      exchange.begin();
      for (std::uint64_t i = own.below(50); i > 0 && !exchange.done(); --i) pe.progress();
      return exchange.end();
    default: exchange.begin(); return exchange.end();
  }
}

/// Collective: draws a plan, exchanges elements towards the ghosts several times, without a wait of all PEs between
/// two, and sums back. `may_map`: some of the arrays lie in mapped memory. Returns a number that depends on all values.
/// std::logic_error for a wrong element.
inline std::uint64_t run(Pe& pe, std::uint64_t seed, bool may_map) {
  Random random(seed * 7);
  const std::size_t pes = pe.size(), me = pe.id();
  const Drawing drawing = draw(random, pes);
  const std::uint64_t rounds = random.between(1, 6);
  const bool by_pair = random.one_in(2), in_order = random.one_in(2);
  const std::uint64_t owned = drawing.owned[me];
  const std::vector<halo::Place>& needed = drawing.needed[me];
  const std::size_t all = owned + needed.size();
  const auto make_plan = [&]() -> halo::Plan {
    if (by_pair) return halo::Plan::receiving(pe, owned, needed);
    // Global ids: the elements of PE 0 first.
    std::vector<std::uint64_t> first(pes + 1), ids;
    for (std::size_t p = 0; p != pes; ++p) first[p + 1] = first[p] + drawing.owned[p];
    for (const halo::Place& one : needed) ids.push_back(first[one.pe] + one.index);
    return halo::Plan::needed(pe, owned, ids, [&](std::uint64_t id) {
      const auto after = std::ranges::upper_bound(first, id);
      const auto owner = std::size_t(after - first.begin() - 1);
      return halo::Place{owner, id - first[owner]};
    });
  };
  const halo::Plan plan = make_plan();
  Random own(seed * 100 + me);
  const auto maps = [&] { return may_map && !own.one_in(3); };
  auto arrays = std::make_unique<Arrays>(pe, all, maps());
  Arrays others(pe, all, maps());
  // Between hosts: by the rule, always, never, or each PE as it likes.
  const auto coalescing = [&] { return halo::Coalescing(seed % 4 == 3 ? own.below(3) : seed % 4); };
  halo::Exchange exchange(pe, plan, arrays->fields(), halo::CombineOrder::any, coalescing());
  halo::Exchange other(pe, plan, others.fields(), halo::CombineOrder::any, coalescing());
  const auto part_of = [](std::uint64_t index) { return index * 7 / 5 % parts; };
  exchange.divide(parts, part_of);
  std::uint64_t sum = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (std::uint64_t i = 0; i != owned; ++i) arrays->set(i, value_of(me, i, round));
    if (own.one_in(3)) {
      for (std::uint64_t i = own.below(100); i > 0; --i) pe.progress();
    }
    const bool both = round % 3 == 0;
    if (both) {  // two are in flight, and end in any order
      for (std::uint64_t i = 0; i != owned; ++i) others.set(i, value_of(me, i, round + 100));
      other.begin();
    }
    exchange_somehow(pe, exchange, own, may_map);
    if (both) other.end();
    for (std::size_t i = 0; i != needed.size(); ++i) {
      arrays->require(owned + i, value_of(needed[i].pe, needed[i].index, round), round);
      if (both) others.require(owned + i, value_of(needed[i].pe, needed[i].index, round + 100), round);
      sum += value_of(needed[i].pe, needed[i].index, round);
    }
    if (own.one_in(4)) {
      auto next = std::make_unique<Arrays>(pe, all, maps());
      exchange.rebind(next->fields());
      arrays = std::move(next);
    }
  }

  const Array<std::uint64_t> sums(pe, all, maps());
  for (std::size_t i = 0; i != all; ++i) sums[i] = value_of(me, i, 0);
  halo::Exchange back(pe, plan.reverse(), {halo::field(sums.all(), std::plus<>())},
                      in_order ? halo::CombineOrder::fixed : halo::CombineOrder::any, coalescing());
  back.divide(parts, part_of);
  exchange_somehow(pe, back, own, may_map);
  std::vector<std::uint64_t> expected(owned);
  for (std::uint64_t i = 0; i != owned; ++i) expected[i] = value_of(me, i, 0);
  for (std::size_t p = 0; p != pes; ++p) {
    for (std::size_t i = 0; i != drawing.needed[p].size(); ++i) {
      const halo::Place& one = drawing.needed[p][i];
      if (one.pe == me) expected[one.index] += value_of(p, drawing.owned[p] + i, 0);
    }
  }
  for (std::uint64_t i = 0; i != owned; ++i) {
    if (sums[i] != expected[i]) throw std::logic_error(fmt::format("sum {} is {}, not {}", i, sums[i], expected[i]));
    sum += sums[i];
  }
  return sum;
}

}  // namespace headway::random_plans
