// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/observer.hpp>
#include <utility>

namespace headway {

bool Pe::progress() { return engine_->progress(); }
std::uint64_t Pe::quiesce() { return engine_->quiesce(); }

DeferHandlers::DeferHandlers(Pe& pe) : pe_(&pe) { pe.engine().defer_handlers(1); }
DeferHandlers::~DeferHandlers() { pe_->engine().defer_handlers(-1); }

}  // namespace headway

namespace headway::am {
namespace {

constexpr unsigned frames_per_round = 16;
constexpr std::size_t removed_max = 64;  // descriptions of removed handlers that are kept

/// Never destroyed: when one PE's thread calls exit(), other PEs may still be starting.
std::vector<MakeExtension>& extension_makers() {
  static auto& makers = *new std::vector<MakeExtension>;
  return makers;
}

}  // namespace

std::size_t register_extension(MakeExtension make) {
  extension_makers().push_back(make);
  return extension_makers().size() - 1;
}

Engine::Engine(transport::Endpoint& endpoint, EngineOptions options)
    : pe_(*this, endpoint.id(), endpoint.size()),
      endpoint_(&endpoint),
      options_(std::move(options)),
      store_(endpoint, options_.budget_bytes, options_.spill_bytes),
      board_(&report::board_of(endpoint, id())),
      spin_ns_(std::int64_t(endpoint.costs().wake_ns)),
      scopes_(*this) {
  control_description_ = add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const auto text = bytes.subspan(std::min(bytes.size(), sizeof(std::uint32_t)));
    const auto handler = control_value<std::uint32_t>(bytes.first(bytes.size() - text.size()));
    const std::string theirs(reinterpret_cast<const char*>(text.data()), text.size());
    const auto unprintable = std::ranges::find_if(theirs, [](unsigned char c) { return c < ' '; });
    if (unprintable != theirs.end()) {
      throw FormatError(fmt::format("its text has byte {:#04x} at offset {}, and bytes below 0x20 are not allowed",
                                    static_cast<unsigned char>(*unprintable), unprintable - theirs.begin()));
    }
    const std::string mine = describe_made_handler(handler);
    fail(report::FailureKind::failed,
         fmt::format("aggregators were made in different order: number {} is {} on PE {} and {} on PE {}; make them in "
                     "the same order, with the same types, topologies and buffers, on every PE",
                     handler, mine, id(), theirs, source));
  });
  control_describe_ = add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const std::string mine = describe_made_handler(control_value<std::uint32_t>(bytes));
    const std::string answer = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + mine;
    send_control(source, control_description_, std::as_bytes(std::span(answer)));
  });
  base::fiber_local = this;
  for (const MakeExtension make : extension_makers()) extensions_.push_back(make(pe_));
  for (const auto& extension : extensions_) extension->begin();
  if (options_.reporter != nullptr) *options_.reporter = [this] { return report(); };
}

Engine::~Engine() {
  for (const auto& extension : extensions_) extension->end();
  for (std::vector<Task>& tasks : tasks_) tasks.clear();  // tasks may use extensions
  if (options_.reporter != nullptr) *options_.reporter = nullptr;
  if (base::fiber_local == this) base::fiber_local = nullptr;
}

void Engine::throw_no_engine() { throw UsageError("this thread is not a PE's, or its run has ended"); }

void Engine::throw_wrong_length(std::size_t bytes, std::size_t expected_bytes) {
  throw FormatError(fmt::format("it has {}, and {} are expected", base::counted(bytes, "byte"), expected_bytes));
}

// --- progress

