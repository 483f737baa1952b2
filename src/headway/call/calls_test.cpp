// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <headway/call/calls.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Shape;
using testing::shapes;
using testing::Shared;
using testing::topologies;

void add_to(std::uint64_t& sum, std::uint64_t value) { sum += value; }
void add_from(Pe& pe, PeId source, std::uint64_t& sum, std::uint64_t value) {
  sum += value * 1000 + source * 10 + (pe.id() + 1) % 10;
}
std::uint64_t with_a_result(std::uint64_t& sum, std::uint64_t value) { return sum += value; }
template <class T>
void append(std::vector<T>& to, const T& value) {
  to.push_back(value);
}

TEST(RpcFf, runs_lambdas_on_other_pes_with_their_own_objects) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      DistObject<std::uint64_t> sum(pe, 0u);
      for (std::uint64_t i = 0; i < 2000; ++i) {
        rpc_ff(
            pe, i % pe.size(), [](std::uint64_t& mine, std::uint64_t value) { mine += value; }, sum, i);
      }
      EXPECT_EQ(pe.quiesce(), 2000 * pe.size());
      std::uint64_t expected = 0;
      for (std::uint64_t i = pe.id(); i < 2000; i += pe.size()) expected += i * pe.size();
      EXPECT_EQ(*sum, expected);
    });
  }
}

TEST(RpcFf, runs_plain_functions_and_gives_them_pe_and_source_if_they_take_them) {
  expect_run({5, 2}, [](Pe& pe) {
    DistObject<std::uint64_t> plain(pe, 0u), result(pe, 0u), source(pe, 0u), lambda(pe, 0u);
    DistObject<std::vector<std::string>> texts(pe);
    for (std::size_t target = 0; target < pe.size(); ++target) {
      rpc_ff(pe, target, add_to, plain, std::uint64_t(7));
      rpc_ff(pe, target, &with_a_result, result, std::uint64_t(8));
      rpc_ff(pe, target, add_from, source, std::uint64_t(1));
      rpc_ff(pe, target, append<std::string>, texts, std::string("from " + std::to_string(pe.id())));
      rpc_ff(
          pe, target, [](Pe& there, std::uint64_t& mine, std::uint64_t expected) { mine += there.id() == expected; },
          lambda, std::uint64_t(target));
    }
    EXPECT_EQ(pe.quiesce(), 5 * 25u);
    EXPECT_EQ(*plain, 35u);
    EXPECT_EQ(*result, 40u);
    EXPECT_EQ(*source, 5 * 1000 + 10 * (0 + 1 + 2 + 3 + 4) + 5 * (pe.id() + 1));
    EXPECT_EQ(*lambda, 5u);
    std::sort(texts->begin(), texts->end());
    EXPECT_EQ(*texts, (std::vector<std::string>{"from 0", "from 1", "from 2", "from 3", "from 4"}));
  });
}

