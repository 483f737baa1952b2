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

/// Another mesh with as many elements of some PEs, and mostly the same needs.
inline Drawing redraw(Random& random, const Drawing& before) {
  const std::size_t pes = before.owned.size();
  const Drawing other = draw(random, pes);
  if (random.one_in(3)) return other;
  Drawing drawing = before;
  for (std::size_t pe = 0; pe != pes; ++pe) {
    if (random.one_in(4)) drawing.owned[pe] = std::max(drawing.owned[pe], other.owned[pe]);
    if (!random.one_in(4)) continue;
    std::vector<halo::Place>& needed = drawing.needed[pe];
    needed.resize(random.below(needed.size() + 1));
    for (const halo::Place& one : other.needed[pe]) {
      if (one.index < drawing.owned[one.pe] && !random.one_in(3)) needed.push_back(one);
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
inline std::size_t part_of(std::uint64_t index) { return index * 7 / 5 % parts; }

/// Exchanges with parts: with `threads` a thread marks each, else the PE marks them in any order.
inline void exchange_parts(halo::Exchange& exchange, Random& own, bool threads, bool without_first = false) {
  exchange.begin_parts();
  std::vector<std::jthread> workers;  // end after the exchange
  const std::size_t first = own.below(parts);
  for (std::size_t i = 0; i != parts; ++i) {
    const std::size_t part = (first + i) % parts;
    if (without_first && part == 0) continue;
    if (threads)
      workers.emplace_back([&exchange, part] { exchange.ready(part); });
    else
      exchange.ready(part);
  }
  exchange.end();
}

/// An error of the program under test.
enum class Planted {
  nothing,
  marks_before_writing,  // part 0 gets its elements after they have left
  never_marks,           // part 0, if it has elements for another PE
};

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

/// Gives global ids to the elements, those of PE 0 first.
class Numbering {
 public:
  explicit Numbering(const Drawing& drawing) : first_(drawing.owned.size() + 1) {
    for (std::size_t p = 0; p + 1 != first_.size(); ++p) first_[p + 1] = first_[p] + drawing.owned[p];
  }
  std::vector<std::uint64_t> ids(const std::vector<halo::Place>& places) const {
    std::vector<std::uint64_t> ids;
    for (const halo::Place& one : places) ids.push_back(first_[one.pe] + one.index);
    return ids;
  }
  halo::Place place(std::uint64_t id) const {
    const auto after = std::ranges::upper_bound(first_, id);
    const auto owner = std::size_t(after - first_.begin() - 1);
    return {owner, id - first_[owner]};
  }

 private:
  std::vector<std::uint64_t> first_;
};

/// An exchange of one mesh, with its arrays, for several rounds.
struct Mesh {
  Drawing drawing;
  std::unique_ptr<Arrays> arrays;

  std::uint64_t owned(std::size_t me) const { return drawing.owned[me]; }
  std::size_t all(std::size_t me) const { return drawing.owned[me] + drawing.needed[me].size(); }
  void set(std::size_t me, std::uint64_t generation) const {
    for (std::uint64_t i = 0; i != owned(me); ++i) arrays->set(i, value_of(me, i, generation));
  }
  /// set() for the elements that are in part 0, or for all others.
  void set_some(std::size_t me, std::uint64_t generation, bool in_first_part) const {
    for (std::uint64_t i = 0; i != owned(me); ++i) {
      if ((part_of(i) == 0) == in_first_part) arrays->set(i, value_of(me, i, generation));
    }
  }
  std::uint64_t require(std::size_t me, std::uint64_t generation) const {
    std::uint64_t sum = 0, at = owned(me);
    for (const halo::Place& one : drawing.needed[me]) {
      const std::uint64_t value = value_of(one.pe, one.index, generation);
      arrays->require(at++, value, generation);
      sum += value;
    }
    return sum;
  }
};

/// Sums the elements of ghosts and owners, and compares with a serial computation.
inline std::uint64_t sum_back(Pe& pe, const halo::Plan& plan, const Drawing& drawing, Random& own, bool may_map,
                              halo::CombineOrder order, halo::Coalescing coalescing) {
  const std::size_t me = pe.id();
  const std::uint64_t owned = drawing.owned[me];
  const std::size_t all = owned + drawing.needed[me].size();
  const Array<std::uint64_t> sums(pe, all, may_map && !own.one_in(3));
  for (std::size_t i = 0; i != all; ++i) sums[i] = value_of(me, i, 0);
  halo::Exchange back(pe, plan.reverse(), {halo::field(sums.all(), std::plus<>())}, order, coalescing);
  back.divide(parts, part_of);
  exchange_somehow(pe, back, own, may_map);
  std::vector<std::uint64_t> expected(owned);
  for (std::uint64_t i = 0; i != owned; ++i) expected[i] = value_of(me, i, 0);
  for (std::size_t p = 0; p != pe.size(); ++p) {
    for (std::size_t i = 0; i != drawing.needed[p].size(); ++i) {
      const halo::Place& one = drawing.needed[p][i];
      if (one.pe == me) expected[one.index] += value_of(p, drawing.owned[p] + i, 0);
    }
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i != owned; ++i) {
    if (sums[i] != expected[i]) throw std::logic_error(fmt::format("sum {} is {}, not {}", i, sums[i], expected[i]));
    sum += sums[i];
  }
  return sum;
}

/// Collective: draws a plan, exchanges elements towards the ghosts several times, without a wait of all PEs between
/// two, and sums back. Rebuilds the plan for other meshes and repeats that. `may_map`: some of the arrays lie in mapped
/// memory. Returns a number that depends on all values. std::logic_error for a wrong element. `planted`: exchanges
/// towards ghosts are in parts, with this error.
inline std::uint64_t run(Pe& pe, std::uint64_t seed, bool may_map, Planted planted = Planted::nothing) {
  Random random(seed * 7);
  const std::size_t pes = pe.size(), me = pe.id();
  Random own(seed * 100 + me);
  const auto arrays_of = [&](const Drawing& drawing) {
    return std::make_unique<Arrays>(pe, drawing.owned[me] + drawing.needed[me].size(), may_map && !own.one_in(3));
  };
  const Drawing first = draw(random, pes);
  Mesh mesh{first, arrays_of(first)}, old{first, arrays_of(first)};
  halo::Plan plan = halo::Plan::receiving(pe, mesh.owned(me), mesh.drawing.needed[me]);
  // Between hosts: by the rule, always, never, or each PE as it likes.
  const auto coalescing = [&] { return halo::Coalescing(seed % 4 == 3 ? own.below(3) : seed % 4); };
  halo::Exchange exchange(pe, plan, mesh.arrays->fields(), halo::CombineOrder::any, coalescing());
  halo::Exchange other(pe, plan, old.arrays->fields(), halo::CombineOrder::any, coalescing());
  const std::uint64_t meshes = random.between(1, 4);
  std::uint64_t sum = 0, round = 0;
  for (std::uint64_t number = 1; number <= meshes; ++number) {
    const std::uint64_t rounds = round + random.between(number == 1, 4);
    const bool in_order = random.one_in(2);
    exchange.divide(parts, part_of);
    while (round++ != rounds) {
      if (planted != Planted::nothing) {
        const bool is_late = planted == Planted::marks_before_writing;
        mesh.set_some(me, round, false);
        if (!is_late) mesh.set_some(me, round, true);
        exchange_parts(exchange, own, may_map, !is_late);
        if (is_late) mesh.set_some(me, round, true);
        sum += mesh.require(me, round);
        continue;
      }
      mesh.set(me, round);
      if (own.one_in(3)) {
        for (std::uint64_t i = own.below(100); i > 0; --i) pe.progress();
      }
      const bool both = round % 3 == 0;
      if (both) {  // two are in flight, and end in any order
        old.set(me, round + 100);
        other.begin();
      }
      exchange_somehow(pe, exchange, own, may_map);
      if (both) other.end();
      sum += mesh.require(me, round);
      if (both) sum += old.require(me, round + 100);
      if (own.one_in(4)) {
        auto next = arrays_of(mesh.drawing);
        exchange.rebind(next->fields());
        mesh.arrays = std::move(next);
      }
    }
    --round;
    if (random.one_in(2)) {
      sum += sum_back(pe, plan, mesh.drawing, own, may_map,
                      in_order ? halo::CombineOrder::fixed : halo::CombineOrder::any, coalescing());
    }
    if (number == meshes) break;
    mesh.drawing = redraw(random, mesh.drawing);
    if (random.one_in(3)) {  // the rule differs, so that no plan may depend on the one before
      const Numbering numbering(mesh.drawing);
      plan.rebuild(pe, mesh.owned(me), numbering.ids(mesh.drawing.needed[me]),
                   [&](std::uint64_t id) { return numbering.place(id); });
    } else {
      plan.rebuild(pe, mesh.owned(me), mesh.drawing.needed[me]);
    }
    auto next = arrays_of(mesh.drawing);
    exchange.rebuild(plan, next->fields());
    mesh.arrays = std::move(next);
    if (random.one_in(3)) {  // else the other exchange keeps an older plan
      old.drawing = mesh.drawing;
      next = arrays_of(old.drawing);
      other.rebuild(plan, next->fields());
      old.arrays = std::move(next);
    }
  }
  return sum;
}

}  // namespace headway::random_plans
