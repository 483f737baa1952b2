// SPDX-License-Identifier: BSD-3-Clause
// Messages of a fixed size that is no multiple of their alignment, from one frame to many parts, in order and not.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <headway/headway.hpp>
#include <memory>

namespace {

constexpr int messages = 3;

template <std::size_t bytes>
struct Block {
  std::array<unsigned char, bytes> content;
};

/// The bytes of a block repeat after so many.
std::array<unsigned char, 251> period(int number) {
  std::array<unsigned char, 251> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + std::size_t(number));
  return bytes;
}

/// Each PE sends a few to the PEs behind it. Returns whether all of this PE's have arrived unchanged.
template <std::size_t bytes>
bool exchange(headway::Pe& pe, bool ordered) {
  headway::Aggregator<int, Block<bytes>> blocks(pe, {.ordered = ordered});
  std::size_t arrived = 0, wrong = 0;
  int last = -1;
  blocks.on([&](int number, const Block<bytes>& block) {
    ++arrived;
    const auto expected = period(number);
    for (std::size_t i = 0; i < bytes; i += expected.size()) {
      wrong += std::memcmp(block.content.data() + i, expected.data(), std::min(bytes - i, expected.size())) != 0;
    }
    if (ordered && pe.size() == 1 && number != ++last) ++wrong;
  });
  const auto block = std::make_unique<Block<bytes>>();
  for (int number = 0; number < messages; ++number) {
    const auto content = period(number);
    for (std::size_t i = 0; i < bytes; i += content.size()) {
      std::memcpy(block->content.data() + i, content.data(), std::min(bytes - i, content.size()));
    }
    blocks.send((pe.id() + std::size_t(number)) % pe.size(), number, *block);
  }
  pe.quiesce();
  if (arrived == messages && wrong == 0) return true;
  std::printf("PE %zu: %zu of %d blocks of %zu bytes arrived, %zu pieces are wrong\n", std::size_t(pe.id()), arrived,
              messages, bytes, wrong);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    bool right = true;
    for (const bool ordered : {false, true}) {
      right &= exchange<1>(pe, ordered);
      right &= exchange<100'001>(pe, ordered);
      right &= exchange<262'147>(pe, ordered);
      right &= exchange<300'002>(pe, ordered);
      if (!ordered) right &= exchange<5'000'001>(pe, ordered);
    }
    return right ? 0 : 1;
  });
}
