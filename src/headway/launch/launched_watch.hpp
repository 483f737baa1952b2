// SPDX-License-Identifier: BSD-3-Clause
/// Detects stalls of a run under a launcher, and collects reports of its PEs, by messages instead of shared memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <headway/report/reporter.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/transport/local/segment.hpp>
#include <headway/transport/wire/port.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace headway::launch {

/// Each process has one; any waiting PE of it calls step(). The first process of each segment answers for the
/// segment. In rounds, process 0 asks these for the activity of their PEs and whether any works; a working one may
/// not answer. The run has stalled if all answers stay equal for the limit. Then, or after a signal, process 0
/// collects the reports of all PEs.
class LaunchedWatch {
 public:
  /// `leaders` are the first processes of the segments, ascending from 0.
  LaunchedWatch(local::Segment& segment, wire::Port& port, std::size_t process, const std::vector<std::size_t>& leaders,
                std::chrono::nanoseconds limit);

  struct Page {
    bool stalled;      // the run ends with this page
    std::string text;  // text about all PEs
  };
  /// Answers requests, asks if due, and continues the current report. In process 0 returns a page when one is
  /// complete.
  std::optional<Page> step(std::int64_t now);

  /// Call when this process's PEs have ended with `status`. Continue to call step() until status_of_all() is known:
  /// the status of the lowest process that failed, or 0.
  void finish(int status);
  std::optional<int> status_of_all() const { return status_of_all_; }

 private:
  enum class Kind : std::uint32_t { ask, answer, want_report, ask_report, report, finished, all_finished };
  struct Message {
    Kind kind;
    std::uint32_t number;  // of the round, or of the report
    std::uint64_t activity;
    std::uint32_t waits, works;  // whether any of its PEs does
    std::int32_t status = 0;
  };

  Message state(Kind kind, std::uint32_t number) const;
  void send(std::size_t process, const Message& message);
  void receive(const wire::Port::Service& service, std::int64_t now);
  void receive_end(std::size_t process, int status);
  void receive_round(std::int64_t now);
  void begin_round(std::int64_t now);
  void begin_report(std::int64_t now, bool stalled);
  void send_views(const std::vector<report::PeView>& views);
  std::optional<Page> step_report(std::int64_t now);

  local::Segment* segment_;
  wire::Port* port_;
  std::size_t process_, processes_;
  std::vector<std::size_t> leaders_;
  bool leads_;
  std::chrono::nanoseconds limit_;
  std::mutex mutex_;  // one PE steps; others skip
  report::Reporter reporter_;
  std::uint32_t report_number_ = 0;  // number of the current report
  std::uint64_t signals_seen_ = 0;
  std::optional<int> status_of_all_;

  // Process 0.
  std::uint32_t round_ = 0;
  std::size_t answers_ = 0;  // to this round
  bool waits_ = false, works_ = false;
  std::uint64_t activity_ = 0, activity_before_ = 0, own_activity_ = 0;
  std::int64_t round_at_ = 0, still_since_ = 0;
  bool collecting_ = false, collecting_on_stall_ = false;
  std::size_t reports_ = 0;
  std::int64_t collect_until_ = 0;
  std::vector<std::vector<report::PeView>> views_;  // by leader
  std::vector<std::int32_t> statuses_;              // by process
  std::size_t finished_ = 0;                        // number of processes that have ended
};

}  // namespace headway::launch
