/// Notices that nothing moves in a run that a launcher has started, and collects what its PEs say of themselves: without
/// shared memory, by messages of its own.
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

/// One in each process; step() is called by whichever of its PEs waits. Of the processes that share a segment the first
/// speaks for all. Process 0 asks these, round by round, for what their PEs count and whether any of them is at work:
/// one that is does not answer, or says so. Nothing has moved when all have answered the same for as long as the limit.
/// Then, or when a signal has asked for it, they send what the PEs report.
class LaunchedWatch {
 public:
  /// `leaders` are the processes that speak for a segment, 0 being the first.
  LaunchedWatch(local::Segment& segment, wire::Port& port, std::size_t process, const std::vector<std::size_t>& leaders,
                std::chrono::nanoseconds limit);

  struct Page {
    bool stalled;      // the run is to end with it
    std::string text;  // on all PEs
  };
  /// Answers, asks, and goes on with the report under way. In process 0 returns a page when one is complete.
  std::optional<Page> step(std::int64_t now);

  /// This process's PEs have ended, with that status. It goes on to step until status_of_all() is known: that of the
  /// lowest process whose status is not 0.
  void finish(int status);
  std::optional<int> status_of_all() const { return status_of_all_; }

 private:
  enum class Kind : std::uint32_t { ask, answer, want_report, ask_report, report, finished, all_finished };
  struct Message {
    Kind kind;
    std::uint32_t number;  // of the round, or of the report
    std::uint64_t activity;
    std::uint32_t waits, works;  // of its PEs: some do
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
  std::mutex mutex_;  // one PE looks, the others need not
  report::Reporter reporter_;
  std::uint32_t report_number_ = 0;  // being made here
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
  std::vector<std::vector<report::PeView>> views_;  // by process that leads
  std::vector<std::int32_t> statuses_;      // by process
  std::size_t finished_ = 0;                // of them
};

}  // namespace headway::launch
