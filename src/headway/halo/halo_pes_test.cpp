// SPDX-License-Identifier: BSD-3-Clause
// Exchanges between PEs that share memory: the path that each pair uses, and partners that fail.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/random_plans_test.hpp>
#include <headway/rma/pool.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using testing::run_pes;

/// Calls test(per_process): PEs as processes, as threads of one, and two in each process. ThreadSanitizer does not see
/// when a PE of another process orders two writes of this process to its pool, so it gets no mixture.
template <class Test>
void on_processes_and_threads(std::size_t pes, Test test) {
  test(1);
  test(pes);
#if !defined(__SANITIZE_THREAD__)
  if (pes > 2) test(2);
#endif
}

TEST(HaloPes, random_plans_move_what_a_serial_computation_says) {
  on_processes_and_threads(4, [](std::size_t per_process) {
    EXPECT_EQ(run_pes(4, per_process,
                      [](Pe& pe) {
                        for (std::uint64_t seed = 1; seed != 40; ++seed) random_plans::run(pe, seed, true);
                      }),
              0);
  });
}

/// A ring: each PE receives two elements of its left and one of its right neighbour behind its ten own ones.
halo::Plan ring(Pe& pe) {
  const std::size_t left = (pe.id() + pe.size() - 1) % pe.size(), right = (pe.id() + 1) % pe.size();
  return halo::Plan::receiving(pe, 10, std::vector<halo::Place>{{left, 8}, {left, 9}, {right, 0}});
}

/// Whether some, or all, lines of the description name that path.
bool some(const std::string& text, const char* path) { return text.find(path) != std::string::npos; }

TEST(HaloPes, partners_write_arrays_in_mapped_memory_in_place) {
  const int status = run_pes(3, 1, [](Pe& pe) {
    const halo::Plan plan = ring(pe);
    halo::Field<double> mapped(pe, 13);
    std::vector<double> heap(13);
    halo::Exchange in_place(pe, plan, {halo::field(mapped)});
    halo::Exchange staged(pe, plan, {halo::field(mapped), halo::field(heap)});
    halo::Exchange in_order(pe, plan, {halo::field(mapped)}, halo::CombineOrder::fixed);
    const std::uint64_t before = halo::Exchanges::of(pe).frames();
    for (std::size_t i = 0; i != 10; ++i) mapped[i] = double(pe.id() * 100 + i);
    in_place();
    EXPECT_EQ(mapped[10], double((pe.id() + 2) % 3 * 100 + 8));
    EXPECT_EQ(mapped[12], double((pe.id() + 1) % 3 * 100));
    staged();
    in_order();
    EXPECT_EQ(halo::Exchanges::of(pe).frames(), before);
    EXPECT_TRUE(some(in_place.description(), "written in place")) << in_place.description();
    EXPECT_FALSE(some(in_place.description(), "staged")) << in_place.description();
    for (const halo::Exchange* one : {&staged, &in_order}) {
      EXPECT_TRUE(some(one->description(), "staged")) << one->description();
      EXPECT_FALSE(some(one->description(), "in place")) << one->description();
    }
    in_order.rebind({halo::field(heap)});
  });
  EXPECT_EQ(status, 0);
}

TEST(HaloPes, threads_write_arrays_of_the_heap_in_place) {
  const int status = run_pes(3, 3, [](Pe& pe) {
    std::vector<double> heap(13);
    halo::Exchange exchange(pe, ring(pe), {halo::field(heap)});
    for (std::size_t i = 0; i != 10; ++i) heap[i] = double(pe.id() * 100 + i);
    for (int round = 0; round != 20; ++round) exchange();
    EXPECT_EQ(heap[11], double((pe.id() + 2) % 3 * 100 + 9));
    EXPECT_FALSE(some(exchange.description(), "staged")) << exchange.description();
  });
  EXPECT_EQ(status, 0);
}

