// SPDX-License-Identifier: BSD-3-Clause
// Messages that no correct partner sends. halo_fuzz.cpp sends many more to an exchange; plans need an epoch of all PEs.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/base/random.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/launch/simulation.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway {
namespace {

using halo::Exchanges;
using halo::SetupKind;
using Lists = std::vector<halo::PartnerIndices>;
using Numbers = std::vector<std::uint64_t>;
using Places = std::vector<halo::Place>;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Calls make() on PE 0. PE 1 takes part with a message of these numbers, in a call of that kind. Returns the error of
/// PE 0, or nothing.
std::string answer_to(Pe& pe, SetupKind kind, const Numbers& numbers, const std::function<void()>& make) {
  if (pe.id() != 0) {
    Exchanges& exchanges = Exchanges::of(pe);
    exchanges.begin_setup(kind);
    Epoch epoch(pe);
    exchanges.send_setup(0, numbers);
    epoch.wait();
    (void)exchanges.end_setup();
    return {};
  }
  try {
    make();
  } catch (const FormatError& error) {
    return error.what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

void simulate_two(const std::function<void(Pe&)>& body) {
  const launch::SimulateResult result = launch::simulate({.pes = 2}, [&](Pe& pe) {
    body(pe);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

TEST(HaloMessages, of_a_plan_that_are_invalid_name_the_sender_and_the_numbers) {
  struct Case {
    SetupKind kind;
    Numbers numbers;
    std::string text;
  };
  const std::uint64_t most = ~std::uint64_t(0);
  const std::vector<Case> cases{
      {SetupKind::asks, {}, "it has 0 numbers; expected 2 or more"},
      {SetupKind::asks, {7, 1}, "it has 2 numbers, first 7; expected 2 or more, of which the first is at most 2"},
      {SetupKind::asks, {0, 5, 1}, "an invalid list of elements in 2 numbers, which begin with 5, 1"},
      {SetupKind::asks, {0, 0, 1, 3, 1, 1, 1, 0, 0, 44}, "1 number behind 1 element, contiguous"},
      {SetupKind::asks, {1, 0, 1, 3, 1, 1, 1, 0, 0}, "an invalid list of elements in 0 numbers"},
      {SetupKind::asks, {0, 0, 1, 4, 1, 1, 1, 0, 0}, "PE 1 needs element 4 of PE 0, which owns 4 elements"},
      {SetupKind::asks, {0, 0, most, 0, most, 1, 1, 0, 0}, "PE 1 needs element 4 of PE 0, which owns 4 elements"},
      {SetupKind::asks, {2, 1}, "PE 1 rebuilds a halo plan while PE 0 makes or rebuilds another one"},
      {SetupKind::counts, {}, "it has 0 numbers; expected 1"},
      {SetupKind::counts, {1, 2}, "it has 2 numbers; expected 1"},
      {SetupKind::counts, {0}, "it sends 0 elements; expected 1 to 281474976710656"},
      {SetupKind::counts, {most}, "it sends 18446744073709551615 elements; expected 1 to 281474976710656"},
  };
  simulate_two([&](Pe& pe) {
    for (const Case& one : cases) {
      const std::string text = answer_to(pe, one.kind, one.numbers, [&] {
        if (one.kind == SetupKind::asks)
          halo::Plan::receiving(pe, 4, Places{});
        else
          halo::Plan::sending(pe, 4, Lists{});
      });
      if (pe.id() != 0) continue;
      EXPECT_TRUE(has(text, one.text)) << text;
      EXPECT_TRUE(has(text, "PE 1") && has(text, "PE 0")) << text;
    }
  });
}

TEST(HaloMessages, of_a_plan_that_are_changed_at_random_are_refused_or_harmless) {
  simulate_two([](Pe& pe) {
    Random random(5);  // the same on both PEs
    std::size_t refused = 0;
    const std::vector<Numbers> lists{{0, 1, 2}, {0, 2}, {3, 1, 0, 3}, {0, 1, 2, 3, 0, 1, 2, 3, 1}};
    for (int time = 0; time != 3000; ++time) {
      Numbers numbers{random.below(2)};
      const halo::IndexList list(lists[random.below(lists.size())]);
      list.encode(numbers);
      if (numbers[0] == 1) list.encode(numbers);
      for (std::uint64_t i = random.below(3); i != 0; --i) {
        std::uint64_t& one = numbers[random.below(numbers.size())];
        one = random.one_in(2) ? random.below(12) : random.one_in(2) ? ~random.below(9) : random.next();
      }
      if (random.one_in(5)) numbers.resize(random.below(numbers.size() + 2));
      const std::string text = answer_to(pe, SetupKind::asks, numbers, [&] { halo::Plan::receiving(pe, 4, Places{}); });
      refused += !text.empty();
      EXPECT_TRUE(text.empty() || has(text, "PE 1")) << text;
    }
    if (pe.id() == 0) {
      EXPECT_GT(refused, 500u);
      EXPECT_LT(refused, 2900u);
    }
  });
}

/// A frame of PE 1 for PE 0.
struct Frame {
  halo::PieceHeader header;
  std::size_t bytes;
  std::string text;  // of the refusal
};

TEST(HaloMessages, with_elements_that_are_invalid_name_the_sender_and_the_numbers) {
  const std::uint64_t of_host = halo::stream_of_host;
  const std::vector<Frame> frames{
      {{0, 1, 0}, 0, "0 hops left, a tail of 0 bytes, 1 messages and 16 bytes; expected 0, 0, 1 and more than 16"},
      {{9, 1, 0}, 8, "names halo exchange number 9, which PE 0 has not made"},
      {{0, 1, 0}, 37, "sends 37 bytes at 0 of a stream for halo exchange number 0; PE 0 expects a stream of 36 bytes"},
      {{0, 1, 40}, 8, "sends 8 bytes at 40 of a stream"},
      {{0, 1, of_host - 8}, 16, "sends 16 bytes at 9223372036854775800 of a stream"},
      {{0, 1, 4}, 8, "sends 8 bytes at 4 of a stream of 36 bytes for halo exchange number 0 to PE 0; expected whole"},
      {{0, 1, 24}, 6, "sends 6 bytes at 24 of a stream of 36 bytes"},
      {{0, 0, 0}, 36, "sends elements of generation 0 of halo exchange number 0; PE 0 expects 1 to 3"},
      {{0, 4, 0}, 36, "sends elements of generation 4 of halo exchange number 0; PE 0 expects 1 to 3"},
      {{0, 1, of_host}, 36, "sends elements of its host, of generation 1, for halo exchange number 0; PE 0 expects"},
  };
  simulate_two([&](Pe& pe) {
    const std::size_t partner = 1 - pe.id();
    const auto plan = halo::Plan::receiving(pe, 3, Places{{partner, 0}, {partner, 1}, {partner, 2}});
    std::vector<double> doubles(6, -1);
    std::vector<float> floats(6, -1);
    halo::Exchange exchange(pe, plan, {halo::field(doubles), halo::field(floats)});
    const auto take = [&](const Frame& frame) {
      std::vector<std::byte> bytes(sizeof frame.header + frame.bytes);
      std::memcpy(bytes.data(), &frame.header, sizeof frame.header);
      transport::Arrival arrival;
      arrival.header = {};
      arrival.header.source = 1;
      arrival.header.count = 1;
      arrival.header.payload_bytes = std::uint32_t(bytes.size());
      arrival.payload = bytes.data();
      arrival.tail_end = bytes.data() + bytes.size();
      std::uint32_t next = 0;
      Exchanges::of(pe).handle(arrival, next);
    };
    for (const Frame& one : frames) {
      if (pe.id() != 0) break;
      try {
        take(one);
        ADD_FAILURE() << "no refusal: " << one.text;
      } catch (const FormatError& error) {
        EXPECT_TRUE(has(error.what(), one.text) && has(error.what(), "PE 1")) << error.what();
      }
    }
    pe.quiesce();
    exchange();  // the refused frames have changed nothing
    EXPECT_EQ(doubles, (std::vector<double>(6, -1)));
    pe.quiesce();
    exchange.begin();
    while (!exchange.done()) pe.progress();
    if (pe.id() == 0) {  // all elements are there
      try {
        take({{0, 2, 24}, 12, ""});
        ADD_FAILURE() << "no refusal of elements that have arrived";
      } catch (const FormatError& error) {
        EXPECT_TRUE(has(error.what(), "PE 1 sends 12 bytes for halo exchange number 0 to PE 0, which has 36 of 36"))
            << error.what();
      }
    }
    exchange.end();
  });
}

TEST(HaloMessages, that_acknowledge_elements_which_have_not_left_are_refused) {
  EXPECT_EXIT(
      {
        const launch::SimulateResult result = launch::simulate({.pes = 2}, [](Pe& pe) {
          const halo::PartnerIndices one{1 - pe.id().value, {0}};
          const auto plan =
              halo::Plan::both(pe, pe.id() == 0 ? Lists{one} : Lists{}, pe.id() == 0 ? Lists{} : Lists{one});
          std::vector<double> values(1);
          halo::Exchange exchange(pe, plan, {halo::field(values)});
          if (pe.id() == 1) Exchanges::of(pe).acknowledge(0, 0, 5);
          for (int time = 0; time != 100; ++time) exchange();
          return 0;
        });
        std::fputs(result.text.c_str(), stderr);
        std::_Exit(result.status);
      },
      ::testing::ExitedWithCode(121),
      "PE 1 acknowledges generation 5 of halo exchange number 0 to PE 0; expected 1 to [0-4]");
}

}  // namespace
}  // namespace headway
