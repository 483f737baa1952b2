// SPDX-License-Identifier: BSD-3-Clause
/// A PE's part of a run that is counted: HEADWAY_COUNTS.
#pragma once

#include <cstdint>
#include <cstdio>
#include <headway/am/engine.hpp>
#include <headway/report/board.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <memory>
#include <string>
#include <vector>

namespace headway::launch {

/// Made before the PE's engine, and destroyed after it. All PEs of a run have one.
class CountedRun {
 public:
  /// PE 0 opens the file for writing. SystemError if the system refuses that.
  CountedRun(const std::string& file, transport::Endpoint& inner, const report::PeBoard& board, bool simulated);

  transport::Endpoint& endpoint() { return endpoint_; }
  /// Before the program's part.
  void begin(am::Engine& engine);
  /// Collective, after Engine::finish(): PE 0 gets the counts of all PEs, and writes the file.
  void finish(am::Engine& engine);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void write(am::Engine& engine);

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;  // of PE 0
  count::CountedEndpoint endpoint_;
  bool simulated_;
  std::int64_t cpu_begin_ns_;
  std::uint16_t control_ = 0, have_all_ = 0;
  std::vector<count::PeCounts> counts_;  // of PE 0: by PE
  std::vector<std::vector<count::PhaseCounts>> phases_;
  std::size_t arrived_ = 0, arrived_bytes_ = 0;
  bool all_are_there_ = false;
};

}  // namespace headway::launch