TEST(HaloPes, threads_send_what_they_complete) {
  const int status = run_pes(3, 1, [](Pe& pe) {
    halo::Field<double> mapped(pe, 13);
    halo::Exchange exchange(pe, ring(pe), {halo::field(mapped)});
    exchange.divide(2, [](std::uint64_t index) { return std::size_t(index / 5); });  // 0 goes left, 8 and 9 go right
    const std::size_t left = (pe.id() + 2) % 3, right = (pe.id() + 1) % 3;
    for (int round = 1; round != 50; ++round) {
      exchange.begin_parts();
      std::jthread first([&] {
        mapped[0] = round * 10 + double(pe.id());
        exchange.ready(0);
      });
      std::jthread second([&] {
        mapped[8] = mapped[9] = round * 1000 + double(pe.id());
        exchange.ready(1);
        while (!exchange.arrived(left)) std::this_thread::yield();
        EXPECT_EQ(mapped[10], round * 1000 + double(left));
      });
      while (!exchange.done()) pe.progress();
      exchange.end();
      first.join();
      second.join();
      EXPECT_EQ(mapped[12], round * 10 + double(right));
    }
  });
  EXPECT_EQ(status, 0);
}

TEST(HaloPes, parts_are_marked_once) {
  const int status = run_pes(2, 1, [](Pe& pe) {
    std::vector<double> heap(13);
    halo::Exchange exchange(pe, ring(pe), {halo::field(heap)});
    EXPECT_THROW(exchange.begin_parts(), UsageError);
    EXPECT_THROW(exchange.divide(2, [](std::uint64_t) { return 2; }), UsageError);
    exchange.divide(2, [](std::uint64_t index) { return std::size_t(index / 9); });
    EXPECT_THROW(exchange.ready(0), UsageError);
    exchange.begin_parts();
    exchange.ready(0);
    EXPECT_THROW(exchange.ready(0), UsageError);
    EXPECT_THROW(exchange.ready(2), UsageError);
    EXPECT_THROW(exchange.arrived(pe.id()), UsageError);
    exchange.ready(1);
    exchange.end();
  });
  EXPECT_EQ(status, 0);
}

TEST(HaloPes, destroyed_exchanges_return_their_memory) {
  const int status = run_pes(2, 1, [](Pe& pe) {
    const halo::Plan plan = ring(pe);
    std::vector<double> heap(13);
    rma::Pool& pool = rma::Pool::of(pe);
    std::uint64_t offset_max = 0;
    for (int round = 0; round != 300; ++round) {
      halo::Exchange exchange(pe, plan, {halo::field(heap)});
      exchange();
      const std::uint64_t offset = pool.allocate(1);
      offset_max = std::max(offset_max, offset);
      pool.free(offset);
      if (round % 50 == 49) pe.quiesce();
    }
    EXPECT_LT(offset_max - pool.memory().size() / 2, std::uint64_t(64 * 4096));
  });
  EXPECT_EQ(status, 0);
}

TEST(HaloPes, rebuilt_exchanges_keep_their_memory) {
  on_processes_and_threads(3, [](std::size_t per_process) {
    const int status = run_pes(3, per_process, [](Pe& pe) {
      const std::size_t left = (pe.id() + 2) % 3, right = (pe.id() + 1) % 3;
      halo::Plan plan = ring(pe);
      std::vector<double> heap(13);
      halo::Exchange exchange(pe, plan, {halo::field(heap)});
      rma::Pool& pool = rma::Pool::of(pe);
      const auto next_offset = [&] {
        const std::uint64_t offset = pool.allocate(1);
        pool.free(offset);
        return offset;
      };
      const std::uint64_t before = next_offset();
      for (int round = 1; round != 200; ++round) {
        for (std::size_t i = 0; i != 10; ++i) heap[i] = double(pe.id() * 100 + i + std::size_t(round));
        exchange();
        if (round > 1) {
          const std::size_t from = round % 2 == 1 ? left : right;  // the partner of two elements
          EXPECT_EQ(heap[10], double(from * 100 + std::size_t(round) % 7 + std::size_t(round)));
          EXPECT_EQ(heap[12], double((left + right - from) * 100 + 9 + std::size_t(round)));
        }
        const std::size_t two = round % 2 == 0 ? left : right, at = std::size_t(round + 1) % 7;
        plan.rebuild(pe, 10, std::vector<halo::Place>{{two, at}, {two, at + 1}, {left + right - two, 9}});
        exchange.rebuild(plan);
      }
      EXPECT_EQ(next_offset(), before);
      // More elements than the memory has room for.
      std::vector<halo::Place> many;
      for (std::size_t i = 0; i != 4000; ++i) many.push_back({i % 2 == 0 ? left : right, i % 10});
      plan.rebuild(pe, 10, many);
      halo::Field<double> mapped(pe, 4010);
      exchange.rebuild(plan, {halo::field(mapped)});
      for (std::size_t i = 0; i != 10; ++i) mapped[i] = double(pe.id() * 100 + i);
      exchange();
      for (std::size_t i = 0; i != 4000; ++i)
        EXPECT_EQ(mapped[10 + i], double((i % 2 == 0 ? left : right) * 100 + i % 10));
    });
    EXPECT_EQ(status, 0);
  });
}

