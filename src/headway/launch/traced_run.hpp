// SPDX-License-Identifier: BSD-3-Clause
/// A PE's part of a run that is traced: HEADWAY_TRACE.
#pragma once

#include <headway/report/board.hpp>
#include <headway/transport/trace/endpoint.hpp>
#include <string>

namespace headway::launch {

/// Made before the PE's engine, and destroyed after it. All PEs of a run have one.
class TracedRun {
 public:
  /// Makes the folder, and this PE's file in it, so that a folder that cannot be written ends the run before it begins.
  TracedRun(const std::string& folder, transport::Endpoint& inner, const report::PeBoard& board, bool simulated);

  transport::Endpoint& endpoint() { return endpoint_; }
  /// After Engine::finish().
  void end() { endpoint_.end(); }
  /// Writes this PE's file. After the last frame of the run has left: other PEs may wait for it.
  void write() const;

 private:
  std::string folder_;
  trace::TracedEndpoint endpoint_;
  bool simulated_;
};

}  // namespace headway::launch
