// SPDX-License-Identifier: BSD-3-Clause
// Small programs with known outcomes under the C++ memory model. The explorer must find all of them and no others, also
// when it leaves out equivalent orders.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <explorer/explore.hpp>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/base/random.hpp>
#include <set>
#include <string>
#include <vector>

namespace headway::explore {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto seq_cst = std::memory_order_seq_cst;

struct Litmus {
  Atomic<int> x, y, z;
  Plain<int> data;
  std::array<int, threads_max> r{-1, -1, -1, -1}, s{-1, -1, -1, -1};  // what each thread saw
};
using Body = std::function<void(Litmus&)>;
using Outcomes = std::set<std::string>;

class LitmusProgram : public Program {
 public:
  LitmusProgram(const std::vector<Body>& bodies, Outcomes& outcomes) : bodies_(bodies), outcomes_(outcomes) {}
  unsigned threads() const override { return unsigned(bodies_.size()); }
  void thread(unsigned id) override { bodies_[id](memory_); }
  void check() override {
    std::string outcome;
    for (unsigned t = 0; t < bodies_.size(); ++t) {
      if (memory_.r[t] >= 0) outcome += std::to_string(memory_.r[t]);
      if (memory_.s[t] >= 0) outcome += std::to_string(memory_.s[t]);
    }
    outcomes_.insert(outcome);
  }

