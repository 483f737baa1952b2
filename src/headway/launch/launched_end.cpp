// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/launch/launched_run.hpp>
#include <thread>

namespace headway::launch {
namespace {

// Time for a failed PE to unwind its stack.
constexpr std::chrono::milliseconds failure_grace_period(500);

// Launchers drop unread output of a process when it ends all.
constexpr std::chrono::milliseconds output_grace_period(200);

// Time for the launcher to end a process before the process ends itself: a launcher without network does not end it.
constexpr std::chrono::milliseconds abort_grace_period(1000), told_grace_period(500);

// The process that started the others also knows a lost process, and the reason: let it report first.
constexpr std::chrono::milliseconds loss_grace_period(1000);

// The run of this process, for the handler of exit(). A program has one run at a time.
std::atomic<LaunchedRun*> running{nullptr};

}  // namespace

void LaunchedRun::print_message(const std::string& text) const {
  // One write, because other processes write to the same output.
  const std::string line = "headway: " + text + "\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// Returns in the first thread that ends the run. In later ones it never returns.
void LaunchedRun::claim_end() {
  if (ending_.exchange(true)) {
    for (;;) pause();
  }
}

void LaunchedRun::end_all(int status) {
  running = nullptr;
  std::fflush(nullptr);
  std::this_thread::sleep_for(output_grace_period);
  if (lifelines_) lifelines_->tell_end(status);
  std::thread([status] {
    std::this_thread::sleep_for(abort_grace_period);
    _exit(status);
  }).detach();
  wire_.functions->abort(wire_.wire, status);
  std::this_thread::sleep_for(2 * abort_grace_period);
  end_process(status);
}

// --- failures here

/// Ends all processes after a while, even if the program catches the exception.
void LaunchedRun::after_failure(std::size_t pe) {
  if (simulated_) return;  // a simulator allows no other thread; the process ends when its stack has been unwound
  std::thread([this, pe] {
    std::this_thread::sleep_for(failure_grace_period);
    end_failed(pe);
  }).detach();
}

void LaunchedRun::end_failed(std::size_t pe) {
  if (wire_.meeting && port_ && port_->has_lost()) std::this_thread::sleep_for(loss_grace_period);
  claim_end();
  const report::PeBoard& failed = board(pe);
  print_message(fmt::format("PE {} (pid {}{}): {}", number_of(pe), pid_,
                            several_hosts_ ? fmt::format(" on {}", self_.host) : "", failed.failure_text));
  end_all(int(failed.failure.load(std::memory_order_relaxed)));
}

void LaunchedRun::watch_exit() {
  static const bool watches = (::on_exit(&LaunchedRun::on_exit, nullptr), true);
  static_cast<void>(watches);
  running = this;
}

void LaunchedRun::forget_exit() { running = nullptr; }

/// Handles exit() in the middle of a run: the other processes would wait forever.
void LaunchedRun::on_exit(int status, void*) {
  LaunchedRun* const run = running.load();
  if (run == nullptr || getpid() != run->pid_) return;
  run->claim_end();
  const HostGroup alone{run->process_, run->process_ + 1};
  run->print_message(fmt::format("{}{} (pid {}) exited with status {} before run() had finished",
                                 run->settings_.pes_per_process > 1 ? "the process of " : "", run->pes_of(alone),
                                 run->pid_, status));
  run->end_all(exit_status::failed);
}

// --- failures elsewhere

std::string LaunchedRun::pes_of(HostGroup processes) const {
  const std::size_t k = settings_.pes_per_process, first = processes.first * k;
  const std::size_t last = std::min(processes.last * k, settings_.pes) - 1;
  return first == last ? fmt::format("PE {}", first) : fmt::format("PE {} to PE {}", first, last);
}

/// Connects lifelines between hosts: from the first process of each segment to process 0, and within a segment to its
/// first process. On one host the launcher detects lost processes; processes that met by TCP are watched already.
void LaunchedRun::connect_lifelines(const std::vector<Introduction>& all) {
  const bool one_kernel =
      std::ranges::all_of(all, [&](const Introduction& one) { return std::strcmp(one.boot_id, all[0].boot_id) == 0; });
  if (one_kernel || wire_.meeting) return;
  std::vector<std::size_t> children;
  if (process_ == 0) children.assign(leaders_.begin() + 1, leaders_.end());
  const bool leads = process_ == group_.first;
  for (std::size_t process = group_.first + 1; leads && process < group_.last; ++process) children.push_back(process);
  lifelines_.emplace(process_, !children.empty());
  std::vector<wire::LifelineAddress> addresses(processes_);
  check(wire_.functions->exchange(wire_.wire, &lifelines_->address(), sizeof addresses[0], addresses.data()),
        "exchange");
  const std::size_t parent = leads ? 0 : group_.first;
  lifelines_->hold(parent, process_ == 0 ? wire::LifelineAddress{} : addresses[parent], children,
                   [this](const wire::Lifelines::Loss& loss) { handle_loss(loss); });
}

/// Runs in the thread of the lifelines.
void LaunchedRun::handle_loss(const wire::Lifelines::Loss& loss) {
  if (left_) return;
  claim_end();
  // the sender has printed the reason, and asked the launcher to end all
  if (loss.event == wire::Lifelines::Event::told) {
    lifelines_->tell_end(loss.status);
    std::this_thread::sleep_for(told_grace_period);
    end_process(loss.status);
  }
  const auto next = std::ranges::upper_bound(leaders_, loss.process);
  const std::size_t last = next == leaders_.end() ? processes_ : *next;
  const std::string& host = hosts_[loss.process];
  if (loss.event == wire::Lifelines::Event::unreachable) {
    print_message(fmt::format("{} ({}) can no longer be reached from {}: {}", host, pes_of({loss.process, last}),
                              self_.host, loss.why));
  } else {
    print_message(fmt::format("the process of {} on {} has ended in the middle of the run",
                              pes_of({loss.process, loss.process + 1}), host));
  }
  end_all(exit_status::failed);
}

}  // namespace headway::launch
