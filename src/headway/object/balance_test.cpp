// SPDX-License-Identifier: BSD-3-Clause
/// Strategies with known loads, and the effect of balance() on a collection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/call/rpc.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <numeric>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

object::LoadList list_of(const std::vector<std::vector<double>>& loads) {
  std::vector<object::Loads> all;
  for (const auto& of : loads) all.push_back({{of.size()}, of});
  return object::list_of(all);
}

std::vector<PeId> targets_of(const BalanceStrategy& strategy, const std::vector<std::vector<double>>& loads) {
  object::LoadList list = list_of(loads);
  strategy(list.elements, loads.size());
  std::vector<PeId> targets;
  for (const ElementLoad& element : list.elements) targets.push_back(element.pe);
  return targets;
}

TEST(Balance, strategies_do_what_they_say_to_known_loads) {
  EXPECT_EQ(targets_of(greedy(), {{4, 3, 2, 1}, {}}), (std::vector<PeId>{0, 1, 1, 0}));
  EXPECT_EQ(targets_of(greedy(), {{0, 0, 0, 0}, {}}), (std::vector<PeId>{0, 1, 0, 1}));
  EXPECT_EQ(targets_of(refine(), {{4, 3, 2, 1}, {}}), (std::vector<PeId>{1, 0, 0, 1}));
  EXPECT_EQ(targets_of(refine(), {{2, 2}, {4}}), (std::vector<PeId>{0, 0, 1}));
  EXPECT_EQ(targets_of(rotate(), {{1}, {2, 3}, {}}), (std::vector<PeId>{1, 2, 2}));
}

TEST(Balance, a_target_that_does_not_exist_is_refused) {
  const BalanceStrategy wrong = balance_by([](std::span<ElementLoad> all, std::size_t pes) { all[0].pe = PeId(pes); });
  testing::expect_usage_error([&] { targets_of(wrong, {{1}, {1}}); }, "PE 2");
  EXPECT_THROW(parse_balance("best"), SettingError);
  EXPECT_THROW(refine(-1), SettingError);
  EXPECT_THROW(balance_by({}), UsageError);
}

/// Random elements, `per_pe` on each PE, by a seed.
enum class Loads { equal, one_pe_has_most, some_are_large };
object::LoadList random_list(Loads kind, std::size_t pes, std::size_t per_pe) {
  Random random(7);
  std::vector<std::vector<double>> loads(pes);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    for (std::size_t i = 0; i < per_pe; ++i) {
      const double load = double(random.below(1000) + 1);
      const bool large = random.one_in(10);
      if (kind == Loads::equal) loads[pe].push_back(1);
      if (kind == Loads::one_pe_has_most) loads[pe].push_back(pe == 0 ? 8 * load : load);
      if (kind == Loads::some_are_large) loads[pe].push_back(large ? 100'000 : load);
    }
  }
  return list_of(loads);
}

struct Effect {
  double before, after;  // max over mean
  std::size_t moves;
};
Effect effect_of(const BalanceStrategy& strategy, std::vector<ElementLoad>& elements, std::size_t pes) {
  const std::vector<ElementLoad> before = elements;
  strategy(elements, pes);
  const BalanceTable table = object::table_of(before, elements, pes);
  Effect effect{table.max_before_s / table.mean_s, table.max_after_s / table.mean_s, 0};
  for (std::size_t i = 0; i < elements.size(); ++i) effect.moves += elements[i].pe != before[i].pe;
  return effect;
}

/// For comparison: each element, heaviest first, goes to the least loaded PE.
void place_anew(std::span<ElementLoad> elements, std::size_t pes) {
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return -elements[i].load_s; });
  std::vector<double> sums(pes);
  for (const std::size_t i : order) {
    const auto least = std::size_t(std::ranges::min_element(sums) - sums.begin());
    if (sums[elements[i].pe] != sums[least]) elements[i].pe = PeId(least);
    sums[elements[i].pe] += elements[i].load_s;
  }
}