bool Engine::progress() {
  if (in_handler_) {
    throw UsageError("progress() inside a handler: handlers run one at a time; return and continue in another handler");
  }
  if (deferrals_ != 0) return false;
  const bool moved = progress_round(store_.spilling() ? 1 : frames_per_round);
  const bool in_waves = scopes_.advance();
  // A wave alone does not count as movement: waves repeat while a message waits, possibly in an open buffer.
  if (moved) return flush_due(), true;
  ++times_idle_;
  bool flushed = false;
  const report::Phase phase = board_->phase.load(std::memory_order_relaxed);
  if (open_buffers_ != 0) {  // flush_idle() needs no clock
    // If the main program does not wait, its next progress() may be late: post all.
    flushed = flush_idle(phase == report::Phase::computing ? IdleFlush::all : IdleFlush::in_turn);
    flushed |= flush_due();
  }
  // Open buffers may hold the frame memory that a waiting send or frame needs.
  if (!flushed && (phase == report::Phase::sending || paused_frames_ != 0 || store_.queued())) {
    flushed = flush_all(FlushReason::full);
  }
  return flushed || in_waves;
}

void Engine::poll_some() {
  progress_round(store_.spilling() ? 1 : frames_per_round);
  flush_due();
  scopes_.advance();
}

bool Engine::progress_round(unsigned frames_max) {
  if (const std::uint32_t wanted = board_->wanted.load(std::memory_order_relaxed); wanted != answered_) [[unlikely]]
    answer(wanted);
  bool any = store_.queued() && store_.drain();
  any |= handle_arrived(frames_max);
  enter_scope(scopes_.of_main_program());
  return any;
}

bool Engine::handle_arrived(unsigned frames_max) {
  bool any = false;
  if (!tasks_[next_tasks_].empty()) {
    run_tasks();
    any = true;
  }
  // Before new frames, which may have to wait behind these. After tasks, which may make the handlers that these need.
  if (replay_later_) {
    replay_later_ = false;
    any |= replay_later();
  }
  if (replay_early_) {
    replay_early_ = false;
    replay(early_);
    any = true;
  }
  if (paused_frames_ != 0) any |= resume_paused();
  Frames frames{.left = frames_max};
  try {
    for (bool arrived = poll(frames); arrived; any = true) {
      check_header(frames.arrival);
      if (FrameHandler* const handler = ready_handler(frames.arrival.header)) {
        arrived = handle_run(*handler, frames);
      } else {
        dispatch(frames.arrival);
        arrived = poll(frames);
      }
    }
  } catch (const transport::InvalidFrame& error) {
    fail(report::FailureKind::failed, error.what());
  }
  if (transport::is_observed()) [[unlikely]]
    tell_round_ended(frames);
  board_->frames_received.store(board_->frames_received.load(std::memory_order_relaxed) + frames_max - frames.left,
                                std::memory_order_relaxed);
  return any || !tasks_[next_tasks_].empty();  // poll() may have added tasks
}

/// After a full round no poll follows that would tell the endpoint that the last handler has ended.
void Engine::tell_round_ended(const Frames& frames) {
  if (frames.left != 0) return;
  if (auto* const observer = endpoint_->observer()) observer->end_handler();
}

bool Engine::flush_due() {
  if (open_buffers_ == 0) return false;
  std::int64_t due = never;
  handlers_.for_each([&](std::uint32_t, Entry& entry) { due = std::min(due, entry.handler->due()); });
  if (due == never) return false;
  const std::int64_t time = now();
  bool any = false;
  if (due <= time) {
    handlers_.for_each([&](std::uint32_t, Entry& entry) { any |= entry.handler->flush_due(time); });
  }
  return any;
}

bool Engine::flush_idle(IdleFlush how) {
  idle_flush_deferred_ = false;
  bool any = false;
  handlers_.for_each([&](std::uint32_t, Entry& entry) { any |= entry.handler->flush_idle(how); });
  return any;
}

bool Engine::flush_all(FlushReason reason) {
  if (open_buffers_ == 0) return false;
  bool any = false;
  handlers_.for_each([&](std::uint32_t, Entry& entry) { any |= entry.handler->flush_open(reason); });
  return any;
}

void Engine::enter_scope(ScopeId scope) {
  if (scope == scope_) return;
  scope_ = scope;
  handlers_.for_each([scope](std::uint32_t, Entry& entry) { entry.handler->enter_scope(scope); });
}

