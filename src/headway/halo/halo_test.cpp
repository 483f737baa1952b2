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

TEST(IndexList, refuses_invalid_encoded_lists) {
  const std::uint64_t most = ~std::uint64_t(0);
  const std::vector<std::vector<std::uint64_t>> messages{
      {4, 1, 0},                                   // form
      {0, 3, 0, 2, 1, 1, 0, 0},                    // size
      {1, 6, 0, 3, 2, 1, 2, 0},                    // rows overlap
      {1, 6, most - 5, 3, 2, 1, 4, 0},             // extent
      {1, 0, 0, 0, 0, 0, 0, 0},                    // no element
      {1, 2, 0, most / 2 + 2, 2, 1, most / 2, 0},  // size, modulo 2^64
      {2, 8, 2, 0, 0, 10, 0},                      // runs without elements
      {2, 8, 2, 0, 1, 10, 4},                      // begin
      {2, 8, 2, 0, 0, most, 4},                    // extent
      {2, 8, 0},                                   // no run
      {256 + 3, 1, most},                          // extent
  };
  for (const std::vector<std::uint64_t>& message : messages) {
    IndexList list;
    std::span<const std::uint64_t> numbers(message);
    EXPECT_THROW(list.decode(numbers), FormatError) << message[0] << ", " << message[1];
  }
  const std::vector<std::uint64_t> wide{std::uint64_t(1) << 40, 3, 7};
  std::vector<std::uint64_t> message;
  IndexList(wide).encode(message);
  std::span<const std::uint64_t> numbers(message);
  IndexList list;
  list.decode(numbers);
  EXPECT_EQ(list.indices(), wide);
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
    std::vector<std::uint64_t> message;
    compiled.encode(message);
    std::span<const std::uint64_t> numbers(message);
    IndexList again(indices({9, 4, 4}));
    again.decode(numbers);
    EXPECT_TRUE(again == compiled && again.extent() == compiled.extent() && numbers.empty());
    for (std::size_t length = 0; length != message.size(); ++length) {
      std::span<const std::uint64_t> less(message.data(), length);
      EXPECT_THROW(again.decode(less), FormatError) << compiled.description() << ", " << length << " numbers";
    }
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

/// Runs body(pe) and expects a failure with each of `parts` in its text.
void expect_failure(std::size_t pes, const std::function<void(Pe&)>& body, std::initializer_list<const char*> parts) {
  EXPECT_EXIT(  // in a process of its own: a failed run abandons the objects on its fibers' stacks
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

TEST(HaloErrors, name_partners_that_make_other_calls) {
  expect_failure(
      2,
      [](Pe& pe) {  // PE 1 has no part in the exchange
        const halo::Plan plan =
            pe.id() == 0 ? halo::Plan::both(pe, Lists{{1, {0, 1}}}, {}) : halo::Plan::both(pe, {}, {});
        std::vector<double> array(2);
        halo::Exchange exchange(pe, plan, {halo::field(array)});
        pe.quiesce();
      },
      {"halo exchange number 0: PE 0 sends 2 elements of (double) to PE 1 and expects 0 elements of (double); "
       "PE 1 has no part in it"});
  expect_failure(2,
                 [](Pe& pe) {
                   const halo::Plan plan = halo::Plan::both(pe, Lists{{1 - pe.id().value, {0}}}, {});
                   std::vector<double> array(2);
                   if (pe.id() == 0) halo::Exchange exchange(pe, plan, {halo::field(array)});
                   halo::Plan::receiving(pe, 2, Places{{1 - pe.id().value, 1}});
                 },
                 {"halo set-up call number 1", "makes or rebuilds an exchange",
                  "makes or rebuilds a plan of needed elements", "PE 0", "PE 1"});
}

TEST(HaloErrors, name_both_pes_when_a_rebuild_fails) {
  const auto ring = [](Pe& pe) { return halo::Plan::receiving(pe, 2, Places{{1 - pe.id().value, 1}}); };
  expect_failure(2,
                 [&](Pe& pe) {
                   halo::Plan plan = ring(pe);
                   std::vector<double> array(3);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   exchange();
                   plan.rebuild(pe, 2, Places{{1 - pe.id().value, pe.id() == 0 ? 3u : 0u}});
                 },
                 {"PE 0 needs element 3 of PE 1, which owns 2 elements: expected 0 to 1"});
  expect_failure(2,
                 [&](Pe& pe) {
                   halo::Plan plan = ring(pe);
                   std::vector<double> array(3);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   exchange();
                   plan.rebuild(pe, 2, Places{{1 - pe.id().value, 0}, {pe.id(), 0}});
                   exchange.rebuild(plan);
                 },
                 {"field 0", "has 3 elements; its plan uses elements 0 to 3"});
  expect_failure(2,
                 [&](Pe& pe) {
                   halo::Plan plan = ring(pe);
                   std::vector<double> array(4);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   plan.rebuild(pe, 2, Places{{1 - pe.id().value, 0}, {pe.id(), 0}});
                   if (pe.id() == 1) plan = halo::Plan::both(pe, Lists{{0, {0}}}, Lists{{0, {1, 2}}});
                   exchange.rebuild(plan);
                 },
                 {"halo exchange number 0: PE 0 sends 1 element of (double) to PE 1; PE 1 expects 2 elements"});
  expect_failure(2,
                 [&](Pe& pe) {
                   halo::Plan plan = ring(pe);
                   std::vector<double> array(4);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   exchange.begin();
                   exchange.rebuild(plan);
                 },
                 {"rebuild() of a halo exchange between begin() and end()"});
  expect_failure(2,
                 [&](Pe& pe) {
                   const halo::Plan plan = ring(pe);
                   std::vector<double> array(3);
                   std::vector<float> floats(3);
                   halo::Exchange exchange(pe, plan, {halo::field(array)});
                   exchange.rebuild(plan, {halo::field(floats)});
                 },
                 {"rebuild() of a halo exchange of (double) to fields of (float)"});
  expect_failure(2,
                 [&](Pe& pe) {  // PE 1 rebuilds the other plan
                   halo::Plan one = ring(pe), two = ring(pe);
                   (pe.id() == 0 ? one : two).rebuild(pe, 2, Places{{1 - pe.id().value, 1}});
                 },
                 {"rebuilds a halo plan while PE", "makes or rebuilds another one"});
}

TEST(Halo, rebuild_leaves_copies_of_the_plan_alone_and_reuses_memory) {
  const launch::SimulateResult result = launch::simulate({.pes = 2}, [](Pe& pe) {
    const std::size_t other = 1 - pe.id();
    halo::Plan plan = halo::Plan::receiving(pe, 9, Places{{other, 3}, {other, 8}, {other, 0}});
    const halo::Plan copy = plan;
    const halo::Partner* const first = plan.receives().data();
    plan.rebuild(pe, 9, Places{{other, 4}});
    EXPECT_EQ(copy.receives()[0].list.size(), 3u);
    EXPECT_EQ(copy.sends()[0].list.indices(), indices({3, 8, 0}));
    EXPECT_EQ(plan.sends()[0].list.indices(), indices({4}));
    const halo::Partner* const second = plan.receives().data();
    plan.rebuild(pe, 9, Places{{other, 4}});  // the copy has the memory of the first one
    EXPECT_NE(plan.receives().data(), first);
    plan.rebuild(pe, 9, Places{{other, 5}});
    EXPECT_EQ(plan.receives().data(), second);
    EXPECT_EQ(copy.sends()[0].list.indices(), indices({3, 8, 0}));
    EXPECT_EQ(plan.sends()[0].list.indices(), indices({5}));
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

TEST(Halo, arrays_hold_all_own_elements_also_without_partners) {
  const launch::SimulateResult result = launch::simulate({.pes = 3}, [](Pe& pe) {
    const std::size_t other = 1 - pe.id() % 2;  // PE 2 has no partner
    const Places needed = pe.id() == 2 ? Places{} : Places{{other, 3}};
    const Lists sent = pe.id() == 2 ? Lists{} : Lists{{other, {3}}};
    halo::Plan plan = halo::Plan::receiving(pe, 9, needed);
    EXPECT_EQ(plan.extent(), pe.id() == 2 ? 9u : 10u);
    EXPECT_EQ(plan.reverse().extent(), plan.extent());
    EXPECT_EQ(halo::Plan::sending(pe, 9, sent).extent(), pe.id() == 2 ? 9u : 10u);
    EXPECT_EQ(halo::Plan::both(pe, sent, {}).extent(), pe.id() == 2 ? 0u : 4u);
    plan.rebuild(pe, 7, needed);
    EXPECT_EQ(plan.extent(), pe.id() == 2 ? 7u : 8u);
    std::vector<double> array(plan.extent());
    halo::Exchange exchange(pe, plan, {halo::field(array)});
    exchange();
    std::vector<double> shorter(plan.extent() - 1);
    EXPECT_THROW(exchange.rebind({halo::field(shorter)}), UsageError);
    exchange();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
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