TEST(Balance, greedy_comes_close_to_placing_all_anew_with_fewer_moves) {
  struct Case {
    Loads loads;
    std::size_t pes, per_pe, moves, moves_anew;
  };
  for (const Case& one : {Case{Loads::equal, 8, 100, 0, 698}, Case{Loads::one_pe_has_most, 2, 100, 27, 100},
                          Case{Loads::one_pe_has_most, 8, 16, 20, 114}, Case{Loads::one_pe_has_most, 64, 16, 170, 970},
                          Case{Loads::some_are_large, 8, 4, 2, 20}, Case{Loads::some_are_large, 64, 100, 68, 5756}}) {
    SCOPED_TRACE(::testing::Message() << int(one.loads) << " " << one.pes << " " << one.per_pe);
    std::vector<ElementLoad> anew = random_list(one.loads, one.pes, one.per_pe).elements, elements = anew;
    const Effect expected = effect_of(balance_by(place_anew), anew, one.pes);
    const Effect effect = effect_of(greedy(), elements, one.pes);
    EXPECT_EQ(expected.moves, one.moves_anew);
    EXPECT_EQ(effect.moves, one.moves);
    EXPECT_LE(effect.after, expected.after * 1.03);
    EXPECT_EQ(effect_of(greedy(), elements, one.pes).moves, 0u);  // balanced elements stay
    EXPECT_EQ(effect_of(refine(0.03), elements, one.pes).moves, 0u);
  }
}

template <class Naming>
class Sum : public Element<Sum<Naming>, Naming> {
 public:
  void add(std::int64_t value) { sum_ += value; }
  std::int64_t sum() const { return sum_; }
  template <class A>
  void serialize(A& archive) {
    archive(sum_);
  }

 private:
  std::int64_t sum_ = 0;
};
using Cell = Sum<Index<1>>;

TEST(Balance, everything_moves_in_rotation_and_no_message_is_lost) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Cell> cells(pe, {29}, {});
      for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 29; ++i) cells[{i}].send<&Cell::add>(1);
        const BalanceTable table = balance(cells, rotate());
        EXPECT_EQ(table.elements, 29u);
        EXPECT_EQ(table.moved, pe.size() > 1 ? 29u : 0u);
        EXPECT_EQ(table.rows[pe.id()].elements_after, cells.local_size());
        EXPECT_TRUE(table.counted);
      }
      cells.for_each_local([&](Cell& cell) { EXPECT_EQ(cell.sum(), 5 * std::int64_t(pe.size())); });
      balance(cells);
      const std::size_t fewest = 29 / pe.size();
      EXPECT_GE(cells.local_size(), fewest);
      EXPECT_LE(cells.local_size(), fewest + 1);
    });
  }
}

/// Element i is busy for i + 1 units: the elements of the last PE have the most work.
class Busy : public Element<Busy, Sparse<std::uint32_t>> {
 public:
  void work() {
    volatile std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 20'000 * (std::uint64_t(index()) + 1); ++i) sum = sum + i;
    ++worked_;
  }
  int worked() const { return worked_; }
  template <class A>
  void serialize(A& archive) {
    archive(worked_);
  }

 private:
  int worked_ = 0;
};

TEST(Balance, elements_move_by_the_time_that_their_methods_took) {
  for (const Shape shape : shapes) {
    if (shape.simulated != nullptr) continue;  // the simulated clock does not advance while a method runs
    expect_run(shape, [](Pe& pe) {
      SparseArray<Busy> elements(
          pe, {.placement = place<std::uint32_t>([](std::uint32_t) { return PeId(0); }), .measure_load = true});
      for (auto i = std::uint32_t(pe.id()); i < 12; i += std::uint32_t(pe.size())) elements[i].insert();
      elements.done_inserting();
      if (pe.id() == 0) elements.broadcast<&Busy::work>();
      const BalanceTable table = balance(elements, greedy());
      EXPECT_FALSE(table.counted);
      EXPECT_GT(table.mean_s, 0);
      EXPECT_EQ(table.max_before_s, table.rows[0].before_s);
      EXPECT_EQ(table.rows[0].elements_before, 12u);
      if (pe.size() > 1) {
        EXPECT_LT(table.max_after_s, table.max_before_s);
        EXPECT_GT(table.moved_bytes, 0u);
        EXPECT_NE(to_string(table).find(std::to_string(table.moved) + " of 12 elements moved"), std::string::npos);
      }
      if (pe.id() == 0) elements.broadcast<&Busy::work>();
      pe.quiesce();
      elements.for_each_local([&](const Busy& busy) { EXPECT_EQ(busy.worked(), 2); });
      EXPECT_EQ(table.rows[pe.id()].elements_after, elements.local_size());
      pe.quiesce();
    });
  }
}

