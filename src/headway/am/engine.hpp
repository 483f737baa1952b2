// SPDX-License-Identifier: BSD-3-Clause
/// The runtime of one PE: makes progress, dispatches arrived frames to handlers, waits, and detects quiescence. For
/// the layers above; programs use Pe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <headway/am/frame_store.hpp>
#include <headway/am/pe.hpp>
#include <headway/am/scopes.hpp>
#include <headway/base/creation_table.hpp>
#include <headway/base/fiber.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/once.hpp>
#include <headway/base/settings.hpp>
#include <headway/report/board.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/report/statistics.hpp>
#include <headway/transport/endpoint.hpp>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway::am {

/// Ends the run. The engine throws it where it first detects a failure; run() catches it.
struct RunFailed : std::runtime_error {
  RunFailed(report::FailureKind k, const std::string& text) : std::runtime_error(text), kind(k) {}
  report::FailureKind kind;
};

/// Why a frame was posted.
enum class FlushReason : std::uint8_t { full, timeout, idle, requested };
inline constexpr std::size_t flush_reasons = 4;

/// How much of its open buffers an idle PE posts at once.
enum class IdleFlush : std::uint8_t {
  all,
  in_turn,  // buffers for other hosts on routes of several hops: one per call, with a poll between two
};

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Receives the frames of one handler number, and owns the open buffers for it. The aggregator is one.
class FrameHandler {
 public:
  FrameHandler() = default;
  FrameHandler(const FrameHandler&) = delete;
  FrameHandler& operator=(const FrameHandler&) = delete;
  virtual ~FrameHandler() = default;

  enum class Result { done, paused };

  /// Handles the messages of a frame from index `next` on, and sets `next` to the first unhandled one. `paused` only
  /// for frames with hops left: the engine calls again when memory may be available.
  virtual Result handle(const transport::Arrival& arrival, std::uint32_t& next) = 0;

  /// Posts all open buffers. Returns whether there were any.
  virtual bool flush_open(FlushReason reason) = 0;
  /// The same for an idle PE. A handler that keeps buffers open calls Engine::defer_idle_flush().
  virtual bool flush_idle(IdleFlush how) = 0;
  /// Time at which the oldest open buffer is due, or `never`. flush_due() posts the buffers that are due at `now`.
  virtual std::int64_t due() const = 0;
  virtual bool flush_due(std::int64_t now) = 0;

  /// Later messages are sent in `scope`. A buffer holds messages of one scope.
  virtual void enter_scope(ScopeId) {}
  /// flush_open() for the buffers of one scope.
  virtual bool flush_scope(ScopeId, FlushReason) { return false; }

  virtual std::uint16_t signature() const = 0;
  virtual std::string description() const = 0;
  /// False until the user has set the handler function. Frames wait until then.
  virtual bool ready() const = 0;
  /// Messages that have arrived but wait for an object that this PE has not made. Counts one scope; the root stands
  /// for all.
  virtual std::uint64_t waiting_messages(ScopeId) const { return 0; }
  /// Adds the messages in open buffers to the counts, by the receiver of the buffer.
  virtual void count_open(std::map<std::uint32_t, std::uint64_t>& /* by_target */) const {}
  /// Adds its frames, forwarded messages and open buffers.
  virtual void add_statistics(report::PeStatistics& /* all */) const {}
};

/// State of a higher layer on one PE. The engine makes all extensions, in the same order on every PE, before the
/// program starts.
class Extension {
 public:
  virtual ~Extension() = default;
  /// Called once all extensions of this PE exist, before it sends anything.
  virtual void begin() {}
  /// Whether work of an epoch continues on this PE without a message of it. The PE does not contribute its counts
  /// before.
  virtual bool holds_back(ScopeId) const { return false; }
  /// Collective calls without counted messages. Quiescence and epochs wait until calls that all PEs have made are
  /// finished.
  virtual Calls calls(ScopeId) const { return {}; }
  /// Called at quiescence, with the largest number of calls that any PE has made.
  virtual void set_calls_made(std::uint64_t) {}
  /// If the PE waits in a blocking collective of this extension: adds the PEs that it waits for.
  virtual void add_waits_for(std::vector<std::uint32_t>&) const {}
  /// Called after the last quiescence: describes operations that can never finish. Empty if there are none.
  virtual std::string unfinished() const { return {}; }
  /// Called at the end of the run, while the engine and all extensions still exist: destroys objects that the program
  /// left to this extension.
  virtual void end() noexcept {}
};
using MakeExtension = std::unique_ptr<Extension> (*)(Pe&);

