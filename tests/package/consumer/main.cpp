// SPDX-License-Identifier: BSD-3-Clause
// A program outside the project: uses the aggregator and allreduce from the installed package.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    std::uint64_t received = 0;
    headway::Aggregator<std::uint64_t> numbers(pe);
    numbers.on([&](const std::uint64_t& number) { received += number; });
    for (std::uint64_t i = 1; i <= 1000; ++i) numbers.send(i % pe.size(), i);
    pe.quiesce();

    const std::uint64_t sum = headway::allreduce(pe, received, std::plus<>());
    const std::uint64_t expected = 500500 * pe.size();
    if (pe.id() == 0) std::printf("%zu PEs, sum %llu\n", pe.size(), static_cast<unsigned long long>(sum));
    return sum == expected ? 0 : 1;
  });
}