/// A second class: the strategy gets the loads of both collections.
using Light = Sum<Sparse<std::uint64_t>>;

TEST(Balance, several_collections_are_one_picture) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t pes = pe.size();
      SparseArray<Light> lights(pe, {.placement = place<std::uint64_t>([](std::uint64_t) { return PeId(0); })});
      Array<Cell> cells(pe, {int(pes)}, {});
      for (std::uint64_t i = pe.id(); i < 3 * pes; i += pes) lights[i].insert();
      lights.done_inserting();
      // A cell of load 4 on each PE, lights of load 1 on PE 0. Balancing each collection alone would move one light
      // more.
      const BalanceStrategy weighted = balance_by([](std::span<ElementLoad> all, std::size_t size) {
        for (ElementLoad& element : all) element.load_s = element.collection == 0 ? 1 : 4;
        greedy()(all, size);
      });
      const BalanceTable table = balance(weighted, lights, cells);
      EXPECT_EQ(table.elements, 4 * pes);
      EXPECT_EQ(cells.local_size(), 1u);
      EXPECT_EQ(lights.local_size(), 3u);
      EXPECT_EQ(table.moved, 3 * (pes - 1));
      EXPECT_EQ(table.rows[pe.id()].elements_after, 4u);
      for (std::uint64_t i = 0; i < 3 * pes; ++i) lights[i].send<&Light::add>(1);
      const BalanceTable back = balance(balance_by([](std::span<ElementLoad> all, std::size_t) {
                                          for (ElementLoad& element : all) {
                                            if (element.collection == 0) element.pe = PeId(0);
                                          }
                                        }),
                                        lights, cells);
      EXPECT_EQ(back.moved, 3 * (pes - 1));
      EXPECT_EQ(cells.local_size(), 1u);
      lights.for_each_local([&](Light& light) { EXPECT_EQ(light.sum(), std::int64_t(pe.size())); });
      EXPECT_EQ(lights.local_size(), pe.id() == 0 ? 3 * pes : 0);
      pe.quiesce();
    });
  }
}

TEST(Balance, what_cannot_be_balanced_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Array<Cell> cells(pe, {4}, {}), others(pe, {4}, {});
    testing::expect_usage_error([&] { balance(greedy(), cells, others, cells); }, "number");
    testing::expect_usage_error([&] { (void)request_balance(greedy(), cells, cells); }, "once is allowed");
    // An exception of a strategy reaches the requester.
    auto wrong = request_balance(
        balance_by([](std::span<ElementLoad> all, std::size_t pes) { all[0].pe = PeId(pes + 7); }), cells, others);
    try {
      wrong.get();
      ADD_FAILURE();
    } catch (const RemoteError& error) {
      EXPECT_EQ(error.pe, pe.id());
      EXPECT_NE(std::string(error.what()).find("PE 9: PEs are 0 to 1"), std::string::npos) << error.what();
    }
    EXPECT_EQ(request_balance(greedy(), cells, others).get().elements, 8u);  // the next request is served
    pe.quiesce();
  });
}

