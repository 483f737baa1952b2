// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <headway/base/error.hpp>
#include <headway/launch/traced_run.hpp>
#include <system_error>

namespace headway::launch {
namespace {

using model::trace::Phase;

Phase phase_of(const report::PeBoard& board) {
  switch (board.phase.load(std::memory_order_relaxed)) {
    case report::Phase::handling: return Phase::handling;
    case report::Phase::quiescing: return Phase::quiescing;
    case report::Phase::collective: return Phase::collective;
    case report::Phase::epoch: return Phase::epoch;
    case report::Phase::condition:
    case report::Phase::future: return Phase::waiting;
    default: return Phase::working;
  }
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

TracedRun::TracedRun(const std::string& folder, transport::Endpoint& inner, const report::PeBoard& board,
                     bool simulated)
    : folder_(folder), endpoint_(inner, [&board] { return phase_of(board); }), simulated_(simulated) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw SystemError(fmt::format("HEADWAY_TRACE={}: it cannot be made: {}", folder, error.message()));
  endpoint_.write(folder, "", "", simulated);
  endpoint_.begin();
}

void TracedRun::write() const {
  endpoint_.write(folder_, variable("HEADWAY_TRANSPORT"), variable("HEADWAY_DIAL"), simulated_);
}

}  // namespace headway::launch
