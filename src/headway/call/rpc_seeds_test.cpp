// SPDX-License-Identifier: BSD-3-Clause
/// Random trees of calls, by seed, on the simulated transport: a serial program computes the expected values. Also very
/// many coroutines. All PEs live in this process, so that the sanitizer reports leaks at its end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <headway/am/epoch.hpp>
#include <headway/base/random.hpp>
#include <headway/call/rpc.hpp>
#include <headway/launch/simulation.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headway {
namespace {

/// The kind of work of a node. It follows from the node's number alone: every PE and the serial program know it.
enum class Kind { leaf, fails, one_after_the_other, all_at_once, as_tasks, drops, destroys };

struct Node {
  std::uint64_t number;
  std::uint32_t depth;

  Kind kind() const { return depth == 0 ? Kind(draw(0) % 5 == 0) : Kind(draw(0) % 7); }
  std::uint32_t children() const { return std::uint32_t(draw(1) % 4); }
  Node child(std::uint32_t i) const { return {draw(2 + i), depth - 1}; }
  std::size_t pe(std::size_t pes) const { return draw(100) % pes; }
  std::size_t padding() const { return draw(101) % 50 == 0 ? draw(102) % 100'000 : draw(102) % 100; }
  std::uint64_t value() const { return draw(103) >> 20; }

 private:
  std::uint64_t draw(std::uint64_t what) const { return Random(number * 1000 + what).next(); }
};

/// The value of a node's function; nothing where it throws. `runs` counts every function that ran.
std::optional<std::uint64_t> serial(Node node, std::uint64_t& runs) {
  ++runs;
  const Kind kind = node.kind();
  if (kind == Kind::leaf) return node.value();
  if (kind == Kind::fails) return std::nullopt;
  const bool whole = kind == Kind::all_at_once || kind == Kind::as_tasks;
  std::uint64_t sum = node.value();
  bool failed = false;
  for (std::uint32_t i = 0; i < node.children(); ++i) {
    const std::optional<std::uint64_t> child = serial(node.child(i), runs);
    if (kind == Kind::drops || kind == Kind::destroys) continue;
    failed |= !child;
    sum += child.value_or(1);
  }
  return whole && failed ? std::nullopt : std::optional(sum);
}

std::uint64_t runs = 0;  // on all PEs: these are fibers of one thread

Task<std::uint64_t> run(Pe& pe, Node node, std::string padding);

Future<std::uint64_t> call(Pe& pe, Node node) {
  const std::string padding(node.padding(), 'x');
  return rpc(pe, node.pe(pe.size()), run, node, padding);
}
Task<std::uint64_t> call_as_task(Pe& pe, Node node) { co_return co_await call(pe, node); }

Task<std::uint64_t> run(Pe& pe, Node node, std::string padding) {
  ++runs;
  if (padding != std::string(node.padding(), 'x')) throw std::logic_error("an argument has changed");
  if (node.kind() == Kind::fails) throw std::runtime_error("as is foreseen");
  std::uint64_t sum = node.value();
  const std::uint32_t children = node.kind() == Kind::leaf ? 0 : node.children();
  switch (node.kind()) {
    case Kind::one_after_the_other:
      for (std::uint32_t i = 0; i < children; ++i) {
        try {
          sum += co_await call(pe, node.child(i));
        } catch (const RemoteError&) {
          sum += 1;
        }
      }
      break;
    case Kind::all_at_once: {
      std::vector<Future<std::uint64_t>> futures;
      for (std::uint32_t i = 0; i < children; ++i) futures.push_back(call(pe, node.child(i)));
      const std::vector<std::uint64_t> values = co_await when_all(pe, std::move(futures));
      for (const std::uint64_t value : values) sum += value;
      break;
    }
    case Kind::as_tasks: {
      std::vector<Task<std::uint64_t>> tasks;
      for (std::uint32_t i = 0; i < children; ++i) tasks.push_back(call_as_task(pe, node.child(i)));
      const std::vector<std::uint64_t> values = co_await when_all(std::move(tasks));
      for (const std::uint64_t value : values) sum += value;
      break;
    }
    case Kind::drops:
      for (std::uint32_t i = 0; i < children; ++i) static_cast<void>(call(pe, node.child(i)));
      break;
    case Kind::destroys:
      for (std::uint32_t i = 0; i < children; ++i) {
        Task<std::uint64_t> task = call_as_task(pe, node.child(i));
        task.start();
      }
      break;
    default: break;
  }
  co_return sum;
}

/// Calls a root; counts it if the answer is right.
Task<> check(Pe& pe, Node root, std::optional<std::uint64_t> expected, std::uint64_t& right) {
  std::optional<std::uint64_t> value;
  try {
    value = co_await call(pe, root);
  } catch (const RemoteError& error) {
    if (std::string(error.what()).find("as is foreseen") == std::string::npos) throw;
  }
  if (value != expected) {
    throw std::logic_error(
        fmt::format("node {} gave {}, not {}", root.number, value.value_or(0), expected.value_or(0)));
  }
  ++right;
}

launch::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 5, 8};
  Random random(seed);
  launch::SimulateOptions options{.pes = sizes[seed % std::size(sizes)], .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, options.pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  const std::uint64_t roots = random.between(1, 40);
  const auto depth = std::uint32_t(random.between(0, 5));
  runs = 0;
  std::uint64_t expected_runs = 0;
  std::vector<std::vector<std::optional<std::uint64_t>>> expected(options.pes);
  const auto root = [&](std::size_t pe, std::uint64_t i) { return Node{seed << 32 | pe << 16 | i, depth}; };
  for (std::size_t pe = 0; pe < options.pes; ++pe) {
    for (std::uint64_t i = 0; i < roots; ++i) expected[pe].push_back(serial(root(pe, i), expected_runs));
  }
  return simulate(options, [&](Pe& pe) {
    std::uint64_t right = 0;
    std::optional<Epoch> epoch;
    if (seed % 3 == 0) epoch.emplace(pe);
    for (std::uint64_t i = 0; i < roots; ++i) {
      spawn(pe, check(pe, root(pe.id(), i), expected[pe.id()][i], right));
      if (i % 4 == 3) pe.progress();
    }
    const std::uint64_t handled = epoch ? epoch->wait() : pe.quiesce();
    if (right != roots) throw std::logic_error(fmt::format("{} of {} tasks are done", right, roots));
    if (runs != expected_runs) throw std::logic_error(fmt::format("{} functions ran, not {}", runs, expected_runs));
    if (handled != 2 * runs) throw std::logic_error(fmt::format("{} messages for {} calls", handled, runs));
    if (call::PendingCalls::of(pe).size() != 0) throw std::logic_error("calls wait for answers");
    return 0;
  });
}

TEST(RpcSeeds, random_trees_of_calls_give_what_a_serial_program_does) {
  const char* first = std::getenv("RPC_SEED");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("RPC_SEEDS");
  const std::uint64_t end = begin + (count == nullptr ? 60 : std::strtoull(count, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const launch::SimulateResult result = run_seed(seed);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
}

// --- none leaked, none lost

/// Counts those that live, and holds memory.
struct Alive {
  explicit Alive(std::int64_t& c) : count(c) { ++count; }
  Alive(const Alive&) = delete;
  ~Alive() { --count; }
  std::int64_t& count;
  std::vector<int> memory = std::vector<int>(16);
};

Task<int> slow(Pe& pe, int n) {
  const std::size_t next = (pe.id() + 1) % pe.size();
  co_return co_await rpc(
      pe, next, [](int k) { return k + 1; }, n);
}

Task<> wait_for_call(Pe& pe, int n, std::int64_t& alive, std::int64_t& alive_max, std::uint64_t& done) {
  const Alive one(alive);
  alive_max = std::max(alive_max, alive);
  if (co_await rpc(pe, std::size_t(n) % pe.size(), slow, n) != n + 1) throw std::logic_error("a wrong answer");
  ++done;
}

TEST(TenThousandCoroutines, wait_on_calls_on_each_pe_and_none_is_lost_and_none_leaks) {
  constexpr int each = 10'000;
  for (const std::size_t pes : {1, 3, 4}) {
    std::int64_t alive = 0, alive_max = 0;
    std::uint64_t done = 0;
    const launch::SimulateResult result = launch::simulate({.pes = pes, .budget_bytes = 4_MiB}, [&](Pe& pe) {
      {
        const DeferHandlers all_at_once(pe);  // no answer before the last one waits
        for (int n = 0; n < each; ++n) spawn(pe, wait_for_call(pe, n, alive, alive_max, done));
      }
      pe.quiesce();
      return 0;
    });
    ASSERT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(done, each * pes);
    EXPECT_EQ(alive, 0);
    EXPECT_GE(alive_max, each);
  }
}

TEST(TenThousandCoroutines, that_are_destroyed_while_they_wait_leave_nothing) {
  constexpr int each = 10'000;
  std::int64_t alive = 0, alive_max = 0;
  std::uint64_t done = 0;
  const launch::SimulateResult result = launch::simulate({.pes = 3, .budget_bytes = 4_MiB}, [&](Pe& pe) {
    std::vector<Task<>> tasks;
    for (int n = 0; n < each; ++n) tasks.push_back(wait_for_call(pe, n, alive, alive_max, done));
    {
      const DeferHandlers all_at_once(pe);
      for (Task<>& task : tasks) task.start();
    }
    for (int n = 0; n < 3; ++n) pe.progress();
    tasks.clear();  // some answers have come, others are on their way
    return pe.quiesce() == 4 * 3 * each ? 0 : 1;
  });
  ASSERT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(alive, 0);
  EXPECT_GE(alive_max, each);
  EXPECT_LT(done, 3u * each);
}

TEST(TenThousandCoroutines, that_wait_in_vain_are_destroyed_when_the_run_ends) {
  constexpr int each = 10'000;
  std::int64_t alive = 0;
  // One PE: the stacks of others would be abandoned by a run that fails.
  const launch::SimulateResult result = launch::simulate({.pes = 1}, [&](Pe& pe) {
    const auto wait = [](Pe& here, std::int64_t& count) -> Task<> {
      const Alive one(count);
      const auto never = [](Pe& there) -> Task<std::string> {
        Promise<std::string> own(there);
        Future<std::string> future = own.future();
        co_return co_await future;
      };
      co_await rpc(here, 0, never);
      throw std::logic_error("resumed");
    };
    for (int n = 0; n < each; ++n) spawn(pe, wait(pe, alive));
    pe.quiesce();
    EXPECT_EQ(alive, each);
    return 0;
  });
  EXPECT_EQ(result.status, exit_status::undelivered);
  for (const char* part : {"20000 coroutines on PE 0 still wait at the end of the run: a call that is",
                           "(10000), a task that was spawned at rpc_seeds_test.cpp:"}) {
    EXPECT_NE(result.text.find(part), std::string::npos) << result.text;
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace headway