/// Forwards each message until it has made its hops, and counts them. Requests balancing now and then.
class Hopper : public Element<Hopper, Index<1>> {
 public:
  void hop(std::uint32_t left, std::uint32_t random) {
    ++handled_;
    if (left == 0) return;
    random = random * 1664525 + 1013904223;
    if (left % 16 == 0 && random % 8 == 0) {
      request_balance(left % 32 == 0 ? rotate() : greedy(), all()).then([](const BalanceTable& table) {
        EXPECT_GT(table.elements, 0u);
        const std::uint64_t moves = table.moved + table.moving + table.missed;
        if (table.strategy == "rotate") {
          EXPECT_EQ(moves, table.rows.size() > 1 ? table.elements : 0u);
        }
      });
    }
    all()[int(random >> 8) % 24].send<&Hopper::hop>(left - 1, random);
  }
  Task<> sleep(std::uint32_t hops) {
    co_await all()[int(hops % 24)].rpc<&Hopper::handled>();
    ++handled_;
  }
  std::uint64_t handled() const { return handled_; }
  template <class A>
  void serialize(A& archive) {
    archive(handled_);
  }

 private:
  std::uint64_t handled_ = 0;
};

TEST(Balance, requests_move_elements_while_messages_go_on_and_none_is_lost) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Hopper> hoppers(pe, {24}, {});
      constexpr std::uint32_t messages = 20, hops = 200;
      for (std::uint32_t i = 0; i < messages; ++i) {
        hoppers[int(i)].send<&Hopper::hop>(hops, std::uint32_t(pe.id()) * 1000 + i);
      }
      for (int i = 0; i < 24; ++i) hoppers[i].send<&Hopper::sleep>(std::uint32_t(i + 1));
      std::uint64_t served = 0;
      request_balance(balance_by([](std::span<ElementLoad> all, std::size_t pes) {
                        for (ElementLoad& element : all) element.pe = PeId((element.pe + 1) % pes);
                      }),
                      hoppers)
          .then([&](const BalanceTable& table) {
            ++served;
            EXPECT_EQ(table.strategy, "own");
            EXPECT_EQ(table.moved + table.moving + table.missed, table.rows.size() > 1 ? table.elements : 0u);
          });
      const BalanceTable waited = request_balance(rotate(), hoppers).get();
      EXPECT_EQ(waited.strategy, "rotate");
      pe.quiesce();
      EXPECT_EQ(served, 1u);
      std::uint64_t handled = 0;
      hoppers.for_each_local([&](const Hopper& hopper) { handled += hopper.handled(); });
      EXPECT_EQ(allreduce(pe, handled, std::plus<>()), pe.size() * (messages * (hops + 1) + 24));
      EXPECT_EQ(allreduce(pe, hoppers.local_size(), std::plus<>()), 24u);
      EXPECT_EQ(object::Balancer::of(pe).waiting(), 0u);
      const BalanceTable last = balance(hoppers);  // phases and requests in one program
      EXPECT_EQ(last.moving + last.missed, 0u);
      pe.quiesce();
    });
  }
}

/// Decisions of a strategy on this PE.
thread_local std::uint64_t decisions = 0;

TEST(Balance, requests_of_a_kind_join_and_others_are_queued) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 3}, Shape{5, 2}}) {
    expect_run(shape, [](Pe& pe) {
      Array<Cell> cells(pe, {8}, {});
      const BalanceStrategy own = balance_by([](std::span<ElementLoad>, std::size_t) { ++decisions; });
      pe.quiesce();
      if (pe.id() == pe.size() - 1) {
        std::uint64_t same = 0, others = 0;
        for (int i = 0; i < 5; ++i) {
          request_balance(rotate(), cells).then([&](const BalanceTable&) { ++same; });
          request_balance(own, cells).then([&](const BalanceTable& table) {
            ++others;
            EXPECT_EQ(others, decisions);  // one at a time
            EXPECT_EQ(table.moved, 0u);
          });
        }
        EXPECT_EQ(same + others, 0u);  // a request returns before anything happens
        EXPECT_EQ(object::Balancer::of(pe).waiting(), 10u);
        request_balance(own, cells).get();
        EXPECT_EQ(decisions, 6u);
        EXPECT_EQ(same, 5u);
        EXPECT_EQ(others, 5u);
        // All requests shared one rotation by one PE: the elements of PE p were on the PE before.
      }
      pe.quiesce();
      cells.for_each_local(
          [&](Cell& cell) { EXPECT_EQ(pe.id(), (cells.home_of(cells.address_of(cell.index())) + 1) % pe.size()); });
      pe.quiesce();
    });
  }
}

}  // namespace
}  // namespace headway