/// Registers an extension; for static initialisation. Returns its index.
std::size_t register_extension(MakeExtension make);

/// What an idle PE does before it sleeps.
enum class Idle {
  spin,   // its core runs no other PE: spins as long as a wake costs, or 1 ms after a shorter sleep
  yield,  // more PEs than cores
  sleep,  // sleeps at once; simulated time passes only in sleep
};

struct EngineOptions {
  std::size_t budget_bytes = 0;
  std::size_t spill_bytes = 0;
  Idle idle = Idle::spin;
  std::int64_t sleep_ns_max = 100'000'000;     // of one sleep; while_waiting() runs after each
  base::AggregationSettings aggregation = {};  // for the layers above, also the next three
  base::TransferSettings transfer = {};
  base::CollectiveStrategy collectives = base::CollectiveStrategy::best;
  base::SizeConstants sizes = base::normal_sizes;
  std::function<void()> while_waiting = [] {};  // called repeatedly while the PE waits; throws if the run has ended
  // called once, after a failure is recorded: the program may catch RunFailed
  std::function<void()> when_failed = [] {};
  // The engine stores a function there that makes its report. Valid while the engine exists, on its thread.
  std::function<report::PeReport()>* reporter = nullptr;
  // Called when a report is wanted, with the number of the request.
  std::function<void(std::uint32_t request, const report::PeReport& report)> give_report =
      [](std::uint32_t, const report::PeReport&) {};
};