 private:
  Litmus memory_;
  const std::vector<Body>& bodies_;
  Outcomes& outcomes_;
};

struct Explored {
  Outcomes outcomes;
  Result result;
};

Explored explored(const std::vector<Body>& bodies, Options options = {}) {
  Explored explored;
  explored.result = explore(options, [&] { return std::make_unique<LitmusProgram>(bodies, explored.outcomes); });
  return explored;
}

/// The outcomes with equivalent orders left out, which must be those of all orders.
Outcomes outcomes_of(const std::vector<Body>& bodies, Options options = {}) {
  const Explored pruned = explored(bodies, options);
  options.preemptions_max = 1000;
  const Explored all = explored(bodies, options);
  EXPECT_TRUE(pruned.result.complete) << pruned.result.failure << "\n" << pruned.result.trace;
  EXPECT_TRUE(all.result.complete) << all.result.failure;
  EXPECT_EQ(pruned.outcomes, all.outcomes);
  EXPECT_LE(pruned.result.executions, all.result.executions);
  return pruned.outcomes;
}

Body store_then_load(bool x_first, bool fenced, std::memory_order order = relaxed) {
  return [=](Litmus& m) {
    (x_first ? m.x : m.y).store(1, order);
    if (fenced) System::fence();
    m.r[x_first ? 0 : 1] = (x_first ? m.y : m.x).load(order);
  };
}

TEST(Explorer, finds_both_loads_old_in_store_buffering_unless_both_sides_fence) {
  EXPECT_EQ(outcomes_of({store_then_load(true, false), store_then_load(false, false)}),
            (Outcomes{"00", "01", "10", "11"}));
  EXPECT_EQ(outcomes_of({store_then_load(true, true), store_then_load(false, false)}),
            (Outcomes{"00", "01", "10", "11"}));
  EXPECT_EQ(outcomes_of({store_then_load(true, true), store_then_load(false, true)}), (Outcomes{"01", "10", "11"}));
  EXPECT_EQ(outcomes_of({store_then_load(true, false, seq_cst), store_then_load(false, false, seq_cst)}),
            (Outcomes{"01", "10", "11"}));
}

Outcomes message_passing(std::memory_order publish, std::memory_order look) {
  return outcomes_of({[=](Litmus& m) {
                        m.x.store(1, relaxed);
                        m.y.store(1, publish);
                      },
                      [=](Litmus& m) {
                        m.r[1] = m.y.load(look);
                        m.s[1] = m.x.load(relaxed);
                      }});
}

TEST(Explorer, lets_a_message_be_published_only_by_release_and_acquire) {
  EXPECT_EQ(message_passing(release, acquire), (Outcomes{"00", "01", "11"}));
  EXPECT_EQ(message_passing(relaxed, acquire), (Outcomes{"00", "01", "10", "11"}));
  EXPECT_EQ(message_passing(release, relaxed), (Outcomes{"00", "01", "10", "11"}));
}

TEST(Explorer, lets_fences_stand_for_release_and_acquire) {
  EXPECT_EQ(outcomes_of({[](Litmus& m) {
                           m.x.store(1, relaxed);
                           Execution::current().fence(release);
                           m.y.store(1, relaxed);
                         },
                         [](Litmus& m) {
                           m.r[1] = m.y.load(relaxed);
                           Execution::current().fence(acquire);
                           m.s[1] = m.x.load(relaxed);
                         }}),
            (Outcomes{"00", "01", "11"}));
}

TEST(Explorer, never_sees_a_location_go_back) {
  EXPECT_EQ(outcomes_of({[](Litmus& m) {
                           m.x.store(1, relaxed);
                           m.x.store(2, relaxed);
                         },
                         [](Litmus& m) {
                           m.r[1] = m.x.load(relaxed);
                           m.s[1] = m.x.load(relaxed);
                         }}),
            (Outcomes{"00", "01", "02", "11", "12", "22"}));
}

TEST(Explorer, lets_readers_disagree_on_the_order_of_independent_stores) {
  const Body first = [](Litmus& m) { m.x.store(1, release); };
  const Body second = [](Litmus& m) { m.y.store(1, release); };
  auto reader = [](unsigned id, bool x_first, bool fenced) -> Body {
    return [=](Litmus& m) {
      m.r[id] = (x_first ? m.x : m.y).load(acquire);
      if (fenced) System::fence();
      m.s[id] = (x_first ? m.y : m.x).load(acquire);
    };
  };
  EXPECT_EQ(outcomes_of({first, second, reader(2, true, false), reader(3, false, false)}).count("1010"), 1u);
  EXPECT_EQ(outcomes_of({first, second, reader(2, true, true), reader(3, false, true)}).count("1010"), 0u);
}

TEST(Explorer, continues_a_release_sequence_through_exchanges_of_others_but_not_through_stores) {
  auto publisher = [](Litmus& m) {
    m.x.store(1, relaxed);
    m.y.store(1, release);
  };
  auto reader = [](Litmus& m) {
    m.r[2] = m.y.load(acquire);
    m.s[2] = m.x.load(relaxed);
  };
  // The thread in between adds to 1 or to 0. The reader gets the message only if it was added to 1.
  const Outcomes added = outcomes_of({publisher, [](Litmus& m) { m.y.fetch_add(4, relaxed); }, reader});
  EXPECT_EQ(added.count("50"), 0u);
  EXPECT_EQ(added.count("51"), 1u);
  EXPECT_EQ(added.count("40"), 1u);
  const Outcomes stored = outcomes_of({publisher, [](Litmus& m) { m.y.store(4, relaxed); }, reader});
  EXPECT_EQ(stored.count("40"), 1u);
}

TEST(Explorer, loses_no_increment_of_an_exchange_and_finds_the_one_lost_between_load_and_store) {
  const Body add = [](Litmus& m) { m.x.fetch_add(1, relaxed); };
  const Body look = [](Litmus& m) { m.r[2] = m.x.load(relaxed); };
  EXPECT_EQ(outcomes_of({add, add, look}), (Outcomes{"0", "1", "2"}));
  auto racy = [](unsigned id) -> Body {
    return [=](Litmus& m) {
      m.x.store(m.x.load(relaxed) + 1, relaxed);
      m.r[id] = m.x.load(relaxed);
    };
  };
  EXPECT_EQ(outcomes_of({racy(0), racy(1)}), (Outcomes{"11", "12", "21", "22"}));
}

TEST(Explorer, lets_a_weak_exchange_fail_for_no_reason_no_more_than_allowed) {
  const Body exchange = [](Litmus& m) {
    int expected = 0;
    m.r[0] = m.x.compare_exchange_weak(expected, 1, relaxed) ? 1 : 0;
    m.s[0] = m.x.compare_exchange_weak(expected, 2, relaxed) ? 1 : 0;
  };
  EXPECT_EQ(outcomes_of({exchange}), (Outcomes{"10"}));  // the second finds 1
  Options once;
  once.spurious_failures_max = 1;
  EXPECT_EQ(outcomes_of({exchange}, once), (Outcomes{"01", "10"}));
}

TEST(Explorer, finds_a_data_race_whatever_the_order_it_happens_to_try) {
  auto result_of = [](std::memory_order publish) {
    return explored({[=](Litmus& m) {
                       m.data = 7;
                       m.y.store(1, publish);
                     },
                     [](Litmus& m) {
                       if (m.y.load(acquire) == 1) m.r[1] = m.data;
                     }})
        .result;
  };
  EXPECT_TRUE(result_of(release).complete) << result_of(release).trace;
  EXPECT_NE(result_of(relaxed).failure.find("data race"), std::string::npos);
}

TEST(Explorer, finds_a_lost_wake_up_and_prints_choices_that_repeat_it) {
  class Sleepers : public Program {
   public:
    unsigned threads() const override { return 2; }
    void thread(unsigned id) override {
      if (id == 0) {
        flag_.store(1, relaxed);
        System::wake_one(flag_);
      } else if (flag_.load(relaxed) == 0) {
        System::wait(unrelated_, 0, 0);
      }
    }

   private:
    Atomic<std::uint32_t> flag_, unrelated_;
  };
  const Result result = explore({}, [] { return std::make_unique<Sleepers>(); });
  EXPECT_NE(result.failure.find("nobody will wake them"), std::string::npos);
  Options once;
  once.repeat = result.choices;
  const Result again = explore(once, [] { return std::make_unique<Sleepers>(); });
  EXPECT_EQ(again.failure, result.failure);
  EXPECT_EQ(again.trace, result.trace);
  EXPECT_NE(result.trace.find("futex waits"), std::string::npos) << result.trace;
}

TEST(Explorer, lets_a_futex_that_is_woken_first_see_what_the_waker_stored) {
  EXPECT_TRUE(explored({[](Litmus& m) {
                          m.x.store(1, relaxed);
                          Execution::current().futex_wake_one(m.x.location());
                        },
                        [](Litmus& m) { Execution::current().futex_wait(m.x.location(), 0); }})
                  .result.complete);
}

TEST(Explorer, kills_a_thread_before_each_of_its_steps) {
  Options options;
  options.mortal = 0b01;
  const std::vector<Body> bodies{[](Litmus& m) {
                                   m.x.store(1, release);
                                   m.y.store(1, release);
                                 },
                                 [](Litmus& m) {
                                   m.r[1] = m.y.load(acquire);
                                   m.s[1] = m.x.load(acquire);
                                 }};
  EXPECT_EQ(outcomes_of(bodies, options), (Outcomes{"00", "01", "11"}));
  EXPECT_GT(explored(bodies, options).result.deaths, 0u);
}

TEST(Explorer, explores_one_order_of_steps_that_commute_and_all_of_those_that_do_not) {
  auto stores = [](bool same) {
    std::vector<Body> bodies;
    for (int t = 0; t < 3; ++t) {
      bodies.push_back([=](Litmus& m) { (same || t == 0 ? m.x : t == 1 ? m.y : m.z).store(t, relaxed); });
    }
    return explored(bodies).result.executions;
  };
  EXPECT_EQ(stores(false), 1u);
  EXPECT_EQ(stores(true), 6u);
}

TEST(Explorer, calls_it_a_failure_when_somebody_does_not_terminate) {
  Options options;
  options.steps_max = 50;
  const Result result = explored({[](Litmus& m) {
                                   while (m.x.load(relaxed) == 0) {
                                   }
                                 }},
                                 options)
                            .result;
  EXPECT_NE(result.failure.find("terminate"), std::string::npos);
}

TEST(Explorer, waits_for_news_until_there_are_some) {
  EXPECT_EQ(outcomes_of({[](Litmus& m) {
                           m.x.store(1, release);
                           m.x.store(2, release);
                         },
                         [](Litmus& m) {
                           while ((m.r[1] = m.x.load(acquire)) != 2) {
                             if (!wait_for_news()) break;
                           }
                         }}),
            (Outcomes{"2"}));
}

// --- random programs: leaving out equivalent orders must lose nothing

struct Operation {
  enum Kind { load, store, add, exchange, fence, wait, wake, news } kind;
  unsigned location;
  int value;
  std::memory_order order;
};
using Operations = std::vector<Operation>;

class RandomProgram : public Program {
 public:
  RandomProgram(const std::vector<Operations>& threads, Outcomes& outcomes)
      : operations_(threads), outcomes_(outcomes) {}
  unsigned threads() const override { return unsigned(operations_.size()); }
  void thread(unsigned id) override {
    for (const Operation& operation : operations_[id]) saw_[id][count_[id]++] = perform(operation);
  }
  void check() override {
    std::string outcome;
    for (unsigned t = 0; t < operations_.size(); ++t) {
      for (std::size_t i = 0; i < count_[t]; ++i) outcome += std::to_string(saw_[t][i]) + " ";
      outcome += died(t) ? "died " : "| ";
    }
    for (Word& word : words_) outcome += std::to_string(word.load(relaxed)) + " ";
    outcomes_.insert(outcome);
  }

