// SPDX-License-Identifier: BSD-3-Clause
// Messages about as large as one frame may be, and larger ones.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/part_memory.hpp>
#include <headway/base/bytes.hpp>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using namespace literals;
using testing::expect_run;
using testing::Settings;
using testing::Shape;

constexpr Topology topologies[] = {direct(), grid(1), grid(2)};
constexpr std::size_t budget = 1_MiB;
const Settings small_budget{{"HEADWAY_BUDGET", "1M"}};

// The largest frames: of a message by itself, of one to another host, and of a part.
constexpr std::size_t in_one_frame = budget / 4 - transport::frame_overhead,
                      in_one_to_other_hosts = budget / 16 - transport::frame_overhead;
constexpr std::size_t in_one_part = in_one_to_other_hosts - sizeof(aggregate::PartHeader);

using Bytes = std::span<const std::uint8_t>;

/// For each number another part of one pattern.
Bytes content(std::size_t bytes, std::uint64_t number) {
  static const std::vector<std::uint8_t> pattern = [] {
    std::vector<std::uint8_t> result(2_MiB);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::uint8_t(i * 167 + i / 251);
    return result;
  }();
  return Bytes(pattern).subspan(number % 1000, bytes);
}
bool is_content(Bytes bytes, std::uint64_t number) {
  return std::memcmp(bytes.data(), content(bytes.size(), number).data(), bytes.size()) == 0;
}

TEST(LargeMessage, is_copied_once_up_to_a_quarter_of_the_budget_and_else_reassembled) {
  for (const Topology topology : topologies) {
    expect_run(
        {1, 1},
        [&](Pe& pe) {
          Aggregator<Bytes> messages(pe, {.topology = topology});
          std::size_t handled = 0;
          messages.on([&](Bytes bytes) {
            EXPECT_TRUE(is_content(bytes, 7));
            handled += bytes.size();
          });
          std::uint64_t copies = 0;
          for (const std::size_t bytes : {in_one_part, in_one_part + 1, in_one_frame, in_one_frame + 1}) {
            const std::uint64_t frames = messages.statistics().frames;
            messages.send(0, content(bytes, 7));
            EXPECT_EQ(pe.quiesce(), 1u);
            EXPECT_EQ(handled, bytes);
            handled = 0;
            const bool whole = bytes <= in_one_frame;
            copies += whole ? 1 : 2;
            EXPECT_EQ(messages.statistics().copies, copies) << bytes;
            EXPECT_EQ(messages.statistics().frames - frames, whole ? 1 : (bytes + in_one_part - 1) / in_one_part);
          }
        },
        small_budget);
  }
}

