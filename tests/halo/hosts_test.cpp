// SPDX-License-Identifier: BSD-3-Clause
// Exchanges between hosts with errors, or with a late set-up on some PEs. PEs of a host send in streams.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/halo/exchange.hpp>
#include <memory>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using halo::Coalescing;
using halo::CombineOrder;
using Lists = std::vector<halo::PartnerIndices>;
using testing::catch_run;
using testing::expect_run;
using testing::Outcome;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i != count; ++i) all.push_back(first + i);
  return all;
}

double value_of(std::size_t pe, std::uint64_t index, std::uint64_t round) {
  return double(pe) * 1e9 + double(round) * 1e6 + double(index);
}

// --- refusals

constexpr std::uint64_t owned = 5, shared = 3;  // elements of a PE; those that it sends to each other PE
constexpr std::size_t one = 1, other = 4;       // the PEs that do not agree, on two hosts of three PEs

/// Each PE sends to all others. With `differs`, PE `one` sends fewer elements to PE `other` than that expects.
halo::Plan all_to_all(Pe& pe, bool differs) {
  Lists sends, receives;
  for (std::size_t to = 0; to != pe.size(); ++to) {
    if (to == pe.id()) continue;
    sends.push_back({to, range(0, differs && pe.id() == one && to == other ? shared - 1 : shared)});
    receives.push_back({to, range(owned + shared * to, shared)});
  }
  return halo::Plan::both(pe, sends, receives);
}

/// Several exchanges with a check of values.
void require_right(Pe& pe, halo::Exchange& exchange, std::vector<double>& values) {
  EXPECT_TRUE(has(exchange.description(), "coalesced")) << exchange.description();
  for (std::uint64_t round = 1; round != 6; ++round) {
    for (std::uint64_t i = 0; i != owned; ++i) values[i] = value_of(pe.id(), i, round);
    exchange();
    for (std::size_t from = 0; from != pe.size(); ++from) {
      for (std::uint64_t i = 0; from != pe.id() && i != shared; ++i)
        ASSERT_EQ(values[owned + shared * from + i], value_of(from, i, round));
    }
  }
}

/// Calls make(), which PEs `one` and `other` must refuse, and no others.
template <class Make>
void expect_refusal(Pe& pe, Make make) {
  bool is_refused = false;
  try {
    make();
  } catch (const UsageError& error) {
    is_refused = true;
    EXPECT_TRUE(has(error.what(), "PE 1 sends 2 elements of (double) to PE 4; PE 4 expects 3 elements of (double)"))
        << error.what();
  }
  EXPECT_EQ(is_refused, pe.id() == one || pe.id() == other);
}

TEST(HaloHosts, a_refused_exchange_leaves_others_alone) {
  expect_run({6, 3}, [](Pe& pe) {
    std::vector<double> values(owned + shared * pe.size());
    std::vector<float> floats(values.size());
    const auto make = [&](const halo::Plan& plan, halo::FieldRef field) {
      return std::make_unique<halo::Exchange>(pe, plan, std::vector{field}, CombineOrder::any, Coalescing::always);
    };
    const halo::Plan right = all_to_all(pe, false), wrong = all_to_all(pe, true);
    const auto before = make(right, halo::field(values));
    require_right(pe, *before, values);
    expect_refusal(pe, [&] { make(wrong, halo::field(values)); });
    require_right(pe, *before, values);
    require_right(pe, *make(right, halo::field(values)), values);

    // Other types on one PE, which all others refuse.
    try {
      make(right, pe.id() == one ? halo::field(floats) : halo::field(values));
      ADD_FAILURE() << "PE " << pe.id().value << " accepts other types";
    } catch (const UsageError& error) {
      EXPECT_TRUE(has(error.what(), "PE 1") && has(error.what(), "of (float)") && has(error.what(), "of (double)"))
          << error.what();
      EXPECT_TRUE(has(error.what(), "PE " + std::to_string(pe.id() == one ? 5 : pe.id().value))) << error.what();
    }
    require_right(pe, *make(right, halo::field(values)), values);
    require_right(pe, *before, values);
  });
}

TEST(HaloHosts, a_refused_rebuild_leaves_others_alone) {
  expect_run({6, 3}, [](Pe& pe) {
    std::vector<double> values(owned + shared * pe.size());
    const halo::Plan right = all_to_all(pe, false), wrong = all_to_all(pe, true);
    const auto make = [&] {
      return std::make_unique<halo::Exchange>(pe, right, std::vector{halo::field(values)}, CombineOrder::any,
                                              Coalescing::always);
    };
    const auto before = make();
    for (int time = 0; time != 3; ++time) {
      const auto rebuilt = make();
      require_right(pe, *rebuilt, values);
      rebuilt->rebuild(right);
      require_right(pe, *rebuilt, values);
      expect_refusal(pe, [&] { rebuilt->rebuild(wrong); });
      if (pe.id() == one || pe.id() == other) {
        EXPECT_THROW(rebuilt->begin(), UsageError);
      }
      require_right(pe, *before, values);
    }
    require_right(pe, *make(), values);
  });
}