void Engine::flush_scope(ScopeId scope, FlushReason reason) {
  handlers_.for_each([&](std::uint32_t, Entry& entry) { entry.handler->flush_scope(scope, reason); });
}

void Engine::check_header(const transport::Arrival& arrival) {
  const transport::FrameHeader& header = arrival.header;
  if (header.source >= size())
    refuse(arrival, fmt::format("its source is PE {}, and the run has PEs 0 to {}", header.source, size() - 1));
  if (header.kind > std::uint8_t(transport::FrameKind::control)) {
    refuse(arrival,
           fmt::format("its kind is {}, and kinds are 0 to {}", header.kind, int(transport::FrameKind::control)));
  }
  if (scope_of_tag(header.scope) == root_scope && header.scope > 1) {
    refuse(arrival, fmt::format("its scope field is {}, and allowed for the root are 0 and 1", header.scope));
  }
  // It may have to wait for memory at the next hop. Memory of a frame sent by value lasts only until the next poll.
  if (header.hops_left != 0 && arrival.owned == 0) {
    refuse(arrival, fmt::format("it has {} left, and a frame sent by value must have 0",
                                base::counted(header.hops_left, "hop")));
  }
}

/// The handler of a message frame without hops left. nullptr if the frame cannot be handled now.
FrameHandler* Engine::ready_handler(const transport::FrameHeader& header) {
  if (header.kind != std::uint8_t(transport::FrameKind::messages) || header.hops_left != 0 ||
      !scopes_.takes(header.scope)) {
    return nullptr;
  }
  const Entry* const entry = handlers_.find(header.handler);
  if (entry == nullptr || !entry->handler->ready() || entry->handler->signature() != header.signature) return nullptr;
  return entry->handler;
}

/// Handles an arrived frame, and the following ones for the same handler and scope, in one call: work before and
/// after handlers is done once. Returns whether `frames` holds another frame, which is for another handler or scope.
bool Engine::handle_run(FrameHandler& handler, Frames& frames) {
  transport::Arrival& arrival = frames.arrival;
  const std::uint64_t handling = transport::handling_of(arrival.header);
  publish_name(arrival.header.handler);
  bool further = false;
  auto run = [&] {
    do {
      publish_handler(arrival.header);
      std::uint32_t next = 0;
      handler.handle(arrival, next);
      if (arrival.owned != 0) endpoint_->release(arrival);
      further = poll(frames);
    } while (further && transport::handling_of(arrival.header) == handling &&
             transport::source_at_last_hop(arrival.header) < size());
  };
  run_as_handler(scope_of_tag(arrival.header.scope), run, [&] { return describe_handling(handler, arrival); });
  count_activity();
  return further;
}

void Engine::dispatch(transport::Arrival& arrival) {
  const transport::FrameHeader& header = arrival.header;
  if (header.kind == std::uint8_t(transport::FrameKind::control)) {
    dispatch_control(arrival);
  } else if (!scopes_.takes(header.scope)) {
    hold_until_begun({arrival, 0, nullptr});
  } else {
    dispatch_messages({arrival, 0, nullptr});
  }
}

void Engine::dispatch_control(transport::Arrival& arrival) {
  if (arrival.header.handler >= controls_.size()) {
    refuse(arrival, fmt::format("control messages have numbers 0 to {}", controls_.size() - 1));
  }
  try {
    controls_[arrival.header.handler](arrival.header.source, {arrival.payload, arrival.header.payload_bytes});
  } catch (const FormatError& error) {
    refuse(arrival, error.what());
  }
  endpoint_->release(arrival);
}

