// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <headway/base/bytes.hpp>
#include <headway/rma/pool.hpp>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>

namespace headway::rma {
namespace {

using testing::expect_run;
using testing::expect_usage_error;
using testing::Shape;
using testing::shapes;
using testing::Shared;

TEST(Pool, what_all_pes_allocate_lies_at_the_same_offset) {
  for (const Shape shape : shapes) {
    Shared<std::array<std::atomic<std::uint64_t>, 64>> offsets;
    expect_run(shape, [&](Pe& pe) {
      Pool& pool = Pool::of(pe);
      const std::uint64_t own =
          pool.allocate(5000 * (pe.id() + 1));  // differs between PEs: common offsets must not depend on it
      const std::uint64_t first = pool.allocate_everywhere(10'000), second = pool.allocate_everywhere(1);
      pool.free_everywhere(first);
      const std::uint64_t third = pool.allocate_everywhere(9'000);
      (*offsets)[pe.id()].store(second << 32 | third);
      pool.free(own);
      pe.quiesce();
      EXPECT_EQ((*offsets)[pe.id()].load(), (*offsets)[0].load());
    });
  }
}

TEST(Pool, pes_of_a_host_reach_it_by_load_and_store) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Pool& pool = Pool::of(pe);
      const std::uint64_t at = pool.allocate_everywhere(64 * sizeof(std::uint64_t));
      transport::Endpoint& endpoint = pe.engine().endpoint();
      for (std::size_t to = 0; to < pe.size(); ++to) {
        const std::span<std::byte> theirs = endpoint.shared_memory().pool(to);
        if (theirs.empty()) continue;  // on another host
        const std::uint64_t value = to * 1000 + pe.id();
        std::memcpy(theirs.data() + at + pe.id() * sizeof value, &value, sizeof value);
      }
      pe.quiesce();
      for (std::size_t from = 0; from < pe.size(); ++from) {
        if (endpoint.shared_memory().pool(from).empty()) continue;
        std::uint64_t value = 0;
        std::memcpy(&value, pool.memory().data() + at + from * sizeof value, sizeof value);
        EXPECT_EQ(value, pe.id() * 1000 + from);
      }
      pe.quiesce();
      pool.free_everywhere(at);
    });
  }
}

TEST(Pool, freed_memory_returns_to_the_system) {
  expect_run({1, 1}, [](Pe& pe) {
    Pool& pool = Pool::of(pe);
    constexpr std::size_t bytes = 4_MiB;
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t at = pool.allocate(bytes);
      std::byte* const memory = pool.memory().data() + at;
      EXPECT_EQ(memory[bytes / 2], std::byte{0}) << "no page of the last time";
      std::memset(memory, 1, bytes);
      pool.free(at);
    }
  });
}

/// A value of /proc/self/smaps for the mapping with `at`.
std::size_t bytes_in_huge_pages(const std::byte* at) {
  std::ifstream maps("/proc/self/smaps");
  bool is_in_it = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    std::size_t kib = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2)
      is_in_it = begin <= reinterpret_cast<std::uintptr_t>(at) && reinterpret_cast<std::uintptr_t>(at) < end;
    else if (is_in_it && std::sscanf(line.c_str(), "ShmemPmdMapped: %zu kB", &kib) == 1)
      return kib * 1024;
  }
  return 0;
}

// shmem_enabled is a setting of the machine; since Linux 6.1 a process may ask for huge pages in any case.
TEST(Pool, whole_huge_pages_of_it_can_be_mapped) {
  constexpr int collapse = 25;  // MADV_COLLAPSE
  constexpr std::size_t bytes = 8_MiB;
  for (const Shape shape : {Shape{1, 1}, Shape{3, 1}}) {
    expect_run(shape, [&](Pe& pe) {
      Pool& pool = Pool::of(pe);
      const std::uint64_t small = pool.allocate(5000), at = pool.allocate(bytes + 1);
      std::byte* const memory = pool.memory().data() + at;
      std::memset(memory, 1, bytes);
      if (madvise(memory, bytes, collapse) != 0) {
        EXPECT_FALSE(errno == EINVAL && reinterpret_cast<std::uintptr_t>(memory) % 2_MiB != 0)
            << "they begin elsewhere";
      } else {
        EXPECT_EQ(bytes_in_huge_pages(memory), bytes);
      }
      pool.free(at);
      EXPECT_EQ(bytes_in_huge_pages(memory), 0u);
      pool.free(small);
    });
  }
}

TEST(Pool, an_impossible_size_is_refused_with_its_value) {
  expect_run({2, 1}, [](Pe& pe) {
    Pool& pool = Pool::of(pe);
    expect_usage_error([&] { (void)pool.allocate(std::size_t(1) << 60); }, "cannot have 1");
    const std::uint64_t at = pool.allocate(0);
    EXPECT_LT(at, pool.memory().size());
    pool.free(at);
  });
}

}  // namespace
}  // namespace headway::rma
