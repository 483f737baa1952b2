/// One PE's runtime: dispatches arrived frames to their handlers, makes progress, waits, and detects quiescence.
/// For the layers above; programs use Pe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <headway/report/board.hpp>
#include <headway/am/frame_store.hpp>
#include <headway/am/pe.hpp>
#include <headway/am/scopes.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/base/creation_table.hpp>
#include <headway/base/fiber.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/once.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/endpoint.hpp>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::am {

/// Ends the run: thrown where the failure is first known, caught by run().
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
  in_turn,  // those for other hosts on routes of several hops one by one, a look for messages between any two
};

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Takes the frames of one handler number: the receiving and the sending side of an aggregator.
class FrameHandler {
 public:
  FrameHandler() = default;
  FrameHandler(const FrameHandler&) = delete;
  FrameHandler& operator=(const FrameHandler&) = delete;
  virtual ~FrameHandler() = default;

  enum class Result { done, paused };

  /// Handles the messages of a frame from number `next` on, and sets `next` to the first one not handled.
  /// `paused` only for frames that have hops left: the rest is offered again when there may be room.
  virtual Result handle(const Arrival& arrival, std::uint32_t& next) = 0;

  /// Posts what is in open buffers. Returns whether there was anything.
  virtual bool flush_open(FlushReason reason) = 0;
  /// The same for an idle PE, if the handler wants that. What it leaves for its turn it tells the engine.
  virtual bool flush_idle(IdleFlush how) = 0;
  /// When the oldest open buffer is due, or `never`; and posts those due at `now`.
  virtual std::int64_t due() const = 0;
  virtual bool flush_due(std::int64_t now) = 0;

  /// From now on messages are sent in `scope`. For handlers with buffers: these hold messages of one scope each.
  virtual void enter_scope(ScopeId) {}
  /// flush_open() for the buffers of one scope.
  virtual bool flush_scope(ScopeId, FlushReason) { return false; }

  virtual std::uint16_t signature() const = 0;
  virtual std::string description() const = 0;
  /// False until the user's code is there; frames wait.
  virtual bool ready() const = 0;
  /// Messages that it has taken in but cannot handle before something else exists on this PE.
  /// Those of one scope; the root stands for all.
  virtual std::uint64_t waiting_messages(ScopeId) const { return 0; }
  /// Adds the messages in open buffers to the counts of the PEs that the buffers go to.
  virtual void count_open(std::map<std::uint32_t, std::uint64_t>& /* by_target */) const {}
};

/// State that a layer above keeps per PE, made on every PE in the same order before the program starts.
class Extension {
 public:
  virtual ~Extension() = default;
  /// All extensions of this PE are there, and it has sent nothing yet.
  virtual void begin() {}
  /// Whether something of an epoch goes on here without a message of it, soon: its messages are not to be counted
  /// before.
  virtual bool holds_back(ScopeId) const { return false; }
  /// What goes on without messages that are counted: quiescence and epochs wait for what all PEs have called.
  virtual Calls calls(ScopeId) const { return {}; }
  /// All PEs are quiet, and so many calls are the most that any has made.
  virtual void set_calls_made(std::uint64_t) {}
  /// While the PE waits in a blocking collective: adds those it waits for, if it is this extension's.
  virtual void add_waits_for(std::vector<std::uint32_t>&) const {}
  /// After the last quiescence: what can never end any more, as text; empty if there is nothing.
  virtual std::string unfinished() const { return {}; }
  /// The run is over: destroys what the program has left to it, while all of the engine is still there.
  virtual void end() noexcept {}
};
using MakeExtension = std::unique_ptr<Extension> (*)(Pe&);

/// Registers an extension; for static initialisation. Returns its index.
std::size_t register_extension(MakeExtension make);

/// What a PE does first when it has nothing to do; then it sleeps.
enum class Idle {
  spin,   // for about as long as a wake costs, or 1 ms after a sleep shorter than that: it has a core of its own
  yield,  // there are more PEs than cores
  sleep,  // at once: time passes in no other way
};

struct EngineOptions {
  std::size_t budget_bytes = 0;
  std::size_t spill_bytes = 0;
  Idle idle = Idle::spin;
  AggregationSettings aggregation = {};  // for the layers above, as are the next three
  TransferSettings transfer = {};
  CollectiveStrategy collectives = CollectiveStrategy::best;
  SizeConstants sizes = normal_sizes;
  std::function<void()> while_waiting = [] {};  // called now and then while waiting; throws when the run is over
  std::function<void()> when_failed = [] {};   // called once a failure is recorded: the program may swallow what is thrown
  // Set while the engine lives, for those that share its thread: what the PE would report now.
  std::function<report::PeReport()>* reporter = nullptr;
  // Called when PeBoard::report_wanted has changed, with its value.
  std::function<void(std::uint32_t request, const report::PeReport& report)> give_report = [](std::uint32_t, const report::PeReport&) {
  };
};

