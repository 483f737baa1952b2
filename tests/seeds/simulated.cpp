// SPDX-License-Identifier: BSD-3-Clause
#include "simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/bytes.hpp>
#include <headway/launch/simulation.hpp>

#include "participant.hpp"

namespace seeds {
namespace {

using namespace headway::literals;

/// Simulated time in which something must move, however slow a PE is.
std::int64_t stall_ns(const Program& program) {
  double factor = 1;
  for (const auto& slow : program.conditions.slow) factor = std::max(factor, slow.factor);
  return 1'000'000'000 + std::int64_t(factor * 5'000'000);
}

}  // namespace

Verdict run_simulated(const Program& program, bool talks) {
  const Expectation expectation = expect(program);
  Oracle oracle(program);
  oracle.talks = talks;
  Verdict verdict;
  verdict.digests.resize(program.pes);
  headway::launch::SimulateOptions options{
      .pes = program.pes,
      .seed = program.seed,
      .conditions = program.conditions,
      .budget_bytes = program.budget_bytes,
      .spill_bytes = expectation.spill_bytes_max + program.budget_bytes + 64_KiB,
      .stall_ns = stall_ns(program),
      .stack_bytes = 1_MiB,  // messages of 200 KiB, some of which are packed there
      .sizes = program.has_small_sizes ? headway::base::small_sizes : headway::base::normal_sizes};
  const headway::launch::SimulateResult result = headway::launch::simulate(options, [&](Pe& pe) {
    verdict.digests[pe.id()] = Participant(pe, program, expectation, oracle).run();
    verdict.spilled_frames += pe.engine().store().spilled_frames();
    return 0;
  });
  verdict.messages = oracle.messages();
  verdict.frames = result.frames;
  verdict.simulated_ns = result.simulated_ns;
  if (result.status != 0) {
    verdict.violation = fmt::format("status {}: {}", result.status, result.text);
  } else if (result.claimed_bytes_peak > program.budget_bytes) {
    verdict.violation = fmt::format("a PE held {} bytes of frames at once", result.claimed_bytes_peak);
  } else if (verdict.digests != expectation.digests) {
    verdict.violation = "other messages were handled than a serial run says";
  }
  return verdict;
}

}  // namespace seeds
