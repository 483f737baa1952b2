// SPDX-License-Identifier: BSD-3-Clause
/// Collects a report from the PEs of this host, also from those that do not answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <headway/report/report_area.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/report/symbols.hpp>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace headway::report {

/// Makes one report at a time, in steps that never wait. PEs inside the library answer by themselves. A signal makes
/// the threads of the others write their stacks. Then addr2line names the addresses.
class Reporter {
 public:
  /// The pid of a process, or -1 once it has ended.
  using PidOf = std::function<pid_t(std::size_t process)>;

  explicit Reporter(const local::Segment& segment);

  bool busy() const { return state_ != State::idle; }

  /// Begins a report. `disturb`: also interrupts threads in system calls that a signal ends early.
  void begin(std::int64_t now, const PidOf& pid_of, bool disturb);
  /// Continues the report. Returns the views of all PEs once it is complete.
  std::optional<std::vector<PeView>> step(std::int64_t now);

 private:
  enum class State { idle, asking, signalling, naming };
  /// The state of the report for one PE.
  struct Request {
    pid_t pid = -1;
    bool expected = false;  // the PE may answer
    bool signalled = false;
    std::uint64_t moves = 0;           // moves_of() its board when the PE was asked
    std::optional<std::size_t> stack;  // in symbols_
  };

  bool all_answered() const;
  bool all_stacks_written() const;
  void signal_silent();
  void name_stacks(std::int64_t now);
  std::vector<PeView> views() const;
  PeView view(std::size_t pe) const;
  void add_answer(PeView& view, std::size_t pe) const;
  void add_silent(PeView& view, std::size_t pe) const;
  bool waits_for_start(std::size_t pe) const;

  const local::Segment* segment_;
  State state_ = State::idle;
  std::uint32_t request_ = 0;
  bool disturb_ = false;
  std::int64_t until_ = 0;         // end of the current state
  std::vector<Request> requests_;  // by PE
  std::unique_ptr<Symbols> symbols_;
};

}  // namespace headway::report
