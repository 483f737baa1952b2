// SPDX-License-Identifier: BSD-3-Clause
/// plans FIRST COUNT: random plans with these seeds, their arrays partly in mapped memory. Ends with 1 if an element is
/// wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/halo/random_plans_test.hpp>
#include <headway/headway.hpp>

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    if (argc != 3) return 2;
    const std::uint64_t first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
    std::uint64_t sum = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      try {
        sum += headway::random_plans::run(pe, seed, true);
      } catch (const std::logic_error& error) {
        std::fprintf(stderr, "seed %llu, PE %zu: %s\n", static_cast<unsigned long long>(seed), pe.id().value,
                     error.what());
        throw;
      }
    }
    const auto all = headway::allreduce(pe, sum, std::plus<>());
    if (pe.id() == 0) {
      std::printf("%llu plans on %zu PEs: %llu\n", static_cast<unsigned long long>(count), pe.size(),
                  static_cast<unsigned long long>(all));
    }
    return 0;
  });
}
