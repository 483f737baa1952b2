// SPDX-License-Identifier: BSD-3-Clause
/// How idle PEs wait.
#include <gtest/gtest.h>

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/machine.hpp>
#include <support/run_pes.hpp>

namespace headway::testing {
namespace {

// A bound PE may use one core only, but does not share it.
TEST(Waiting, pes_with_a_core_each_spin_and_others_yield) {
  const std::size_t cores = base::available_cores();
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