class Engine {
 public:
  Engine(Endpoint& endpoint, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// The one of this thread, or fiber. UsageError where there is none.
  static Engine& here() {
    if (fiber_local == nullptr) [[unlikely]]
      throw_no_engine();
    return *static_cast<Engine*>(fiber_local);
  }

  std::size_t id() const { return pe_.id(); }
  std::size_t size() const { return pe_.size(); }
  Pe& pe() { return pe_; }
  Endpoint& endpoint() { return *endpoint_; }
  FrameStore& store() { return store_; }
  report::PeBoard& board() { return *board_; }
  Idle idle() const { return options_.idle; }
  const AggregationSettings& aggregation_settings() const { return options_.aggregation; }
  const TransferSettings& transfer_settings() const { return options_.transfer; }
  CollectiveStrategy collective_strategy() const { return options_.collectives; }
  const SizeConstants& sizes() const { return options_.sizes; }
  std::int64_t now() const { return endpoint_->now(); }
  bool in_handler() const { return in_handler_; }
  /// Whether what runs is a continuation of an epoch; it is a handler as well.
  bool in_continuation() const { return in_continuation_; }
  /// Whether a send may run handlers while it waits.
  bool may_block() const { return !in_handler_ && deferrals_ == 0; }

  // --- progress and waiting

  /// Handles what has arrived, posts what waits, honours timeouts; when there was nothing to do, flushes open buffers.
  /// Returns whether anything moved. UsageError inside a handler.
  bool progress();

  /// How often progress() has found nothing to do, and so flushed what idle PEs flush; at least 1.
  std::uint64_t times_idle() const { return times_idle_; }

  /// One round without the idle flush: for a sender that has just posted a frame.
  void poll_some();

  /// Progress until done() holds; sleeps when nothing moves. `what` and `peer` are for the stall report.
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

  /// The same for what nobody rings for, such as room in another PE's queue: it looks by itself now and then.
  template <class Done>
  void wait_polling(Done done, report::Phase what, std::uint32_t peer) {
    waits_polling_ = true;
    wait_until(std::move(done), what, peer);
    waits_polling_ = false;
  }

  /// For handlers in flush_idle(): buffers are open whose turn comes later, at the latest when the PE waits no longer.
  void defer_idle_flush() { idle_flush_deferred_ = true; }

  /// Posts all open buffers of all handlers. Returns whether there were any.
  bool flush_all(FlushReason reason);

  std::uint64_t quiesce();

  /// The end of a run: a last quiesce(), after which nothing may be left.
  void finish();

  // --- scopes

  Scopes& scopes() { return scopes_; }
  /// Of what is sent now: of the message that a handler handles, or of the main program.
  ScopeId scope() const { return scope_; }
  /// The one in which the handler that runs began, or the root for the main program.
  ScopeId handler_scope() const { return in_handler_ ? handler_scope_ : root_scope; }
  void enter_scope(ScopeId scope);
  void flush_scope(ScopeId scope, FlushReason reason);
  /// Whether frames of it wait to be forwarded.
  bool has_paused(ScopeId scope) const;
  /// Whether an extension goes on in an epoch by itself.
  bool held_back(ScopeId epoch) const;
  /// Of all extensions.
  Calls calls(ScopeId scope) const;
  void set_calls_made(std::uint64_t called_max);
  /// Frames that waited for it are dispatched at the next progress.
  void scope_began() { replay_later_ = !later_.empty(); }

  // --- handlers of counted messages

  /// Returns the number of the handler: collective, in the same order on every PE. No later handler gets that number.
  std::uint32_t add_handler(FrameHandler& handler);
  void remove_handler(std::uint32_t number);
  /// Handlers tell of each buffer that they open (1) or close (-1). While there are none they are not asked to flush.
  void count_open_buffers(int by) { open_buffers_ += by; }
  /// The handler became ready: frames that waited for it are dispatched at the next progress.
  void handler_ready() { replay_early_ = !early_.empty(); }
  /// Fills the fields of a message frame's header that do not depend on its content.
  void stamp(FrameHeader& header, std::uint32_t handler, std::uint16_t signature, std::uint8_t hops_left,
             ScopeId scope) const {
    header.source = std::uint16_t(id());
    header.handler = handler;
    header.signature = signature;
    header.kind = std::uint8_t(FrameKind::messages);
    header.hops_left = hops_left;
    header.scope = scopes_.tag(scope);
  }
  /// What a header says of the current scope.
  std::uint8_t scope_tag() const { return scopes_.tag(scope_); }
  /// Runs `task` at the next progress, as a handler, in a scope that cannot be done before.
  template <class F>
  void run_later(ScopeId scope, F&& task) {
    tasks_[next_tasks_].emplace_back(scope, TaskKind::of_open_scope, std::forward<F>(task));
  }
  /// The same in a scope that could be done before, and stays open until the task runs.
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
  /// Adds a control handler: every PE in the same order, before anything is sent.
  std::uint16_t add_control(ControlHandler handler);
  /// The value that a control message holds. FormatError if it has another length; that, as all a control handler
  /// throws, ends the run and names the source.
  template <class T>
  static T control_value(std::span<const std::byte> bytes) {
    if (bytes.size() != sizeof(T)) throw FormatError("it does not have the length of what it carries");
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  void send_control(std::size_t target, std::uint16_t control, std::span<const std::byte> bytes);

  Extension& extension(std::size_t index) { return *extensions_[index]; }

  // --- failures

  /// Records the failure where the supervisor finds it, and throws RunFailed.
  [[noreturn]] void fail(report::FailureKind kind, const std::string& text);
  /// fail() for a frame that cannot be what its header says.
  [[noreturn]] void refuse(const Arrival& arrival, const char* what);
  /// UsageError unless the caller may block.
  void require_may_block(report::Phase what) const;
  void defer_handlers(int by) { deferrals_ += by; }
  bool has_failed() const { return failed_; }

  /// Messages of a scope (all for the root) that wait for what does not exist on this PE, by handler and source, as
  /// text; empty if there are none.
  std::string undelivered(ScopeId scope) const;
  /// How many they are.
  std::uint64_t undeliverable_messages(ScopeId scope) const;

  /// What the PE waits for and what it holds, for the stall report; brings its board up to date.
  report::PeReport report();

 private:
  /// A frame, from message `next` on. `memory` holds it where it is no longer in its sender's.
  struct Held {
    Arrival arrival;
    std::uint32_t next = 0;
    std::shared_ptr<std::byte> memory;

    std::uint64_t messages() const { return arrival.header.count - next; }
    bool is_in(ScopeId scope) const { return scope == root_scope || scope_of_tag(arrival.header.scope) == scope; }
  };
  struct Entry {
    FrameHandler* handler;
    // Frames to forward that found no room, by hops left and then oldest first: one that waits for a hop must not stand
    // before one that has fewer to go.
    std::vector<std::vector<Held>> paused = {};

    bool has_paused(std::uint8_t hops_left) const { return hops_left < paused.size() && !paused[hops_left].empty(); }
    std::vector<Held>& paused_with(std::uint8_t hops_left) {
      if (paused.size() <= hops_left) paused.resize(hops_left + 1u);
      return paused[hops_left];
    }
  };

  /// A handler that was removed, for messages to people.
  struct Removed {
    std::uint32_t number;
    bool was_ready;
    std::string description;
  };

  /// Of one round.
  struct Frames {
    unsigned left;  // how many more may be taken
    Arrival arrival = {};
  };

  enum class TaskKind : std::uint8_t {
    of_open_scope,
    keeps_open,    // counts among its scope's continuations
    continuation,  // of the end of an epoch
  };
  /// Runs, as a handler, in its scope.
  struct Task {
    template <class F>
    Task(ScopeId s, TaskKind k, F&& f) : scope(s), kind(k), run(std::forward<F>(f)) {}

    ScopeId scope;
    TaskKind kind;
    Once run;
  };

  [[noreturn]] static void throw_no_engine();
  bool progress_round(unsigned frames_max);
  bool handle_arrived(unsigned frames_max);
  bool flush_due();
  bool flush_idle(IdleFlush how);
  /// The next arrival of a round. False if there is none, or there have been enough.
  bool poll(Frames& frames) {
    if (frames.left == 0 || !endpoint_->poll(frames.arrival)) return false;
    --frames.left;
    return true;
  }
  void check_header(const Arrival& arrival);
  FrameHandler* ready_handler(const FrameHeader& header);
  bool handle_run(FrameHandler& handler, Frames& frames);
  static std::string describe_handling(const FrameHandler& handler, const Arrival& arrival);
  void dispatch(Arrival& arrival);
  void dispatch_control(Arrival& arrival);
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
  void publish_handler(const FrameHeader& header) {
    board_->last_handler.store({header.handler + 1u, header.source}, std::memory_order_relaxed);
  }
  std::vector<std::uint32_t> waits_for() const;
  std::size_t largest_holder() const;
  std::uint64_t outstanding_bytes() const;
  std::string name_of_handler(std::uint32_t number) const;
  void add_undelivered(std::vector<std::string>& lines) const;
  void add_memory(std::vector<std::string>& lines) const;
  void enter_wait(report::Phase what, std::uint32_t peer);
  void leave_wait();
  void publish_counts();
  void pause();

  Pe pe_;
  Endpoint* endpoint_;
  EngineOptions options_;
  FrameStore store_;
  report::PeBoard* board_;
  CreationTable<Entry> handlers_;
  std::deque<Removed> removed_;  // the last ones
  std::vector<ControlHandler> controls_;
  std::vector<Task> tasks_[2];  // in turn, so that both keep their memory: one runs, the next takes what comes meanwhile
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
  std::vector<Held> early_;         // for handlers that do not exist yet
  std::vector<Held> later_;         // of the next phase, or of an epoch that has not begun here
  std::vector<Held> mismatched_;       // of another signature: until the sender has said what it meant
  std::uint32_t report_given_ = 0;  // the number of the last request answered
  unsigned rounds_idle_ = 0;
  std::uint64_t times_idle_ = 1;
  std::int64_t idle_since_ = 0, spin_ns_;  // how long it looks on before it sleeps
  std::uint16_t control_describe_ = 0, control_description_ = 0;
  Scopes scopes_;
};

}  // namespace headway::am