void Engine::dispatch_messages(Held held) {
  const transport::FrameHeader& header = held.arrival.header;
  const std::uint32_t number = header.handler;
  Entry* const entry = handlers_.find(number);
  const Removed* const removed = entry == nullptr ? find_removed(number) : nullptr;
  const bool waits_for_on = entry != nullptr ? !entry->handler->ready() : removed != nullptr && !removed->was_ready;
  if (!handlers_.was_made(number) || waits_for_on) return hold(early_, std::move(held));
  if (entry == nullptr) {
    fail(report::FailureKind::undelivered,
         fmt::format("{} from PE {} arrived on PE {} for {}, which was destroyed there: quiesce() before destroying an "
                     "aggregator",
                     base::counted(header.count, "message"), header.source, id(), describe_handler(number)));
  }
  if (header.signature != entry->handler->signature()) {
    send_control(header.source, control_describe_, std::as_bytes(std::span(&number, 1)));
    return hold(mismatched_, std::move(held));
  }
  if (header.hops_left == 0 || !entry->has_paused(header.hops_left)) {
    if (run_handler(*entry->handler, held) == FrameHandler::Result::done) return endpoint_->release(held.arrival);
  }
  std::vector<Held>& paused = entry->paused_with(header.hops_left);
  hold(paused, std::move(held));
  ++paused_frames_;
}

/// Runs user code. An exception ends the run; describe() names the place.
template <class Body, class Describe>
void Engine::run_as_handler(ScopeId scope, Body body, Describe describe) {
  struct InHandler {
    Engine& engine;
    const report::Phase before = engine.board_->phase.load(std::memory_order_relaxed);

    explicit InHandler(Engine& e) : engine(e) {
      engine.in_handler_ = true;
      // a PE in a long handler has not stalled
      engine.board_->phase.store(report::Phase::handling, std::memory_order_relaxed);
    }
    ~InHandler() {
      engine.board_->phase.store(before, std::memory_order_relaxed);
      engine.in_handler_ = false;
    }
  };
  enter_scope(scope);
  scopes_[scope].active = true;
  handler_scope_ = scope;
  const InHandler in_handler(*this);
  try {
    body();
  } catch (const RunFailed&) {
    throw;
  } catch (const transport::InvalidFrame&) {  // of the transport, not of the handler
    throw;
  } catch (const std::exception& error) {
    fail(report::FailureKind::failed, fmt::format("{} threw: {}", describe(), error.what()));
  } catch (...) {
    fail(report::FailureKind::failed, fmt::format("{} threw something that is no std::exception", describe()));
  }
}

void Engine::publish_name(std::uint32_t handler) {
  if (handler < report::handler_names_max && board_->handler_names[handler][0] == 0) [[unlikely]] {
    name_of_handler(handler).copy(board_->handler_names[handler], sizeof board_->handler_names[0] - 1);
  }
}

std::string Engine::describe_handling(const FrameHandler& handler, const transport::Arrival& arrival) {
  return fmt::format("the handler of {} for a message in a frame from PE {}", handler.description(),
                     arrival.header.source);
}

FrameHandler::Result Engine::run_handler(FrameHandler& handler, Held& held) {
  publish_name(held.arrival.header.handler);
  publish_handler(held.arrival.header);
  const std::uint32_t before = held.next;
  FrameHandler::Result result = FrameHandler::Result::done;
  run_as_handler(
      scope_of_tag(held.arrival.header.scope), [&] { result = handler.handle(held.arrival, held.next); },
      [&] { return describe_handling(handler, held.arrival); });
  if (result == FrameHandler::Result::done || held.next != before) count_activity();
  return result;
}

void Engine::run_tasks() {
  const transport::Working working(transport::observer_of(*endpoint_), transport::Observer::Work::handlers);
  struct Running {  // an exception of a task ends the run
    Engine& engine;
    std::vector<Task>& tasks;
    ~Running() {
      engine.in_continuation_ = false;
      tasks.clear();
    }
  } const running{*this, tasks_[next_tasks_]};
  next_tasks_ ^= 1;
  for (Task& task : running.tasks) {
    in_continuation_ = task.kind == TaskKind::continuation;
    if (task.kind == TaskKind::keeps_open) --scopes_[task.scope].continuations;
    run_as_handler(
        task.scope, [&task] { task.run(); },
        [this] { return std::string(in_continuation_ ? "a continuation of an epoch" : "a deferred call"); });
  }
}

