// SPDX-License-Identifier: BSD-3-Clause
/// Histogram: the samples are spread over all PEs, and so are the bins; each sample goes to its bin.
#include <algorithm>
#include <vector>

#include "program.hpp"

constexpr std::size_t bins = 1000, samples = 300'000;

/// Squared, so that some bins are popular.
std::size_t bin_of(std::size_t sample) {
  const double x = double(program::random(sample) >> 11) * 0x1p-53;
  return std::size_t(x * x * double(bins));
}

std::vector<std::size_t> serial_histogram() {
  std::vector<std::size_t> counts(bins);
  for (std::size_t i = 0; i < samples; ++i) ++counts[bin_of(i)];
  return counts;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const headway::Block layout(bins, pe.size());
    std::vector<std::size_t> counts(layout.count(pe.id()));

    headway::Aggregator<std::size_t> hits(pe, program::options(argc, argv));
    hits.on([&](std::size_t at) { ++counts[at]; });

    for (std::size_t i = pe.id(); i < samples; i += pe.size()) {
      const std::size_t bin = bin_of(i);
      hits.send(layout.owner(bin), layout.local(bin));
    }
    pe.quiesce();

    const std::vector<std::size_t> expected = serial_histogram();
    std::size_t largest = 0;
    bool right = true;
    for (std::size_t at = 0; at < counts.size(); ++at) {
      right &= counts[at] == expected[layout.global(pe.id(), at)];
      largest = std::max(largest, counts[at]);
    }
    largest = headway::allreduce(pe, largest, [](std::size_t a, std::size_t b) { return std::max(a, b); });
    return program::finish(pe, right, "samples in the largest bin", largest);
  });
}
