// SPDX-License-Identifier: BSD-3-Clause
/// A program may make and destroy objects for as long as it runs: each number names one object, and destroyed ones cost
/// no memory. MANY_MADE says how many of each kind are made; without it, as many as a short test allows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/headway.hpp>
#include <memory>
#include <optional>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::Outcome;

std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const bool read = std::fscanf(file, "%zu %zu", &pages, &resident) == 2;
  std::fclose(file);
  return read ? resident * std::size_t(sysconf(_SC_PAGESIZE)) : 0;
}

std::size_t wanted(std::size_t by_default) {
  const char* const given = std::getenv("MANY_MADE");
  return given == nullptr ? by_default : std::stoul(given);
}

struct Dense : Element<Dense, Index<1>> {
  void take(std::uint64_t value) { sum += value; }
  template <class A>
  void serialize(A& archive) {
    archive(sum);
  }
  std::uint64_t sum = 0;
};
struct Keyed : Element<Keyed, Sparse<std::uint64_t>> {
  template <class A>
  void serialize(A&) {}
};

/// Frame memory and heap that a run touches for the first time, whatever it makes.
constexpr std::size_t first_touched_bytes = std::size_t(1) << 20;

/// make(pe, i) makes and destroys one, on two PEs, while another aggregator's messages go both ways. After the first
/// tenth the memory of both PEs together grows by less than 8 bytes for each object of a PE, beside frame memory and
/// heap that is touched for the first time.
template <class Make>
void expect_no_memory_stays(std::size_t count, Make make) {
  if (count == 0) return;
  expect_run({2, 2}, [&](Pe& pe) {
    Aggregator<std::uint64_t> traffic(pe);
    std::uint64_t taken = 0, sum = 0;
    traffic.on([&](std::uint64_t value) {
      ++taken;
      sum += value;
    });
    const auto make_many = [&](std::size_t objects) {
      for (std::size_t i = 0; i < objects; ++i) {
        traffic.send((pe.id() + i) % pe.size(), i);
        make(pe, i);
      }
      pe.quiesce();
      barrier(pe);
    };
    make_many(count / 10 + 1'000);
    const std::size_t before = resident_bytes();
    barrier(pe);
    taken = sum = 0;
    make_many(count);
    const std::size_t after = resident_bytes();
    EXPECT_LT(after, before + 8 * 2 * count + first_touched_bytes)
        << "more stays of " << count << " objects of each PE";
    const std::uint64_t of_all = allreduce(pe, taken, std::plus<>());
    EXPECT_EQ(of_all, 2 * count);
    EXPECT_EQ(allreduce(pe, sum, std::plus<>()), count * (count - 1));
  });
}

TEST(ManyMade, aggregators) {
  expect_no_memory_stays(wanted(70'000), [](Pe& pe, std::size_t i) {
    std::uint64_t taken = 0;
    Aggregator<std::uint64_t> words(pe);
    words.on([&](std::uint64_t) { ++taken; });
    if (i % 1'000 == 0) {
      words.send(pe.size() - 1 - pe.id(), i);
      EXPECT_GE(pe.quiesce(), 2u);
      EXPECT_EQ(taken, 1u);
    }
  });
}

TEST(ManyMade, teams) {
  expect_no_memory_stays(wanted(20'000), [](Pe& pe, std::size_t i) {
    const Team team = i % 2 == 0 ? Team(pe, {0, 1}) : Team(pe, {1, 0});
    EXPECT_EQ(allreduce_async(team, 1, std::plus<>()).get(), 2);
  });
}

TEST(ManyMade, distributed_objects) {
  expect_no_memory_stays(wanted(70'000), [](Pe& pe, std::size_t i) {
    DistObject<std::uint64_t> object(pe, i);
    if (i % 1'000 == 0) {
      rpc_ff(
          pe, pe.size() - 1 - pe.id(), [](std::uint64_t& there) { ++there; }, object);
      pe.quiesce();
      EXPECT_EQ(*object, i + 1);
    }
  });
}

TEST(ManyMade, global_memories) {
  expect_no_memory_stays(wanted(2'000), [](Pe& pe, std::size_t) { GlobalMemory memory(pe); });
}

TEST(ManyMade, arrays) {
  expect_no_memory_stays(wanted(3'000), [](Pe& pe, std::size_t i) {
    Array<Dense> array(pe, {4});
    if (i % 1'000 == 0) array[int(i % 4)].send<&Dense::take>(i);
    pe.quiesce();
  });
}

TEST(ManyMade, sparse_arrays) {
  expect_no_memory_stays(wanted(3'000), [](Pe& pe, std::size_t i) {
    SparseArray<Keyed> array(pe);
    if (i % 2 == pe.id()) array[i].insert();
    pe.quiesce();
  });
}

TEST(ManyMade, a_late_message_is_refused_though_a_multiple_of_65536_aggregators_were_made_since) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    auto early = std::make_unique<Aggregator<std::uint64_t>>(pe, AggregatorOptions{.name = "early"});
    early->on([](std::uint64_t) {});
    pe.quiesce();
    if (pe.id() == 1) early.reset();
    std::optional<Aggregator<std::uint64_t>> last;
    for (int i = 0; i < 65'536; ++i) {
      last.emplace(pe, AggregatorOptions{.name = "early"});
      last->on([](std::uint64_t) {});
    }
    if (pe.id() == 0) early->send(1, 1);
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  EXPECT_NE(outcome.text.find("which was destroyed there"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace headway