constexpr std::size_t sizes[] = {
    in_one_part - 1,     in_one_part,      in_one_part + 1,  in_one_to_other_hosts, in_one_to_other_hosts + 1,
    2 * in_one_part,     in_one_frame - 8, in_one_frame - 1, in_one_frame,          in_one_frame + 1,
    4 * in_one_part + 1, 300'000,          1'100'000};

TEST(LargeMessage, from_all_pes_to_all_pes_at_once_arrives_unchanged) {
  for (const Shape shape : {Shape{2, 1}, Shape{5, 2}, Shape{6, 6, "delay=30us,refuse=0.1,inbox=16,per-process=2"},
                            Shape{6, 6, "delay=30us,per-host=2:4"}}) {
#if !defined(HEADWAY_SIM) || defined(__SANITIZE_THREAD__)
    if (shape.simulated != nullptr) continue;
#endif
    for (const Topology topology : topologies) {
      for (const bool ordered : {false, true}) {
        expect_run(
            shape,
            [&](Pe& pe) {
              Aggregator<std::uint64_t, Bytes> messages(pe, {.topology = topology, .ordered = ordered});
              std::vector<std::uint64_t> next(pe.size());
              std::uint64_t wrong = 0;
              messages.on([&](PeId source, std::uint64_t number, Bytes bytes) {
                wrong += !is_content(bytes, number);
                if (ordered) wrong += number != next[source]++;
              });
              std::uint64_t sent = 0;
              for (std::uint64_t round = 0; round < 2; ++round) {
                for (const std::size_t bytes : sizes) {
                  if (ordered && bytes > 300'000) continue;
                  // As many bytes with the number as there are without.
                  for (std::size_t to = 0; to < pe.size(); ++to) {
                    messages.send((to + pe.id()) % pe.size(), sent, content(bytes - 8 * (sent % 2), sent));
                  }
                  ++sent;
                }
              }
              EXPECT_EQ(pe.quiesce(), sent * pe.size() * pe.size());
              EXPECT_EQ(wrong, 0u);
            },
            small_budget);
      }
    }
  }
}

TEST(LargeMessage, is_taken_by_try_send_once_there_is_room_up_to_a_quarter_of_the_budget) {
  for (const Topology topology : topologies) {
    expect_run(
        {3, 1},
        [&](Pe& pe) {
          Aggregator<std::uint64_t, Bytes> messages(pe, {.topology = topology});
          std::uint64_t wrong = 0;
          messages.on([&](std::uint64_t number, Bytes bytes) { wrong += !is_content(bytes, number); });
          const std::size_t to = (pe.id() + 1) % pe.size();
          std::uint64_t sent = 0;
          for (const std::size_t bytes : {in_one_part - 8, in_one_frame - 8, in_one_frame - 9, 3 * in_one_part}) {
            for (int i = 0; i < 10; ++i, ++sent) {
              while (!messages.try_send(to, sent, content(bytes, sent))) pe.progress();
            }
          }
          for (int i = 0; i < 100; ++i, pe.progress()) {
            EXPECT_FALSE(messages.try_send(to, sent, content(1'000'000, sent)));
          }
          EXPECT_EQ(pe.quiesce(), sent * pe.size());
          EXPECT_EQ(wrong, 0u);
        },
        small_budget);
  }
}

TEST(LargeMessage, from_handlers_goes_beyond_the_budget_and_arrives) {
  for (const Topology topology : topologies) {
    for (const bool ordered : {false, true}) {
      expect_run(
          {3, 1},
          [&](Pe& pe) {
            Aggregator<std::uint64_t, Bytes> messages(pe, {.topology = topology, .ordered = ordered});
            std::uint64_t wrong = 0;
            messages.on([&](PeId source, std::uint64_t lives, Bytes bytes) {
              wrong += !is_content(bytes, lives);
              if (lives == 0) return;
              messages.send(source, lives - 1, content(bytes.size(), lives - 1));
              messages.send((source + 1) % pe.size(), lives - 1, content(bytes.size() - 1, lives - 1));
            });
            const std::size_t to = (pe.id() + 1) % pe.size();
            messages.send(to, 4, content(in_one_frame - 8, 4));
            messages.send(to, 4, content(in_one_frame - 7, 4));
            EXPECT_EQ(pe.quiesce(), 2 * 31 * pe.size());
            EXPECT_EQ(wrong, 0u);
          },
          small_budget);
    }
  }
}

TEST(LargeMessage, goes_in_parts_where_free_memory_lies_in_pieces) {
  expect_run(
      {6, 1},
      [](Pe& pe) {
        constexpr std::size_t quarters = 4, in_a_quarter = 4;
        const AggregatorOptions patient{
            .buffer_bytes = 64_KiB, .timeout = no_timeout, .topology = grid(1), .flush_when_idle = false};
        std::vector<std::unique_ptr<Aggregator<std::uint64_t>>> words;
        for (std::size_t i = 0; i < in_a_quarter; ++i) {
          words.push_back(std::make_unique<Aggregator<std::uint64_t>>(pe, patient));
          words.back()->on([](std::uint64_t) {});
        }
        Aggregator<Bytes> messages(pe, {.topology = direct()});
        std::uint64_t wrong = 0;
        messages.on([&](Bytes bytes) { wrong += !is_content(bytes, 0); });
        if (pe.id() == 0) {
          // A buffer of each of them to one PE fills a quarter; the first one stays open.
          for (std::size_t to = 1; to <= quarters; ++to) {
            for (auto& one : words) one->send(to, to);
          }
          for (std::size_t i = 1; i < in_a_quarter; ++i) words[i]->flush();
          am::FrameStore& store = pe.engine().store();
          while (store.outstanding_bytes_with_hops(0) > quarters * 64_KiB) {
            store.reclaim();
            pe.engine().poll_some();
          }
          messages.send(5, content(200'000, 0));
        }
        EXPECT_EQ(pe.quiesce(), quarters * in_a_quarter + 1);
        EXPECT_EQ(wrong, 0u);
        EXPECT_EQ(messages.statistics().copies, pe.id() == 0 || pe.id() == 5 ? 1u : 0u);
      },
      small_budget);
}

TEST(LargeMessage, in_parts_arrives_unchanged_on_each_write_path) {
  for (const Shape shape : {Shape{2, 1}, Shape{2, 2}}) {
    expect_run(
        shape,
        [](Pe& pe) {
          Aggregator<std::uint64_t, Bytes> messages(pe, {.topology = direct()});
          std::uint64_t handled = 0, wrong = 0;
          messages.on([&](std::uint64_t number, Bytes bytes) {
            wrong += !is_content(bytes, number) || number != handled;
            ++handled;
          });
          constexpr std::uint64_t count = 40;  // each way is tried three times, and one of them now and then
          for (std::uint64_t i = 0; i < count && pe.id() == 0; ++i) messages.send(1, i, content(600'001, i));
          pe.quiesce();
          EXPECT_EQ(handled, pe.id() == 1 ? count : 0u);
          EXPECT_EQ(wrong, 0u);
        },
        small_budget);
  }
}

std::uint64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::uint64_t(usage.ru_minflt);
}

TEST(LargeMessage, of_some_budgets_is_reassembled_in_mapped_pages) {
  expect_run(
      {2, 1},
      [](Pe& pe) {
        Aggregator<Bytes> messages(pe, {.topology = direct()});
        const std::vector<std::uint8_t> sent(6_MiB + 100, 5);
        std::uint64_t handled = 0, faults = ~std::uint64_t(0);
        messages.on([&](Bytes bytes) {
          EXPECT_EQ(bytes.size(), sent.size());
          ++handled;
        });
        for (int i = 0; i < 8; ++i) {
          const std::uint64_t before = page_faults();
          if (pe.id() == 0) messages.send(1, sent);
          pe.quiesce();
          faults = std::min(faults, page_faults() - before);  // a round after its memory was returned does not count
        }
        EXPECT_EQ(handled, pe.id() == 1 ? 8u : 0u);
        EXPECT_LT(faults, 256u);  // anew it were 512 and a huge page for each 2 MiB of the rest, or 1536
      },
      small_budget);
}

// --- with sizes for tests, so that few bytes go the ways of many

const Settings small_constants{{"HEADWAY_TEST_SIZES", "small"}};

TEST(LargeMessage, that_outgrows_its_reserved_addresses_arrives_unchanged) {
  for (const Shape shape : {Shape{2, 1}, Shape{3, 3}, Shape{4, 4, "delay=30us,refuse=0.1,inbox=16,per-host=2"}}) {
#if !defined(HEADWAY_SIM) || defined(__SANITIZE_THREAD__)
    if (shape.simulated != nullptr) continue;
#endif
    for (const bool ordered : {false, true}) {
      expect_run(
          shape,
          [&](Pe& pe) {
            const base::SizeConstants& small = pe.engine().sizes();
            Aggregator<std::uint64_t, Bytes> messages(pe, {.ordered = ordered});
            std::uint64_t wrong = 0, sent = 0;
            messages.on([&](std::uint64_t number, Bytes bytes) { wrong += !is_content(bytes, number); });
            for (const std::size_t bytes :
                 {small.part_frame_bytes_max, small.alone_frame_bytes_max, std::size_t(10'001),
                  small.promised_bytes_max, small.promised_bytes_max + 1, std::size_t(64_KiB), std::size_t(200'003)}) {
              for (std::size_t to = 0; to < pe.size(); ++to) messages.send(to, sent, content(bytes, sent));
              ++sent;
            }
            EXPECT_EQ(pe.quiesce(), sent * pe.size() * pe.size());
            EXPECT_EQ(wrong, 0u);
          },
          small_constants);
    }
  }
}

TEST(LargeMessage, sizes_for_tests_are_normal_or_small) {
  const auto outcome = testing::catch_run({1, 1}, [](Pe&) {}, {{"HEADWAY_TEST_SIZES", "tiny"}});
  EXPECT_EQ(outcome.status, 120);
  EXPECT_NE(outcome.text.find("HEADWAY_TEST_SIZES=tiny: allowed is normal or small"), std::string::npos)
      << outcome.text;
  expect_run({1, 1}, [](Pe& pe) { EXPECT_EQ(pe.engine().sizes().promised_bytes_max, 1_GiB); },
             {{"HEADWAY_TEST_SIZES", "normal"}});
}

// --- the memory that parts are put together in

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * std::size_t(sysconf(_SC_PAGESIZE));
}

TEST(PartMemory, takes_only_the_memory_that_is_written) {
  const std::size_t before = resident_bytes();
  const aggregate::Mapping memory(1_GiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.at()) % 64, 0u);
  std::memset(memory.at(), 1, 128_KiB);
  EXPECT_LT(resident_bytes(), before + 1_MiB);
  std::memset(memory.at(), 1, 3_MiB);
  EXPECT_LT(resident_bytes(), before + 6_MiB);
}

TEST(PartMemory, grows_with_its_content) {
  aggregate::Mapping memory(100);
  EXPECT_GE(memory.bytes(), 100u);
  std::memset(memory.at(), 7, memory.bytes());
  const std::size_t before = memory.bytes();
  memory.grow(10_MiB);
  EXPECT_GE(memory.bytes(), 10_MiB);
  for (std::size_t i = 0; i < before; ++i) ASSERT_EQ(memory.at()[i], std::byte(7));
  EXPECT_EQ(memory.at()[10_MiB - 1], std::byte(0));
}

/// Flags that the system keeps of the area which holds `at`, as /proc/self/smaps names them.
std::string area_flags(const std::byte* at) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  bool is_in_area = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) is_in_area = begin <= address && address < end;
    if (is_in_area && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}
bool may_be_huge(const std::byte* at) { return area_flags(at).find(" hg ") != std::string::npos; }

TEST(PartMemory, grows_across_the_begin_of_its_huge_pages) {
  const bool knows_huge_pages = may_be_huge(aggregate::Mapping(8_MiB).at() + 4_MiB);
  for (const base::SizeConstants& constants : {base::normal_sizes, base::small_sizes}) {
    const std::size_t huge_page = constants.mapping_huge_page_bytes;
    // From below that place, at it, and above, and on from there.
    for (const std::size_t first : {huge_page / 2, huge_page, huge_page + 1, 3 * huge_page}) {
      aggregate::Mapping memory(first, constants);
      std::memset(memory.at(), 1, memory.bytes());
      std::size_t written = memory.bytes();
      for (int step = 2; step < 5; ++step) {
        memory.grow(2 * memory.bytes() + 1);
        const std::byte* const at = memory.at();
        ASSERT_GT(memory.bytes(), 2 * written);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % huge_page, 0u) << first;
        EXPECT_EQ(std::size_t(std::count(at, at + written, std::byte(step - 1))), written) << first;
        EXPECT_EQ(at[written], std::byte(0)) << first;
        EXPECT_EQ(at[memory.bytes() - 1], std::byte(0)) << first;
        EXPECT_FALSE(may_be_huge(at)) << first;
        if (knows_huge_pages && memory.bytes() > huge_page) {
          EXPECT_TRUE(may_be_huge(at + huge_page)) << first;
          EXPECT_TRUE(may_be_huge(at + memory.bytes() - 1)) << first;
        }
        std::memset(memory.at(), step, memory.bytes());
        written = memory.bytes();
      }
    }
  }
}

TEST(PartMemory, stays_as_it_is_where_it_is_large_enough_already) {
  aggregate::Mapping memory(100);
  const std::byte* const at = memory.at();
  memory.grow(memory.bytes());
  memory.grow(1);
  EXPECT_EQ(memory.at(), at);
  EXPECT_EQ(memory.bytes(), base::normal_sizes.mapping_granule_bytes);
}

TEST(PartMemory, keeps_the_last_returned_mappings_within_bounds_until_they_are_due) {
  aggregate::PartMemory memory(4_MiB);
  EXPECT_EQ(memory.due(), am::never);
  memory.give(memory.take(5_MiB), 0);
  EXPECT_FALSE(memory.keeps_any());
  aggregate::Mapping first = memory.take(1_MiB), second = memory.take(2_MiB), third = memory.take(2_MiB);
  const std::byte* const at_second = second.at();
  memory.give(std::move(first), 0);
  memory.give(std::move(second), 1000);
  EXPECT_EQ(memory.kept_bytes(), 3_MiB);
  memory.give(std::move(third), 2000);
  EXPECT_EQ(memory.kept_bytes(), 4_MiB);  // the first one went
  EXPECT_EQ(memory.due(), 100'002'000);
  EXPECT_NE(memory.take(2_MiB).at(), at_second);
  EXPECT_EQ(memory.take(1_MiB).at(), at_second);
  EXPECT_FALSE(memory.keeps_any());
  memory.give(memory.take(1_MiB), 0);
  memory.forget();
  EXPECT_EQ(memory.kept_bytes(), 0u);
  EXPECT_EQ(memory.due(), am::never);
}

}  // namespace
}  // namespace headway
