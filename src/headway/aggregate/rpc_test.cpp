#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/rpc.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

int twice(int n) { return 2 * n; }

Task<> ask_all(Pe& pe, int& done) {
  for (std::size_t target = 0; target < pe.size(); ++target) {
    const int n = int(10 * pe.id() + target);
    EXPECT_EQ(co_await rpc(pe, target, twice, n), 2 * n);
    EXPECT_EQ(co_await rpc(pe, target, [](Pe& there, PeId source, int k) { return int(there.id() * 100 + source) + k; }, n),
              int(target * 100 + pe.id()) + n);
  }
  ++done;
}

TEST(Rpc, gives_a_coroutine_what_functions_on_other_pes_return) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      int done = 0;
      spawn(pe, ask_all(pe, done));
      EXPECT_EQ(pe.quiesce(), 4 * pe.size() * pe.size());
      EXPECT_EQ(done, 1);
    });
  }
}

}  // namespace
}  // namespace headway