class Engine {
 public:
  Engine(transport::Endpoint& endpoint, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// The engine of this thread or fiber. UsageError if there is none.
  static Engine& here() {
    if (base::fiber_local == nullptr) [[unlikely]]
      throw_no_engine();
    return *static_cast<Engine*>(base::fiber_local);
  }

  std::size_t id() const { return pe_.id(); }
  std::size_t size() const { return pe_.size(); }
  Pe& pe() { return pe_; }
  transport::Endpoint& endpoint() { return *endpoint_; }
  FrameStore& store() { return store_; }
  report::PeBoard& board() { return *board_; }
  Idle idle() const { return options_.idle; }
  const base::AggregationSettings& aggregation_settings() const { return options_.aggregation; }
  const base::TransferSettings& transfer_settings() const { return options_.transfer; }
  base::CollectiveStrategy collective_strategy() const { return options_.collectives; }
  const base::SizeConstants& sizes() const { return options_.sizes; }
  std::int64_t now() const { return endpoint_->now(); }
  bool in_handler() const { return in_handler_; }
  /// Whether the running handler is a continuation of an epoch.
  bool in_continuation() const { return in_continuation_; }
  /// Whether a send may wait, and run handlers meanwhile.
  bool may_block() const { return !in_handler_ && deferrals_ == 0; }

  // --- progress and waiting

  /// Handles arrived frames, posts waiting frames and buffers that are due. If there was nothing to do, posts the
  /// buffers that an idle PE posts. Returns whether anything moved. UsageError inside a handler.
  bool progress();

  /// Number of progress() calls that found nothing to do, plus 1. Each of them has posted the buffers that an idle PE
  /// posts.
  std::uint64_t times_idle() const { return times_idle_; }

  /// One round without the idle flush, for a sender that has just posted a frame.
  void poll_some();

  /// Makes progress until done() is true. Sleeps when nothing moves. `what` and `peer` are for the stall report.
  template <class Done>
  void wait_until(Done done, report::Phase what, std::uint32_t peer = report::no_pe) {
    require_may_block(what);
    enter_wait(what, peer);
    while (!done()) {
      if (progress())
        rounds_idle_ = 0;
      else
        pause();
    }
    leave_wait();
  }

  /// wait_until() for a condition that changes without a wake-up, such as a free cell in another PE's inbox: sleeps are
  /// short.
  template <class Done>
  void wait_polling(Done done, report::Phase what, std::uint32_t peer) {
    waits_polling_ = true;
    wait_until(std::move(done), what, peer);
    waits_polling_ = false;
  }

  /// For FrameHandler::flush_idle(): the handler has left buffers open. The engine posts them later, at the latest
  /// when the wait ends.
  void defer_idle_flush() { idle_flush_deferred_ = true; }

  /// Posts all open buffers of all handlers. Returns whether there were any.
  bool flush_all(FlushReason reason);

  std::uint64_t quiesce();

  /// The end of a run: a last quiesce(). Fails if an extension has unfinished operations.
  void finish();

  // --- scopes

  Scopes& scopes() { return scopes_; }
  /// The scope of messages sent now: that of the handler's message, or of the main program.
  ScopeId scope() const { return scope_; }
  /// The scope in which the running handler began; the root for the main program.
  ScopeId handler_scope() const { return in_handler_ ? handler_scope_ : root_scope; }
  void enter_scope(ScopeId scope);
  void flush_scope(ScopeId scope, FlushReason reason);
  /// Whether frames of `scope` wait to be forwarded.
  bool has_paused(ScopeId scope) const;
  /// Whether an extension holds the epoch back.
  bool held_back(ScopeId epoch) const;
  /// The calls of all extensions.
  Calls calls(ScopeId scope) const;
  void set_calls_made(std::uint64_t called_max);
  /// The next progress dispatches the frames that waited for the scope.
  void scope_began() { replay_later_ = !later_.empty(); }

  // --- handlers of counted messages

  /// Collective, in the same order on every PE. Returns the handler's number, which is never reused.
  std::uint32_t add_handler(FrameHandler& handler);
  void remove_handler(std::uint32_t number);
  /// The type of its messages, for reports. Empty if this PE has not made it.
  std::string name_of_made_handler(std::uint32_t number) const {
    return handlers_.was_made(number) ? name_of_handler(number) : std::string();
  }
  /// Handlers report each buffer that they open (1) or close (-1). Without open buffers the engine does not ask them
  /// to flush.
  void count_open_buffers(int by) { open_buffers_ += by; }
  /// Called when a handler has become ready. The next progress dispatches the frames that waited for it.
  void handler_ready() { replay_early_ = !early_.empty(); }
  /// Fills the header fields of a message frame that do not depend on its content.
  void stamp(transport::FrameHeader& header, std::uint32_t handler, std::uint16_t signature, std::uint8_t hops_left,
             ScopeId scope) const {
    header.source = std::uint16_t(id());
    header.handler = handler;
    header.signature = signature;
    header.kind = std::uint8_t(transport::FrameKind::messages);
    header.hops_left = hops_left;
    header.scope = scopes_.tag(scope);
  }
  /// The header field for the current scope.
  std::uint8_t scope_tag() const { return scopes_.tag(scope_); }
  /// Runs `task` as a handler at the next progress. The caller keeps `scope` from ending before.
  template <class F>
  void run_later(ScopeId scope, F&& task) {
    tasks_[next_tasks_].emplace_back(scope, TaskKind::of_open_scope, std::forward<F>(task));
  }
  /// The same; the engine keeps `scope` open until the task has run.
  template <class F>
  void keep_open_and_run_later(ScopeId scope, F&& task) {
    tasks_[next_tasks_].emplace_back(scope, TaskKind::keeps_open, std::forward<F>(task));
    ++scopes_[scope].continuations;
  }
  template <class F>
  void run_continuation_later(ScopeId scope, F&& task) {
    tasks_[next_tasks_].emplace_back(scope, TaskKind::continuation, std::forward<F>(task));
  }
  void count_created(std::uint64_t messages, ScopeId scope) { scopes_[scope].created += messages; }
  void count_created(std::uint64_t messages) { count_created(messages, scope_); }
  void count_handled(std::uint64_t messages) { scopes_[scope_].handled += messages; }

  // --- the runtime's own small messages: not counted, never held back

  using ControlHandler = std::function<void(std::size_t source, std::span<const std::byte> bytes)>;
  /// Adds a control handler, on every PE in the same order, before anything is sent.
  std::uint16_t add_control(ControlHandler handler);
  /// The value that a control message holds. FormatError if its length differs. A FormatError of a control handler ends
  /// the run, and the failure names the source.
  template <class T>
  static T control_value(std::span<const std::byte> bytes) {
    if (bytes.size() != sizeof(T)) throw_wrong_length(bytes.size(), sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  void send_control(std::size_t target, std::uint16_t control, std::span<const std::byte> bytes);

  Extension& extension(std::size_t index) { return *extensions_[index]; }

  // --- failures

  /// Records the failure on the PE's board, where the supervisor reads it, and throws RunFailed.
  [[noreturn]] void fail(report::FailureKind kind, const std::string& text);
  /// fail() for an invalid frame. `what` states the expected and the actual value.
  [[noreturn]] void refuse(const transport::Arrival& arrival, std::string_view what);
  /// UsageError unless the caller may block.
  void require_may_block(report::Phase what) const;
  void defer_handlers(int by) { deferrals_ += by; }
  bool has_failed() const { return failed_; }

  /// Messages of a scope (the root: all) that wait for a handler, object or epoch that this PE has not made, as text
  /// by handler and source. Empty if there are none.
  std::string undelivered(ScopeId scope) const;
  /// The number of these messages.
  std::uint64_t undeliverable_messages(ScopeId scope) const;

  /// The PE's part of a report: the PEs it waits for, its undelivered messages and their memory. Also updates its
  /// board.
  report::PeReport report();

 private:
  /// A frame with unhandled messages from index `next` on. `memory` owns its copy, if the frame was copied out of its
  /// sender's memory.
  struct Held {
    transport::Arrival arrival;
    std::uint32_t next = 0;
    std::shared_ptr<std::byte> memory;

    std::uint64_t messages() const { return arrival.header.count - next; }
    bool is_in(ScopeId scope) const { return scope == root_scope || scope_of_tag(arrival.header.scope) == scope; }
  };
  struct Entry {
    FrameHandler* handler;
    // Frames that wait for memory at the next hop, by hops left, oldest first. A frame with more hops left must not
    // delay one with fewer.
    std::vector<std::vector<Held>> paused = {};

    bool has_paused(std::uint8_t hops_left) const { return hops_left < paused.size() && !paused[hops_left].empty(); }
    std::vector<Held>& paused_with(std::uint8_t hops_left) {
      if (paused.size() <= hops_left) paused.resize(hops_left + 1u);
      return paused[hops_left];
    }
  };

  /// A removed handler, for error messages.
  struct Removed {
    std::uint32_t number;
    bool was_ready;
    std::string description;
  };

  /// The arrived frames of one round.
  struct Frames {
    unsigned left;  // number of frames that may still be polled
    transport::Arrival arrival = {};
  };

  enum class TaskKind : std::uint8_t {
    of_open_scope,
    keeps_open,    // counts as one of its scope's continuations
    continuation,  // runs when an epoch is done
  };
  /// Runs in its scope, as a handler.
  struct Task {
    template <class F>
    Task(ScopeId s, TaskKind k, F&& f) : scope(s), kind(k), run(std::forward<F>(f)) {}

    ScopeId scope;
    TaskKind kind;
    base::Once run;
  };

  [[noreturn]] static void throw_no_engine();
  [[noreturn]] static void throw_wrong_length(std::size_t bytes, std::size_t expected_bytes);
  bool progress_round(unsigned frames_max);
  bool handle_arrived(unsigned frames_max);
  bool flush_due();
  bool flush_idle(IdleFlush how);
  /// Polls the next frame of a round. False if none has arrived, or the round is over.
  bool poll(Frames& frames) {
    if (frames.left == 0 || !endpoint_->poll(frames.arrival)) return false;
    --frames.left;
    return true;
  }
  void tell_round_ended(const Frames& frames);
  void check_header(const transport::Arrival& arrival);
  FrameHandler* ready_handler(const transport::FrameHeader& header);
  bool handle_run(FrameHandler& handler, Frames& frames);
  static std::string describe_handling(const FrameHandler& handler, const transport::Arrival& arrival);
  void dispatch(transport::Arrival& arrival);
  void dispatch_control(transport::Arrival& arrival);
  void dispatch_messages(Held held);
  FrameHandler::Result run_handler(FrameHandler& handler, Held& held);
  void count_activity() {
    board_->activity.store(board_->activity.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  template <class Body, class Describe>
  void run_as_handler(ScopeId scope, Body body, Describe describe);
  void run_tasks();
  void hold(std::vector<Held>& frames, Held held);
  void hold_until_begun(Held held);
  void copy_to_own_memory(Held& held);
  const Removed* find_removed(std::uint32_t number) const;
  std::string describe_handler(std::uint32_t number) const;
  std::string describe_made_handler(std::uint32_t number) const;
  bool resume_paused();
  bool resume_paused(FrameHandler& handler, std::vector<Held>& paused);
  void replay(std::vector<Held>& held);
  bool replay_later();
  void publish_name(std::uint32_t handler);
  void publish_handler(const transport::FrameHeader& header) {
    board_->last_handler.store({header.handler + 1u, header.source}, std::memory_order_relaxed);
  }
  std::vector<std::uint32_t> waits_for() const;
  std::size_t largest_holder() const;
  std::string name_of_handler(std::uint32_t number) const;
  std::uint64_t outstanding_bytes() const;
  void add_undelivered(std::vector<std::string>& lines) const;
  void add_memory(std::vector<std::string>& lines) const;
  void answer(std::uint32_t wanted);
  void publish_statistics(std::uint32_t request);
  void enter_wait(report::Phase what, std::uint32_t peer);
  void leave_wait();
  void publish_counts();
  void pause();

  Pe pe_;
  transport::Endpoint* endpoint_;
  EngineOptions options_;
  FrameStore store_;
  report::PeBoard* board_;
  base::CreationTable<Entry> handlers_;
  std::deque<Removed> removed_;  // the last 64
  std::vector<ControlHandler> controls_;
  std::vector<Task> tasks_[2];  // used alternately: one runs, the other collects new tasks; both keep their memory
  unsigned next_tasks_ = 0;
  std::vector<std::unique_ptr<Extension>> extensions_;
  ScopeId scope_ = root_scope, handler_scope_ = root_scope;
  bool in_handler_ = false, in_continuation_ = false;
  bool failed_ = false;
  bool waits_polling_ = false;
  bool idle_flush_deferred_ = false;
  bool replay_early_ = false, replay_later_ = false;
  int deferrals_ = 0;
  int open_buffers_ = 0;
  std::size_t paused_frames_ = 0;
  std::vector<Held> early_;       // for handlers that do not exist yet, or are not ready
  std::vector<Held> later_;       // of the next phase, or of an epoch that has not begun on this PE
  std::vector<Held> mismatched_;  // of another signature: until the sender has described its handler
  std::uint32_t answered_ = 0;    // PeBoard::wanted of the last requests answered
  report::PeStatistics of_removed_handlers_;
  unsigned rounds_idle_ = 0;
  std::uint64_t times_idle_ = 1;
  std::int64_t idle_since_ = 0, spin_ns_;  // time that it spins before it sleeps
  std::uint16_t control_describe_ = 0, control_description_ = 0;
  Scopes scopes_;
};

}  // namespace headway::am