TEST(HaloPes, a_refused_exchange_leaves_the_table) {
  on_processes_and_threads(2, [](std::size_t per_process) {
    const int status = run_pes(2, per_process, [](Pe& pe) {
      const halo::Plan plan = ring(pe);
      std::vector<double> doubles(13);
      std::vector<float> floats(13);
      // Number 0: the types differ.
      EXPECT_THROW(
          halo::Exchange(pe, plan, {pe.id() == 0 ? halo::field(std::span(doubles)) : halo::field(std::span(floats))}),
          UsageError);
      halo::Exchange exchange(pe, plan, {halo::field(doubles)});
      for (std::size_t i = 0; i != 10; ++i) doubles[i] = double(pe.id() * 100 + i);
      exchange();
      EXPECT_EQ(doubles[10], double((1 - pe.id()) * 100 + 8));
      // Late control messages for number 0 find no exchange.
      halo::Exchanges::of(pe).notify(1 - pe.id(), 0);
      halo::Exchanges::of(pe).acknowledge(1 - pe.id(), 0, 1);
      exchange();
      pe.quiesce();
      pe.progress();
      // A refused rebuild ends the exchange, and leaves others alone.
      halo::Exchange broken(pe, plan, {halo::field(doubles)});
      if (pe.id() == 0) broken();
      if (pe.id() == 1) {
        broken();
        exchange();
      } else {
        exchange();
      }
      const std::size_t partner = 1 - pe.id();
      using Lists = std::vector<halo::PartnerIndices>;
      const halo::Plan other =
          pe.id() == 0 ? plan : halo::Plan::both(pe, Lists{{partner, {0}}}, Lists{{partner, {10}}});
      EXPECT_THROW(broken.rebuild(other), UsageError);
      EXPECT_THROW(broken.begin(), UsageError);
      exchange();
    });
    EXPECT_EQ(status, 0);
  });
}

TEST(HaloPes, an_exchange_destroyed_in_a_handler_after_begin_ends_the_run) {
  on_processes_and_threads(3, [](std::size_t per_process) {
    ::testing::internal::CaptureStderr();
    const int status = run_pes(3, per_process, [](Pe& pe) {
      halo::Field<double> mapped(pe, 13);
      std::optional<halo::Exchange> exchange(std::in_place, pe, ring(pe), std::vector{halo::field(mapped)});
      Aggregator<int> destroy(pe);
      destroy.on([&](int) { exchange.reset(); });
      (*exchange)();
      if (pe.id() == 0) {
        exchange->begin();
        destroy.send(pe.id(), 1);
        pe.quiesce();
      }
      for (;;) {
        if (exchange) (*exchange)();
        pe.progress();
      }
    });
    const std::string page = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, 121);
    EXPECT_TRUE(some(page, "a halo exchange that has begun is destroyed in a handler")) << page;
  });
}

TEST(HaloPes, a_killed_partner_ends_the_run) {
  on_processes_and_threads(2, [](std::size_t per_process) {
    if (per_process == 2) return;  // the signal would end the other PE, too
    EXPECT_EQ(run_pes(2, per_process,
                      [](Pe& pe) {
                        halo::Field<double> mapped(pe, 13);
                        halo::Exchange exchange(pe, ring(pe), {halo::field(mapped)});
                        for (int round = 0;; ++round) {
                          exchange.begin();
                          if (round == 100 && pe.id() == 1) ::kill(getpid(), SIGKILL);
                          exchange.end();
                        }
                      }),
              121);
  });
}

TEST(HaloPes, a_partner_that_never_begins_stalls_the_run) {
  ::testing::internal::CaptureStderr();
  const int status = run_pes(3, 1,
                             [](Pe& pe) {
                               halo::Field<double> mapped(pe, 13);
                               halo::Exchange exchange(pe, ring(pe), {halo::field(mapped)});
                               if (pe.id() != 1) exchange();
                               pe.quiesce();
                             },
                             {{"HEADWAY_STALL", "1s"}});
  const std::string page = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, 122);
  EXPECT_TRUE(some(page, "waits in a blocking collective for PE 1")) << page;
}

}  // namespace
}  // namespace headway
