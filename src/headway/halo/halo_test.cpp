// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/index_list.hpp>
#include <headway/launch/simulation.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace headway {
namespace {

using halo::IndexList;
using halo::ListForm;
using Lists = std::vector<halo::PartnerIndices>;
using Places = std::vector<halo::Place>;

std::vector<std::uint64_t> indices(std::initializer_list<std::uint64_t> list) { return list; }

TEST(IndexList, finds_the_form_that_its_elements_have) {
  EXPECT_EQ(IndexList(indices({})).form(), ListForm::contiguous);
  EXPECT_EQ(IndexList(indices({5})).form(), ListForm::contiguous);
  EXPECT_EQ(IndexList(indices({5, 6, 7})).form(), ListForm::contiguous);
  EXPECT_EQ(IndexList(indices({5, 8, 11})).form(), ListForm::box);
  EXPECT_EQ(IndexList(indices({0, 1, 10, 11, 20, 21})).form(), ListForm::box);
  EXPECT_EQ(IndexList(indices({0, 1, 10, 11, 100, 101, 110, 111})).form(), ListForm::box);
  EXPECT_EQ(IndexList(indices({0, 1, 2, 3, 10, 11, 12, 13, 14})).form(), ListForm::runs);
  EXPECT_EQ(IndexList(indices({7, 3, 9, 1, 0})).form(), ListForm::gather);
  EXPECT_EQ(IndexList(indices({3, 2, 1})).form(), ListForm::gather);
}

TEST(IndexList, packs_and_unpacks_pieces_of_every_form_and_size) {
  const std::vector<std::vector<std::uint64_t>> lists{{4, 5, 6, 7, 8},
                                                      {2, 5, 8, 11},
                                                      {0, 1, 10, 11, 30, 31, 40, 41},
                                                      {0, 1, 2, 3, 10, 11, 12, 13, 14, 40},
                                                      {7, 3, 9, 1, 0, 7, 47, 2}};
  for (const std::vector<std::uint64_t>& list : lists) {
    const IndexList compiled(list);
    EXPECT_EQ(compiled.indices(), list);
    EXPECT_EQ(compiled.extent(), *std::ranges::max_element(list) + 1);
    for (const std::size_t bytes : {1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40}) {
      for (const std::size_t stride : {bytes, bytes + 8}) {
        std::vector<std::byte> memory(48 * stride);
        for (std::size_t i = 0; i != memory.size(); ++i) memory[i] = std::byte(i * 37 + i / 256);
        const halo::FieldView field{memory.data(), bytes, stride};
        for (std::size_t first = 0; first <= list.size(); ++first) {
          for (std::size_t count = 0; first + count <= list.size(); ++count) {
            std::vector<std::byte> packed(count * bytes), expected;
            compiled.pack(first, count, field, packed.data());
            for (std::size_t i = first; i != first + count; ++i)
              expected.insert(expected.end(), memory.begin() + std::ptrdiff_t(list[i] * stride),
                              memory.begin() + std::ptrdiff_t(list[i] * stride + bytes));
            ASSERT_EQ(packed, expected) << compiled.description() << ", " << bytes << " bytes";
            std::vector<std::byte> other(memory.size()), by_element(memory.size());
            compiled.unpack(first, count, packed.data(), {other.data(), bytes, stride});
            for (std::size_t i = first; i != first + count; ++i)
              std::copy_n(packed.begin() + std::ptrdiff_t((i - first) * bytes), bytes,
                          by_element.begin() + std::ptrdiff_t(list[i] * stride));
            ASSERT_EQ(other, by_element) << compiled.description() << ", " << bytes << " bytes";
          }
        }
      }
    }
  }
}

/// Runs body(pe) and expects a failure whose text contains all of `parts`.
void expect_failure(std::size_t pes, const std::function<void(Pe&)>& body, std::initializer_list<const char*> parts) {
  EXPECT_EXIT(  // in a process of its own: a run that fails abandons what lies on its fibers' stacks
      {
        const launch::SimulateResult result = launch::simulate({.pes = pes}, [&](Pe& pe) {
          body(pe);
          return 0;
        });
        for (const char* part : parts) {
          if (result.text.find(part) == std::string::npos) {
            std::fprintf(stderr, "no '%s' in: %s\n", part, result.text.c_str());
            std::_Exit(1);
          }
        }
        std::_Exit(result.status);
      },
      testing::ExitedWithCode(121), "");
}

TEST(HaloErrors, name_both_pes_the_types_and_the_counts) {
  expect_failure(2,
                 [](Pe& pe) {
                   const halo::PartnerIndices to{1 - pe.id().value, {0, 1, 2}}, from{1 - pe.id().value, {3, 4, 5}};
                   const halo::Plan plan = pe.id() == 0 ? halo::Plan::both(pe, Lists{to}, Lists{from})
                                                        : halo::Plan::both(pe, Lists{to}, Lists{{0, {3, 4}}});
                   std::vector<double> array(6);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                 },
                 {"PE 0 sends 3 elements of (double) to PE 1", "PE 1 expects 2 elements of (double)"});
  expect_failure(2,
                 [](Pe& pe) {
                   const halo::PartnerIndices to{1 - pe.id().value, {0}}, from{1 - pe.id().value, {1}};
                   const halo::Plan plan = halo::Plan::both(pe, Lists{to}, Lists{from});
                   std::vector<double> doubles(2);
                   std::vector<float> floats(2);
                   halo::Exchange exchange(
                       pe, plan, pe.id() == 0 ? std::vector{halo::field(doubles)} : std::vector{halo::field(floats)});
                 },
                 {"1 element of (double)", "1 element of (float)", "PE 0", "PE 1"});
  expect_failure(3,
                 [](Pe& pe) {
                   halo::Plan::receiving(pe, 4, Places{{2, 4}});
                 },
                 {"needs element 4 of PE 2, which owns 4 elements: expected 0 to 3"});
  expect_failure(3,
                 [](Pe& pe) {
                   halo::Plan::needed(pe, 4, std::vector<std::uint64_t>{9}, [](auto) { return halo::Place{3, 0}; });
                 },
                 {"needs id 9, whose owner is PE 3; this run has PEs 0 to 2"});
  expect_failure(1,
                 [](Pe& pe) {
                   const halo::Plan plan = halo::Plan::receiving(pe, 4, Places{{0, 3}});
                   std::vector<int> array(4);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                 },
                 {"field 0", "has 4 elements; its plan uses elements 0 to 4"});
  expect_failure(1,
                 [](Pe& pe) {
                   const halo::Plan plan = halo::Plan::receiving(pe, 4, Places{{0, 3}});
                   std::vector<int> array(5);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   exchange.begin();
                   exchange.begin();
                 },
                 {"begin() of a halo exchange that has begun"});
}

TEST(Halo, sends_one_frame_to_each_partner_whatever_the_number_of_fields) {
  const launch::SimulateResult result = launch::simulate({.pes = 3}, [](Pe& pe) {
    const std::size_t left = (pe.id() + 2) % 3, right = (pe.id() + 1) % 3;
    const halo::Plan plan = halo::Plan::receiving(pe, 10, Places{{left, 9}, {right, 0}, {right, 1}});
    std::vector<double> a(13);
    std::vector<int> b(13);
    std::vector<std::string::value_type> c(13);
    halo::Exchange exchange(pe, plan, {halo::field(a), halo::field(b), halo::field(c)});
    const std::uint64_t before = halo::Exchanges::of(pe).frames();
    for (int i = 0; i != 10; ++i) exchange();
    EXPECT_EQ(halo::Exchanges::of(pe).frames() - before, 20u);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

}  // namespace
}  // namespace headway