TEST(HaloHosts, an_exchange_that_two_pes_refuse_ends_the_run) {
  for (const bool is_rebuild : {false, true}) {
    const Outcome outcome = catch_run({6, 3}, [is_rebuild](Pe& pe) {
      std::vector<double> values(owned + shared * pe.size());
      halo::Exchange exchange(pe, all_to_all(pe, !is_rebuild), {halo::field(values)}, CombineOrder::any,
                              Coalescing::always);
      exchange();
      if (is_rebuild) exchange.rebuild(all_to_all(pe, true));
      exchange();  // the others wait here
    });
    EXPECT_EQ(outcome.status, 121) << outcome.text;
    EXPECT_TRUE(has(outcome.text, "PE 1 sends 2 elements of (double) to PE 4; PE 4 expects 3 elements of (double)"))
        << outcome.text;
  }
}

// --- elements that arrive before a set-up has ended

constexpr std::size_t per_host = 2, late = 5;  // hosts: {0, 1} and {4, 5} send to {2, 3}
constexpr std::uint64_t rounds_early = 3;      // a PE begins so many exchanges before its partners have ended one

bool sends(std::size_t pe) { return pe / per_host != 1; }

/// Each sender sends `n` elements to each receiver. With `late_to_one`, the late PE sends to PE 3 alone.
halo::Plan to_one_host(Pe& pe, std::uint64_t n, bool late_to_one) {
  const auto sends_to = [&](std::size_t from, std::size_t to) { return !late_to_one || from != late || to == 3; };
  Lists sent, received;
  for (std::size_t partner = 0; partner != pe.size(); ++partner) {
    if (sends(pe.id()) && !sends(partner) && sends_to(pe.id(), partner)) sent.push_back({partner, range(0, n)});
    if (!sends(pe.id()) && sends(partner) && sends_to(partner, pe.id()))
      received.push_back({partner, range(n * partner, n)});
  }
  return halo::Plan::both(pe, sent, received);
}

/// Makes or rebuilds exchanges in an order in which the PEs 2 and 3 wait for the late PE in their set-up while the
/// elements of PEs 0 and 1 arrive.
class Late {
 public:
  explicit Late(Pe& pe) : pe_(&pe), told_(pe, {.topology = direct()}) {  // behind the elements of the same sender
    told_.on([this](int) {
      ++seen_;
      if (!sends(pe_->id())) told_.send(late, 1);
    });
  }

  /// set_up() makes or rebuilds exchange(). All PEs do some exchanges after it.
  template <class SetUp, class TheExchange>
  void run(std::uint64_t n, bool late_to_one, SetUp set_up, TheExchange exchange) {
    const std::size_t me = pe_->id();
    std::vector<double> values(n * pe_->size());
    const halo::Plan plan = to_one_host(*pe_, n, late_to_one);
    if (me == late) wait(per_host);
    set_up(plan, values);
    for (std::uint64_t round = 1; round <= rounds_early + 3; ++round) {
      if (me == 0 && round == 1) wait(1);  // PE 1 has packed, so this PE posts the stream
      for (std::uint64_t i = 0; sends(me) && i != n; ++i) values[i] = value_of(me, i, round);
      exchange().begin();
      exchange().end();
      for (const halo::Partner& from : exchange().plan().receives()) {
        for (std::uint64_t i = 0; i != n; ++i)
          ASSERT_EQ(values[n * from.pe + i], value_of(from.pe, i, round)) << from.pe << ", " << i << ", " << round;
      }
      if (round != rounds_early) continue;
      if (me == 1) tell(0);
      if (me == 0) {
        tell(2);
        tell(3);
      }
    }
    pe_->quiesce();
  }

 private:
  void tell(std::size_t to) {
    told_.send(to, 1);
    told_.flush();
  }
  void wait(std::size_t times) {
    while (seen_ < times) pe_->progress();
    seen_ = 0;
  }

  Pe* pe_;
  Aggregator<int> told_;
  std::size_t seen_ = 0;
};

TEST(HaloHosts, elements_that_arrive_during_set_up_are_kept) {
  expect_run({6, per_host}, [](Pe& pe) {
    Late late_pe(pe);
    for (const Coalescing coalescing : {Coalescing::always, Coalescing::never}) {
      for (const CombineOrder order : {CombineOrder::any, CombineOrder::fixed}) {
        for (const bool late_to_one : {false, true}) {
          std::unique_ptr<halo::Exchange> exchange;
          const auto the_exchange = [&]() -> halo::Exchange& { return *exchange; };
          const auto make = [&](const halo::Plan& plan, std::vector<double>& values) {
            exchange = std::make_unique<halo::Exchange>(pe, plan, std::vector{halo::field(values)}, order, coalescing);
            EXPECT_EQ(has(exchange->description(), "coalesced"), coalescing == Coalescing::always);
          };
          const auto rebuild = [&](const halo::Plan& plan, std::vector<double>& values) {
            exchange->rebuild(plan, {halo::field(values)});
          };
          late_pe.run(10, late_to_one, make, the_exchange);
          late_pe.run(30000, late_to_one, rebuild, the_exchange);  // in several frames
          late_pe.run(7, !late_to_one, rebuild, the_exchange);
        }
      }
    }
  });
}

}  // namespace
}  // namespace headway
