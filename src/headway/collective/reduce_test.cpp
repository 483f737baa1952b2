/// Collectives that nobody waits in, over shapes of PEs, beside what a serial program makes of the same values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <headway/am/task.hpp>
#include <headway/collective/reduce.hpp>
#include <numeric>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

TEST(Reduce, gives_the_root_what_a_serial_program_does) {
  for (std::size_t pes = 1; pes <= 33; pes += pes < 9 ? 1 : 6) {
    expect_run({pes, pes > 8 ? std::size_t(11) : std::size_t(1)}, [](Pe& pe) {
      const std::size_t n = pe.size();
      for (std::size_t root = 0; root < n; root += 1 + n / 4) {
        std::vector<std::int64_t> mine(root * 3);
        std::iota(mine.begin(), mine.end(), std::int64_t(pe.id() * 100));
        Future<std::vector<std::int64_t>> sums = reduce(pe, std::span(mine), std::plus<>(), root);
        std::ranges::fill(mine, -1);  // consumed
        const std::vector<std::int64_t> got = sums.get();
        ASSERT_EQ(got.size(), pe.id() == root ? mine.size() : 0);
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], std::int64_t(n * i + 100 * (n * (n - 1) / 2)));
        }
        const std::optional<double> most =
            reduce(pe, double(pe.id()), [](double a, double b) { return std::max(a, b); }, root).get();
        ASSERT_EQ(most, pe.id() == root ? std::optional(double(n - 1)) : std::nullopt);
      }
    });
  }
}

}  // namespace
}  // namespace headway