 private:
  using Word = Atomic<std::uint32_t>;

  int perform(const Operation& operation) {
    Word& word = words_[operation.location];
    const auto value = std::uint32_t(operation.value);
    switch (operation.kind) {
      case Operation::load: return int(word.load(operation.order));
      case Operation::store: word.store(value, operation.order); return 0;
      case Operation::add: return int(word.fetch_add(value, operation.order));
      case Operation::exchange: {
        std::uint32_t expected = 0;
        return word.compare_exchange_weak(expected, value, operation.order) ? -1 : int(expected);
      }
      case Operation::fence: Execution::current().fence(operation.order); return 0;
      case Operation::wait: System::wait(word, 0, 0); return 0;
      case Operation::wake: System::wake_one(word); return 0;
      case Operation::news: return wait_for_news() ? 1 : 0;
    }
    return 0;
  }

  std::array<Word, 3> words_;
  const std::vector<Operations>& operations_;
  Outcomes& outcomes_;
  std::array<std::array<int, 8>, threads_max> saw_{};
  std::array<std::size_t, threads_max> count_{};
};

Operation random_operation(Random& random, bool waits) {
  static constexpr std::array kinds{Operation::load, Operation::load,     Operation::store, Operation::store,
                                    Operation::add,  Operation::exchange, Operation::fence, Operation::wake,
                                    Operation::wait, Operation::news};
  Operation operation{kinds[random.below(waits ? 10 : 7)], unsigned(random.below(3)), int(random.between(1, 3)),
                      relaxed};
  static constexpr std::array any{relaxed, std::memory_order_acq_rel, seq_cst};
  static constexpr std::array loads{relaxed, acquire, seq_cst};
  static constexpr std::array stores{relaxed, release, seq_cst};
  const auto& orders = operation.kind == Operation::load ? loads : operation.kind == Operation::store ? stores : any;
  operation.order = orders[operation.kind == Operation::fence ? random.between(1, 2) : random.below(3)];
  return operation;
}

TEST(Explorer, finds_the_same_outcomes_of_random_programs_as_without_leaving_anything_out) {
  std::uint64_t pruned_executions = 0, all_executions = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool waits = random.one_in(2);
    std::vector<Operations> threads(random.between(2, 3));
    for (Operations& operations : threads) {
      for (std::size_t left = random.between(1, threads.size() == 2 ? 4 : 3); left > 0; --left) {
        operations.push_back(random_operation(random, waits));
      }
    }
    Options options;
    options.spurious_failures_max = unsigned(random.below(2));
    options.standstill_fails = false;
    if (random.one_in(3)) options.mortal = ThreadSet(1u << random.below(threads.size()));
    options.executions_max = 20'000;
    auto explored_as = [&](int preemptions_max) {
      Explored explored;
      options.preemptions_max = preemptions_max;
      explored.result = explore(options, [&] { return std::make_unique<RandomProgram>(threads, explored.outcomes); });
      return explored;
    };
    const Explored pruned = explored_as(Search::unbounded), all = explored_as(1000);
    ASSERT_EQ(pruned.result.failure + all.result.failure, "");
    if (!all.result.complete) continue;  // too large to be compared
    ASSERT_TRUE(pruned.result.complete);
    if (pruned.outcomes != all.outcomes) {  // DBG
      for (auto& o : threads) {
        for (auto& x : o)
          std::printf("kind %d loc %u value %d order %d; ", int(x.kind), x.location, x.value, int(x.order));
        std::puts("");
      }
      std::printf("mortal %d spurious %u\n", options.mortal, options.spurious_failures_max);
    }  // DBGEND
    ASSERT_EQ(pruned.outcomes, all.outcomes);
    ++compared;
    pruned_executions += pruned.result.executions + pruned.result.cut_short;
    all_executions += all.result.executions;
  }
  EXPECT_GT(compared, 2000u);
  EXPECT_LT(2 * pruned_executions, all_executions);
  std::printf("%llu executions instead of %llu, of %llu programs\n", static_cast<unsigned long long>(pruned_executions),
              static_cast<unsigned long long>(all_executions), static_cast<unsigned long long>(compared));
}

}  // namespace
}  // namespace headway::explore