TEST(RpcFf, takes_arguments_of_every_kind) {
  struct Point {
    double x, y;
  };
  struct Record {
    std::string name;
    std::vector<int> values;
  };
  struct alignas(64) Wide {
    std::uint64_t words[8];
  };
  expect_run({3, 1}, [](Pe& pe) {
    DistObject<std::size_t> calls(pe, 0u);
    const std::size_t next = (pe.id() + 1) % pe.size();
    rpc_ff(
        pe, next, [](std::size_t& n) { ++n; }, calls);
    rpc_ff(pe, next, [] {});
    rpc_ff(
        pe, next, [](std::size_t& n, std::string_view text) { n += text == "a literal"; }, calls, "a literal");
    rpc_ff(
        pe, next, [](std::size_t& n, const std::string& text) { n += text == std::string(5000, 's'); }, calls,
        std::string(5000, 's'));
    rpc_ff(
        pe, next, [](std::size_t& n, const Point& p) { n += p.x == 1.5 && p.y == 2.5; }, calls, Point{1.5, 2.5});
    rpc_ff(
        pe, next, [](std::size_t& n, const Record& r) { n += r.name == "r" && r.values.size() == 3; }, calls,
        Record{"r", {1, 2, 3}});
    rpc_ff(
        pe, next, [](const std::map<int, std::string>& m, std::size_t& n) { n += m.at(2) == "two"; },
        std::map<int, std::string>{{1, "one"}, {2, "two"}}, calls);
    std::vector<std::uint64_t> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 0);
    auto sum_is = [](std::size_t& n, std::span<const std::uint64_t> s) {
      n += s.size() == 100 && std::accumulate(s.begin(), s.end(), std::uint64_t(0)) == 4950;
    };
    rpc_ff(pe, next, sum_is, calls, std::span<const std::uint64_t>(numbers));
    rpc_ff(pe, next, sum_is, calls, std::span<std::uint64_t>(numbers));
    rpc_ff(
        pe, next, [](std::size_t& n, const std::vector<std::uint64_t>& v) { n += v.size() == 100 && v[99] == 99; },
        calls, numbers);
    rpc_ff(
        pe, next,
        [](std::size_t& n, char c, const Wide& w) {
          n += c == 'w' && w.words[7] == 7 && reinterpret_cast<std::uintptr_t>(&w) % 64 == 0;
        },
        calls, 'w', Wide{{0, 1, 2, 3, 4, 5, 6, 7}});
    const std::vector<std::uint8_t> large(1'000'000, 3);
    rpc_ff(
        pe, next,
        [](std::size_t& n, std::span<const std::uint8_t> s, std::string_view end) {
          n += s.size() == 1'000'000 && s[999'999] == 3 && end == "end";
        },
        calls, std::span<const std::uint8_t>(large), std::string_view("end"));
    EXPECT_EQ(pe.quiesce(), 12 * pe.size());
    EXPECT_EQ(*calls, 11u);
  });
}

TEST(RpcFf, calls_call_on) {
  struct Hop {
    static void run(Pe& pe, std::uint64_t& visits, const DistObject<std::uint64_t>& object, std::uint32_t left,
                    std::uint64_t seed) {
      ++visits;
      if (left == 0) return;
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      rpc_ff(
          pe, (seed >> 33) % pe.size(),
          [](Pe& there, std::uint64_t& mine, std::uint32_t l, std::uint64_t s) {
            run(there, mine, *registered(there), l, s);
          },
          object, left - 1, seed);
    }
    /// Each PE's own DistObject, for calls that call on with it.
    static const DistObject<std::uint64_t>*& registered(Pe&) {
      thread_local const DistObject<std::uint64_t>* object = nullptr;
      return object;
    }
  };
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      DistObject<std::uint64_t> visits(pe, 0u);
      Hop::registered(pe) = &visits;
      pe.quiesce();
      for (std::uint64_t i = 0; i < 100; ++i) Hop::run(pe, *visits, visits, 20, i * 31 + pe.id());
      EXPECT_EQ(pe.quiesce(), 100 * 20 * pe.size());
    });
  }
}

TEST(CallAggregator, takes_any_route_and_keeps_order_if_asked) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        CallAggregator calls(pe, {.buffer_bytes = 1_KiB, .topology = topology, .ordered = true});
        DistObject<std::vector<std::uint32_t>> next(pe, pe.size());
        DistObject<std::uint64_t> wrong(pe, 0u);
        std::vector<std::uint32_t> sent(pe.size());
        for (std::uint32_t i = 0; i < 500; ++i) {
          const std::size_t target = i * 3 % pe.size();
          const std::string text(i % 40 == 7 ? 3000 : i % 30, 'x');
          calls.rpc_ff(
              target,
              [](Pe&, PeId source, std::vector<std::uint32_t>& expected, std::uint64_t& bad, std::uint32_t number,
                 std::string_view) { bad += expected[source]++ != number; },
              next, wrong, sent[target]++, std::string_view(text));
        }
        EXPECT_EQ(pe.quiesce(), 500 * pe.size());
        EXPECT_EQ(*wrong, 0u);
        EXPECT_EQ(calls.statistics().messages, 500u);
      }
    });
  }
}

