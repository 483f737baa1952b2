// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <headway/am/spill_memory.hpp>
#include <headway/base/random.hpp>
#include <vector>

namespace headway::am {
namespace {

struct Block {
  std::byte* at;
  std::size_t bytes;
  std::byte value;
};

Block allocate(SpillMemory& memory, std::size_t bytes, unsigned value) {
  Block block{memory.allocate(bytes), bytes, std::byte(value)};
  std::memset(block.at, int(value & 0xff), bytes);
  return block;
}

void free_checked(SpillMemory& memory, const Block& block) {
  EXPECT_TRUE(std::all_of(block.at, block.at + block.bytes, [&](std::byte b) { return b == block.value; }));
  EXPECT_EQ(memory.free(block.at), block.bytes);
}

TEST(SpillMemory, blocks_are_aligned_apart_and_given_back_to_the_system) {
  SpillMemory memory;
  Random random(7);
  std::vector<Block> blocks;
  for (unsigned step = 0; step < 20'000; ++step) {
    if (blocks.size() < 100 && random.one_in(2)) {
      const std::size_t bytes = random.one_in(50) ? 1 + random.below(1'000'000) : 1 + random.below(20'000);
      blocks.push_back(allocate(memory, bytes, step));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().at) % 64, 0u);
    } else if (!blocks.empty()) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      free_checked(memory, blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) free_checked(memory, block);
  EXPECT_EQ(memory.mapped_bytes(), 0u);
}

TEST(SpillMemory, free_slots_beside_a_long_lived_block_are_reused) {
  SpillMemory memory;
  constexpr std::size_t bytes = 4096;
  std::vector<Block> kept;
  std::size_t mapped_at_first = 0;
  for (unsigned round = 0; round < 50; ++round) {
    std::vector<Block> blocks;
    for (unsigned i = 0; i < 1000; ++i) blocks.push_back(allocate(memory, bytes, i));
    if (round == 0) mapped_at_first = memory.mapped_bytes();
    EXPECT_LE(memory.mapped_bytes(), mapped_at_first + kept.size() * bytes * 9 / 8 + SpillMemory::chunk_bytes);
    // One block in fifty stays allocated.
    for (unsigned i = 0; i < 1000; ++i) {
      if (i % 50 == 0) {
        kept.push_back(blocks[i]);
      } else {
        free_checked(memory, blocks[i]);
      }
    }
  }
  for (const Block& block : kept) free_checked(memory, block);
  EXPECT_EQ(memory.mapped_bytes(), 0u);
}

TEST(SpillMemory, blocks_take_little_more_than_their_bytes) {
  SpillMemory memory;
  for (const std::size_t bytes : {256u, 1000u, 4160u, 16448u, 65600u, 262208u, 1'000'000u}) {
    constexpr std::size_t bytes_in_all = 16 << 20;
    std::vector<Block> blocks;
    for (unsigned i = 0; i < bytes_in_all / bytes; ++i) blocks.push_back(allocate(memory, bytes, i));
    EXPECT_LT(double(memory.mapped_bytes()), 1.35 * bytes_in_all + SpillMemory::chunk_bytes) << bytes;
    for (const Block& block : blocks) free_checked(memory, block);
  }
}

}  // namespace
}  // namespace headway::am
