// SPDX-License-Identifier: BSD-3-Clause
/// What batches.py does, in C++: items (index, value) from arrays, added to a table on their PEs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/headway.hpp>
#include <random>
#include <vector>

struct Update {
  std::int64_t index, value;
};

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const std::size_t items = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000'000;
    const std::int64_t words = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 1 << 15;
    std::mt19937_64 random(pe.id());
    std::vector<std::uint32_t> to(items);
    std::vector<std::int64_t> index(items), value(items, 1), table(words);
    for (std::size_t i = 0; i < items; ++i) {
      to[i] = std::uint32_t(random() % pe.size());
      index[i] = std::int64_t(random() % std::uint64_t(words));
    }
    headway::Aggregator<Update> updates(pe);
    updates.on([&](const Update& u) { table[std::size_t(u.index)] += u.value; });
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      headway::barrier(pe);
      const auto begin = std::chrono::steady_clock::now();
      std::size_t i = 0;
      updates.send_n(items, [&] {
        const std::pair<std::size_t, Update> next{to[i], {index[i], value[i]}};
        ++i;
        return next;
      });
      pe.quiesce();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    if (pe.id() == 0) std::printf("C++ %.2f ns per item\n", best * 1e9 / double(items));
  });
}
