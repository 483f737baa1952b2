// SPDX-License-Identifier: BSD-3-Clause
/// Sample sort: samples of the keys decide which PE gets which range, and every PE sends each its part, a vector.
#include <algorithm>
#include <utility>
#include <vector>

#include "program.hpp"

using Key = std::uint64_t;
using Keys = std::vector<Key>;

constexpr std::size_t keys_all = 100'000, samples_per_pe = 32;

Key key(std::size_t i) { return program::random(i) >> program::random(~i) % 50; }  // many small ones

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    Keys mine;
    for (std::size_t i = pe.id(); i < keys_all; i += pe.size()) mine.push_back(key(i));

    Keys received;
    headway::Aggregator<Keys> messages(pe, program::options(argc, argv));
    messages.on([&](const Keys& keys) { received.insert(received.end(), keys.begin(), keys.end()); });

    // Samples go to PE 0, which chooses splitters.
    messages.send(0, Keys(mine.begin(), mine.begin() + std::min(mine.size(), samples_per_pe)));
    pe.quiesce();
    if (pe.id() == 0) {
      std::sort(received.begin(), received.end());
      Keys splitters;
      for (std::size_t p = 1; p < pe.size(); ++p) splitters.push_back(received[p * received.size() / pe.size()]);
      received.clear();
      for (std::size_t p = 0; p < pe.size(); ++p) messages.send(p, splitters);
    }
    pe.quiesce();

    // PE p gets the keys from splitter p - 1 up to below splitter p.
    const Keys splitters = std::exchange(received, {});
    const auto range_of = [&](const Keys& sorted, std::size_t p) {
      const auto begin = p == 0 ? sorted.begin() : std::lower_bound(sorted.begin(), sorted.end(), splitters[p - 1]);
      const auto end = p == splitters.size() ? sorted.end() : std::lower_bound(begin, sorted.end(), splitters[p]);
      return Keys(begin, end);
    };
    std::sort(mine.begin(), mine.end());
    for (std::size_t p = 0; p < pe.size(); ++p) messages.send(p, range_of(mine, p));
    pe.quiesce();
    std::sort(received.begin(), received.end());

    Keys all;
    for (std::size_t i = 0; i < keys_all; ++i) all.push_back(key(i));
    std::sort(all.begin(), all.end());
    return program::finish(pe, received == range_of(all, pe.id()), "keys sorted", program::sum(pe, received.size()));
  });
}