// --- handlers

std::uint32_t Engine::add_handler(FrameHandler& handler) { return handlers_.add({&handler}); }

void Engine::remove_handler(std::uint32_t number) {
  Entry& entry = *handlers_.find(number);
  if (removed_.size() == removed_max) removed_.pop_front();
  removed_.push_back({number, entry.handler->ready(), entry.handler->description()});
  entry.handler->add_statistics(of_removed_handlers_);
  for (std::vector<Held>& paused : entry.paused) {
    paused_frames_ -= paused.size();
    for (Held& held : paused) early_.push_back(std::move(held));  // the next quiesce() reports these messages
  }
  handlers_.remove(number);
}

/// nullptr for a handler that exists, or was removed long ago.
const Engine::Removed* Engine::find_removed(std::uint32_t number) const {
  const auto found = std::ranges::find(removed_, number, &Removed::number);
  return found == removed_.end() ? nullptr : &*found;
}

std::string Engine::describe_handler(std::uint32_t number) const {
  if (const Entry* const entry = handlers_.find(number)) return entry->handler->description();
  if (const Removed* const removed = find_removed(number)) return removed->description;
  return fmt::format("aggregator number {}", number);
}

std::uint16_t Engine::add_control(ControlHandler handler) {
  controls_.push_back(std::move(handler));
  return std::uint16_t(controls_.size() - 1);
}

void Engine::send_control(std::size_t target, std::uint16_t control, std::span<const std::byte> bytes) {
  auto fill = [&](transport::Frame& frame) {
    frame.header = {};
    frame.header.payload_bytes = std::uint32_t(bytes.size());
    frame.header.count = 1;
    frame.header.source = std::uint16_t(id());
    frame.header.handler = control;
    frame.header.kind = std::uint8_t(transport::FrameKind::control);
    if (!bytes.empty()) std::memcpy(frame.payload(), bytes.data(), bytes.size());
  };
  transport::SmallFrame small;
  if (bytes.size() <= std::min(transport::by_value_bytes_most, endpoint_->by_value_bytes_max())) {
    fill(small.frame);
    if (store_.try_post_by_value(target, small.frame)) return;
  }
  const OpenFrame open = store_.claim_for_control(target, transport::frame_overhead + bytes.size());
  fill(*open.frame);
  store_.post(target, open);
}

// --- failures

void Engine::fail(report::FailureKind kind, const std::string& text) {
  // Only the first failure is recorded. A program that catches RunFailed may cause more.
  if (!std::exchange(failed_, true)) {
    const std::size_t length = std::min(text.size(), sizeof board_->failure_text - 1);
    std::memcpy(board_->failure_text, text.data(), length);
    board_->failure_text[length] = 0;
    board_->failure.store(kind, std::memory_order_release);
    options_.when_failed();
  }
  throw RunFailed(kind, text);
}

/// FormatError if this PE has not made the handler.
std::string Engine::describe_made_handler(std::uint32_t number) const {
  if (!handlers_.was_made(number)) {
    throw FormatError(fmt::format("it names aggregator number {}, which PE {} has not made", number, id()));
  }
  return describe_handler(number);
}

void Engine::refuse(const transport::Arrival& arrival, std::string_view what) {
  const transport::FrameHeader& header = arrival.header;
  std::string about;
  if (header.kind == std::uint8_t(transport::FrameKind::control)) {
    about = fmt::format("a control message with number {}", header.handler);
  } else {
    about =
        fmt::format("a frame of {} for {}", base::counted(header.count, "message"), describe_handler(header.handler));
  }
  fail(report::FailureKind::failed,
       fmt::format("{} from PE {} to PE {} is not valid: {}", about, header.source, id(), what));
}

}  // namespace headway::am
