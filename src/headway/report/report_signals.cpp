// SPDX-License-Identifier: BSD-3-Clause
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <headway/report/report_signals.hpp>

namespace headway::report {
namespace {

// State of the signal handlers. A child that a PE forked has none of this memory, so handlers compare the pid.
std::atomic<local::SegmentHeader*> run_header{nullptr};
std::atomic<pid_t> run_process{0};
struct ThreadState {
  PeBoard* board = nullptr;
  ReportArea* area = nullptr;
};
thread_local ThreadState thread_state;

constexpr int stack_addresses_max = int(ReportArea::stack_depth_max) + 8;

void put_stack(ReportArea& area, void* const* addresses, int count, bool exact) {
  area.stack_depth = 0;
  for (int i = 0; i < count && area.stack_depth < ReportArea::stack_depth_max; ++i) {
    area.stack[area.stack_depth++] = reinterpret_cast<std::uintptr_t>(addresses[i]);
  }
  area.stack_is_exact = exact;
}

void* interrupted_at(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(machine.pc);
#else
  static_cast<void>(machine);
  return nullptr;
#endif
}

/// Runs in the signal handler. backtrace() neither allocates nor locks after its first call, which ReportSignals
/// makes.
void write_stack(int, siginfo_t*, void* context) {
  const int error = errno;
  if (thread_state.area != nullptr && getpid() == run_process.load(std::memory_order_relaxed) &&
      thread_state.area->busy.load(std::memory_order_relaxed) == 0) {
    void* addresses[stack_addresses_max];
    const int count = backtrace(addresses, stack_addresses_max);
    void** const interrupted = std::find(addresses, addresses + count, interrupted_at(context));
    const bool found = interrupted != addresses + count;
    void** const first = found ? interrupted : addresses;
    put_stack(*thread_state.area, first, int(addresses + count - first), found);
    thread_state.area->stack_given.store(report_in(thread_state.board->wanted.load(std::memory_order_relaxed)),
                                         std::memory_order_release);
  }
  errno = error;
}

void request_report(int) {
  local::SegmentHeader* header = run_header.load(std::memory_order_relaxed);
  if (header == nullptr || getpid() != run_process.load(std::memory_order_relaxed)) return;
  header->reports_asked.fetch_add(1, std::memory_order_relaxed);
}

bool install(int signal, void (*plain)(int), void (*full)(int, siginfo_t*, void*)) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
    return false;
  struct sigaction action {};
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  if (full != nullptr) {
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = full;
  } else {
    action.sa_handler = plain;
  }
  return sigaction(signal, &action, nullptr) == 0;
}

void remove(int signal, void (*plain)(int), void (*full)(int, siginfo_t*, void*)) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  const bool is_ours = full != nullptr ? (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == full
                                       : (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == plain;
  if (is_ours) ::signal(signal, SIG_DFL);
}

}  // namespace

int report_signal() { return SIGUSR1; }
int stack_signal() { return SIGRTMAX - 6; }

void GiveReport::operator()(std::uint32_t request, const PeReport& report) const {
  area->busy.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  area->phase = board->phase.load(std::memory_order_relaxed);
  area->moves = moves_of(*board);
  area->waits_for_count = std::uint32_t(std::min(report.waits_for.size(), ReportArea::waits_for_max));
  std::copy_n(report.waits_for.begin(), area->waits_for_count, area->waits_for);
  std::size_t bytes = 0;
  for (const std::string& line : report.lines) {
    if (bytes + line.size() + 1 > sizeof area->text) break;
    bytes += line.copy(area->text + bytes, line.size());
    area->text[bytes++] = '\n';
  }
  area->text_bytes = std::uint32_t(bytes);
  void* addresses[stack_addresses_max];
  put_stack(*area, addresses, backtrace(addresses, stack_addresses_max), false);
  area->stack_given.store(request, std::memory_order_release);
  area->given.store(request, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  area->busy.store(0, std::memory_order_relaxed);
}

ReportSignals::ReportSignals(local::SegmentHeader& header, ProcessRecord& process_record) : record_(&process_record) {
  void* address;
  backtrace(&address, 1);  // loads the unwinder, so that signal handlers need not
  run_process = getpid();
  run_header = &header;
  install(report_signal(), request_report, nullptr);
  if (install(stack_signal(), nullptr, write_stack)) process_record.stack_signal = stack_signal();
}

ReportSignals::~ReportSignals() {
  record_->stack_signal = 0;
  remove(stack_signal(), nullptr, write_stack);
  remove(report_signal(), request_report, nullptr);
  run_header = nullptr;
}

ThreadOfPe::ThreadOfPe(PeBoard& board, ReportArea& area) : board_(&board) {
  thread_state = {&board, &area};
  area.busy.store(0, std::memory_order_relaxed);
  board.thread.store(pid_t(syscall(SYS_gettid)), std::memory_order_release);
}

ThreadOfPe::~ThreadOfPe() {
  if (getpid() == run_process.load(std::memory_order_relaxed)) board_->thread.store(0, std::memory_order_release);
  thread_state = {};
}

}  // namespace headway::report