TEST(DistObject, calls_that_arrive_before_it_is_made_wait_for_it) {
  for (const Shape shape : {Shape{4, 1}, Shape{4, 4}}) {
    Shared<std::atomic<std::uint32_t>> sent;
    expect_run(shape, [&](Pe& pe) {
      // PE 3 makes its objects last, one after the other, long after calls to them have arrived.
      if (pe.id() == 3) {
        for (int i = 0; i < 10'000 && sent->load() < 3; ++i) {
          pe.progress();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_EQ(sent->load(), 3u);
        for (int i = 0; i < 20; ++i) pe.progress();
      }
      DistObject<std::uint64_t> first(pe, 0u);
      if (pe.id() == 3) {
        for (int i = 0; i < 20; ++i) pe.progress();
        EXPECT_EQ(*first, 3 * 10u);  // those that need only this one
      }
      DistObject<std::vector<std::string>> second(pe);
      if (pe.id() != 3) {
        for (std::uint64_t i = 0; i < 10; ++i) {
          rpc_ff(
              pe, 3, [](std::uint64_t& sum) { ++sum; }, first);
          rpc_ff(
              pe, 3, [](std::vector<std::string>& list, std::string_view text) { list.emplace_back(text); }, second,
              std::string_view("short"));
          rpc_ff(
              pe, 3,
              [](std::uint64_t& sum, std::vector<std::string>& list, const std::string& text) {
                sum += 1000;
                list.push_back(text);
              },
              first, second, std::string(500, 'l'));
        }
        call::default_calls(pe).flush();
        sent->fetch_add(1);
      }
      EXPECT_EQ(pe.quiesce(), 3 * 30u);
      EXPECT_EQ(*first, pe.id() == 3 ? 30 + 30'000u : 0u);
      EXPECT_EQ(second->size(), pe.id() == 3 ? 60u : 0u);
      EXPECT_EQ(pe.quiesce(), 0u);
    });
  }
}

TEST(DistObject, calls_to_one_that_is_never_made_are_reported_as_undelivered) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    if (pe.id() == 1) return;
    DistObject<int> lonely(pe, 0);
    for (int i = 0; i < 3; ++i)
      rpc_ff(
          pe, 1, [](int& mine) { ++mine; }, lonely);
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  EXPECT_NE(outcome.text.find("3 messages are undelivered on PE 1"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("'rpc_ff'"), std::string::npos) << outcome.text;
}

TEST(DistObject, a_call_to_a_destroyed_one_ends_the_run_and_says_so) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    auto object = std::make_unique<DistObject<int>>(pe, 0);
    if (pe.id() == 1)
      object.reset();
    else
      rpc_ff(
          pe, 1, [](int& mine) { ++mine; }, *object);
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("DistObject number 0, which was destroyed"), std::string::npos) << outcome.text;
}

TEST(DistObject, many_come_and_go) {
  expect_run({5, 1}, [](Pe& pe) {
    for (std::uint32_t i = 0; i < 300; ++i) {
      DistObject<std::uint32_t> object(pe, i);
      rpc_ff(
          pe, (pe.id() + i) % pe.size(), [](std::uint32_t& mine, std::uint32_t expected) { mine += mine == expected; },
          object, i);
      EXPECT_EQ(pe.quiesce(), pe.size());
      EXPECT_EQ(*object, i + 1);
    }
  });
}

TEST(RpcFf, a_call_that_throws_ends_the_run_with_its_text) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    if (pe.id() == 0) rpc_ff(pe, 1, [] { throw std::runtime_error("not today"); });
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::failed);
  EXPECT_NE(outcome.text.find("not today"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("PE 1"), std::string::npos) << outcome.text;
}

TEST(RpcFf, a_destination_out_of_range_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    EXPECT_THROW(rpc_ff(pe, 2, [] {}), UsageError);
    EXPECT_THROW(rpc_ff(pe, -1, add_to, DistObject<std::uint64_t>(pe, 0u), std::uint64_t(1)), UsageError);
    EXPECT_EQ(pe.quiesce(), 0u);
  });
}

}  // namespace
}  // namespace headway
