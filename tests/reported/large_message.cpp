// SPDX-License-Identifier: BSD-3-Clause
// One message of as many bytes as the argument says, here more than 1 GiB, of which the receiver learns in the first
// part.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/headway.hpp>
#include <span>
#include <vector>

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : (std::size_t(1) << 30) + 1;
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    std::size_t arrived = 0;
    int wrong = 0;
    headway::Aggregator<std::span<const char>> blocks(pe);
    blocks.on([&](std::span<const char> block) {
      arrived += block.size();
      const bool all_equal = std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
      wrong += !all_equal || block.front() != 'x';
    });
    if (pe.id() == 0) blocks.send(1 % pe.size(), std::span<const char>(std::vector<char>(bytes, 'x')));
    pe.quiesce();
    const bool right = wrong == 0 && arrived == (pe.id() == 1 % pe.size() ? bytes : 0);
    if (!right)
      std::printf("PE %zu: %zu of %zu bytes arrived%s\n", std::size_t(pe.id()), arrived, bytes,
                  wrong != 0 ? ", changed" : "");
    return right ? 0 : 1;
  });
}
