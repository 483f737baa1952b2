/// Strategies on known loads, and what balance() does to a collection.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/object/object.hpp>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

object::Picture picture_of(const std::vector<std::vector<double>>& loads) {
  std::vector<object::Loads> all;
  for (const auto& of : loads) all.push_back({{of.size()}, of});
  return object::picture_of(all);
}

std::vector<PeId> targets_of(const BalanceStrategy& strategy, const std::vector<std::vector<double>>& loads) {
  object::Picture picture = picture_of(loads);
  strategy(picture.elements, loads.size());
  std::vector<PeId> targets;
  for (const ElementLoad& element : picture.elements) targets.push_back(element.pe);
  return targets;
}

TEST(Balance, strategies_do_what_they_say_to_known_loads) {
  EXPECT_EQ(targets_of(greedy(), {{4, 3, 2, 1}, {}}), (std::vector<PeId>{1, 0, 0, 1}));
  EXPECT_EQ(targets_of(greedy(), {{0, 0, 0, 0}, {}}), (std::vector<PeId>{1, 1, 0, 0}));
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

class Cell : public Element<Cell, Index<1>> {
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

/// Element i is busy for i + 1 units: those of the last PE have most to do.
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
    if (shape.simulated != nullptr) continue;  // whose clock stands still while a method runs
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

}  // namespace
}  // namespace headway
