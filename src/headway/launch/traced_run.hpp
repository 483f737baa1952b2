// SPDX-License-Identifier: BSD-3-Clause
/// A PE's part of a run that is traced: HEADWAY_TRACE.
#pragma once

#include <headway/am/engine.hpp>
#include <headway/report/board.hpp>
#include <headway/transport/trace/endpoint.hpp>
#include <string>

namespace headway::launch {

/// Made before the PE's engine, and destroyed after it. All PEs of a run have one.
class TracedRun {
 public:
  /// Makes the folder, and this PE's file in it. SystemError before the program begins if the system refuses that.
  TracedRun(const std::string& folder, transport::Endpoint& inner, const report::PeBoard& board, bool simulated);

  transport::Endpoint& endpoint() { return endpoint_; }
  /// Before the program's part.
  void begin(am::Engine& engine);
  /// After Engine::finish().
  void end() { endpoint_.end(); }

 private:
  trace::TracedEndpoint endpoint_;
};

}  // namespace headway::launch
