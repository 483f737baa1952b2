// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>
#include <headway/am/engine.hpp>
#include <headway/am/time.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/simulated_clock.hpp>

namespace headway {

double wtime(Pe& pe) { return double(pe.engine().now()) * 1e-9; }

void charge(Pe& pe, double seconds) {
  if (!(seconds >= 0 && seconds <= 1e6)) {
    throw UsageError(fmt::format("charge() of {} seconds: allowed is 0 to 10^6", seconds));
  }
  auto* const clock = dynamic_cast<transport::SimulatedClock*>(&pe.engine().endpoint());
  if (clock != nullptr) clock->charge(std::llround(seconds * 1e9));
}

}  // namespace headway
