// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <headway/base/error.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/global/array.hpp>
#include <headway/global/memory.hpp>
#include <map>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <utility>

namespace headway {
namespace {

using testing::expect_run;
using testing::expect_usage_error;
using testing::Shape;
using testing::shapes;

TEST(BlockCyclic, every_index_has_one_place) {
  for (const std::size_t pes : {1, 2, 3, 4, 7, 8}) {
    for (const std::size_t block : {1, 2, 3, 8, 1000}) {
      for (const std::size_t n : {0, 1, 5, 16, 100, 1023}) {
        const BlockCyclic layout(n, pes, block);
        std::map<std::pair<std::size_t, std::size_t>, std::size_t> places;
        for (std::size_t i = 0; i < n; ++i) {
          const PeId owner = layout.owner(i);
          EXPECT_EQ(owner.value, i / block % pes);
          EXPECT_LT(layout.local(i), layout.count(owner));
          EXPECT_EQ(layout.global(owner, layout.local(i)), i);
          EXPECT_TRUE(places.insert({{owner, layout.local(i)}, i}).second);
        }
        std::size_t all = 0;
        for (std::size_t pe = 0; pe < pes; ++pe) all += layout.count(pe);
        EXPECT_EQ(all, n) << pes << " PEs, blocks of " << block;
      }
    }
  }
}

TEST(DistArray, each_pe_finds_its_own_part_and_everybody_elses) {
  for (const Shape shape : shapes) {
    for (const bool mapped : {true, false}) {
#if defined(__SANITIZE_THREAD__)
      if (mapped && shape.pes_per_process > 1 && shape.pes_per_process < shape.pes) continue;  // see memory_test.cpp
#endif
      expect_run(shape, [&](Pe& pe) {
        GlobalMemory memory(pe, {.mapped = mapped});
        DistArray<std::uint32_t> a(pe, 1000, 7);
        DistArray<std::uint8_t> b(pe, 11);
        for (const std::uint32_t value : a.local()) EXPECT_EQ(value, 0u);
        for (std::size_t j = 0; j < a.local().size(); ++j) {
          a.local()[j] = std::uint32_t(a.layout().global(pe.id(), j) * 3 + 1);
        }
        for (std::uint8_t& value : b.local()) value = std::uint8_t(pe.id());
        barrier(pe);
        for (std::size_t i = pe.id(); i < a.size(); i += 13) EXPECT_EQ(memory.read(a.at(i)), i * 3 + 1);
        for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(memory.read(b[i]), b.owner(i).value);
        pe.quiesce();
      });
    }
  }
}

TEST(DistArray, places_are_read_as_pointers_to_them_are) {
  for (const Shape shape : shapes) {
    for (const bool mapped : {true, false}) {
#if defined(__SANITIZE_THREAD__)
      if (mapped && shape.pes_per_process > 1 && shape.pes_per_process < shape.pes) continue;  // see memory_test.cpp
#endif
      expect_run(shape, [&](Pe& pe) {
        GlobalMemory memory(pe, {.mapped = mapped});
        const auto read_all = [&]<class T>(DistArray<T>& array, auto value) {
          for (std::size_t j = 0; j < array.local().size(); ++j)
            array.local()[j] = value(array.layout().global(pe.id(), j));
          barrier(pe);
          const global::Places<T> places = array.places();
          for (std::size_t i = 0; i < array.size(); ++i) {
            EXPECT_EQ(memory.read(places, i), value(i));
            EXPECT_EQ(places[i], array[i]);
          }
          barrier(pe);
        };
        // Of each form that a layout has, also in a pool that is used from other than its begin.
        DistArray<std::uint64_t> one_block(pe, 7 * pe.size()), one_block_by_shifts(pe, 8 * pe.size());
        DistArray<std::uint64_t> by_shifts(pe, 50, 4), by_division(pe, 50, 3);
        const auto tripled = [](std::size_t i) { return std::uint64_t(3 * i + 1); };
        for (auto* array : {&one_block, &one_block_by_shifts, &by_shifts, &by_division}) read_all(*array, tripled);
        DistArray<std::array<double, 3>> larger(pe, 9, 2);
        read_all(larger, [](std::size_t i) { return std::array<double, 3>{double(i), 1, -double(i)}; });
        const std::string beyond = "to PE " + std::to_string(pe.size()) + ", the run has PEs 0 to ";
        expect_usage_error([&] { (void)memory.read(one_block_by_shifts.places(), 8 * pe.size()); }, beyond);
        pe.quiesce();
      });
    }
  }
}

TEST(DistArray, refuses_what_cannot_be) {
  expect_run({2, 1}, [](Pe& pe) {
    expect_usage_error([&] { DistArray<int>(pe, 10, 0); }, "allowed are blocks of 1 or more");
    DistArray<int> a(pe, 10);
    expect_usage_error([&] { (void)a.at(10); }, "DistArray::at(10): the array has 10 elements");
    GlobalMemory memory(pe);
    expect_usage_error([&] { (void)memory.read(GlobalPtr<int>()); }, "null");
    expect_usage_error([&] { (void)memory.read(GlobalPtr<int>(7, 0)); }, "to PE 7, the run has PEs 0 to 1");
    pe.quiesce();
  });
}

TEST(GlobalPtr, stays_on_its_pe) {
  const GlobalPtr<std::uint32_t> p(3, 4096);
  EXPECT_EQ((p + 5).offset(), 4116u);
  EXPECT_EQ((p + 5).pe().value, 3u);
  EXPECT_EQ((p + 5) - p, 5);
  EXPECT_EQ((p - 1).offset(), 4092u);
  EXPECT_LT(p, p + 1);
  EXPECT_TRUE(p);
  EXPECT_FALSE(GlobalPtr<std::uint32_t>());
}

}  // namespace
}  // namespace headway
