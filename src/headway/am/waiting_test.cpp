/// How PEs wait that have nothing to do.
#include <gtest/gtest.h>

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/machine.hpp>
#include <support/run_pes.hpp>

namespace headway::testing {
namespace {

// One that is bound to its core may use no other, which does not mean that it shares it.
TEST(Waiting, those_that_have_a_core_each_look_on_and_others_yield) {
  const std::size_t cores = available_cores();
  for (const char* bind : {"core", "none"}) {
    for (const std::size_t per_process : {std::size_t(1), cores}) {
      SCOPED_TRACE(std::string(bind) + ", PEs per process " + std::to_string(per_process));
      const auto all_wait_by = [&](am::Idle idle) { return [idle](Pe& pe) { EXPECT_EQ(pe.engine().idle(), idle); }; };
      EXPECT_EQ(run_pes(cores, per_process, all_wait_by(am::Idle::spin), {{"HEADWAY_BIND", bind}}), 0);
      EXPECT_EQ(run_pes(cores + 1, per_process, all_wait_by(am::Idle::yield), {{"HEADWAY_BIND", bind}}), 0);
    }
  }
}

}  // namespace
}  // namespace headway::testing
