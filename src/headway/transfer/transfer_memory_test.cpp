// SPDX-License-Identifier: BSD-3-Clause
// get(), put() and send_buffer() of hundreds of megabytes and more, and the memory that they take.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/bytes.hpp>
#include <headway/transfer/transfer.hpp>
#include <optional>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using namespace literals;
using testing::expect_run;

/// Gets all of PE 0's `source` into PE 1's `to`.
void get_on_pe_1(Pe& pe, std::span<const std::byte> source_memory, std::span<std::byte> to) {
  Aggregator<RemoteSource<std::byte>> offers(pe);
  std::optional<RemoteSource<std::byte>> offer;
  offers.on([&](const RemoteSource<std::byte>& offered) { offer = offered; });
  std::optional<Source<std::byte>> source;
  bool given_back = false;
  if (pe.id() == 0) {
    source.emplace(pe, source_memory, [&] { given_back = true; });
    offers.send(1, source->remote());
  }
  pe.quiesce();
  if (pe.id() == 1) get(pe, *offer, to).get();
  pe.quiesce();
  EXPECT_EQ(given_back, pe.id() == 0);
}

/// `bytes` of addresses, over and over the same 64 MiB but for the last page, which is zero.
std::span<std::byte> repeated_memory(std::size_t bytes) {
  const std::size_t once = 64_MiB, page = 4_KiB;
  const int file = memfd_create("test", 0);
  EXPECT_EQ(ftruncate(file, off_t(once)), 0);
  constexpr int addresses = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  auto* const at = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, addresses, -1, 0));
  for (std::size_t offset = 0; offset < bytes - page; offset += once) {
    const std::size_t n = std::min(once, bytes - page - offset);
    EXPECT_NE(mmap(at + offset, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), MAP_FAILED);
  }
  close(file);
  return {at, bytes};
}

TEST(Transfer, of_more_bytes_than_32_bits_count) {
  expect_run({2, 1},
             [](Pe& pe) {
               const std::size_t bytes = 5_GiB;
               const std::span<std::byte> memory = repeated_memory(bytes);
               if (pe.id() == 0) memory[bytes - 1] = std::byte(7);
               get_on_pe_1(pe, memory, memory);
               EXPECT_EQ(memory[bytes - 1], std::byte(7));
               munmap(memory.data(), bytes);
             },
             {{"HEADWAY_TRANSFER", "cma"}});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// The most memory that this process has had, in bytes.
std::size_t peak_resident_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

TEST(Transfer, takes_no_memory_but_that_of_both_ends) {
  for (const char* way : {"auto", "cma", "frames"}) {
    expect_run({2, 1},
               [](Pe& pe) {
                 const std::size_t bytes = 512_MiB;
                 void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                 const std::span<std::byte> span(static_cast<std::byte*>(memory), bytes);
                 if (pe.id() == 0) std::ranges::fill(span, std::byte(5));
                 pe.quiesce();
                 const std::size_t before = peak_resident_bytes();
                 get_on_pe_1(pe, span, span);
                 const std::size_t grown = peak_resident_bytes() - before;
                 EXPECT_LT(grown, pe.id() == 0 ? bytes / 100 + 24_MiB : bytes + bytes / 100 + 24_MiB);
                 EXPECT_EQ(span.back(), std::byte(5));
                 munmap(memory, bytes);
               },
               {{"HEADWAY_TRANSFER", way}});
  }
}

TEST(SendBuffer, takes_one_buffer_more_at_its_receiver) {
  for (const char* way : {"auto", "cma", "frames"}) {
    expect_run({2, 1},
               [](Pe& pe) {
                 const std::size_t bytes = 512_MiB;
                 Aggregator<std::span<const std::byte>> blocks(pe);
                 std::size_t handled = 0;
                 blocks.on([&](std::span<const std::byte> block) {
                   for (std::size_t i = 0; i < block.size(); i += 4_KiB)
                     handled += block[i] == std::byte(5) ? 4_KiB : 0;
                 });
                 std::vector<std::byte> content(pe.id() == 0 ? bytes : 0, std::byte(5));
                 pe.quiesce();
                 const std::size_t before = peak_resident_bytes();
                 if (pe.id() == 0) blocks.send(1, send_buffer(content, [] {}));
                 pe.quiesce();
                 const std::size_t grown = peak_resident_bytes() - before;
                 EXPECT_EQ(handled, pe.id() == 1 ? bytes : 0);
                 EXPECT_LT(grown, (pe.id() == 0 ? 0 : bytes) + bytes / 100 + 24_MiB);
               },
               {{"HEADWAY_TRANSFER", way}});
  }
}
#endif

}  // namespace
}  // namespace headway
