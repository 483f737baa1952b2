// SPDX-License-Identifier: BSD-3-Clause
#include "trace_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

namespace headway::tools {

using model::trace::FrameEnd;
using model::trace::Kind;
using model::trace::NameKind;
using model::trace::Phase;
using model::trace::Record;

const char* name_of(SliceKind kind) {
  static constexpr std::array<const char*, slice_kinds> names = {"program", "phase", "wait", "handler", "mark"};
  return names[std::size_t(kind)];
}

SliceNames::SliceNames(const std::vector<model::trace::NameEntry>& names) {
  for (const model::trace::NameEntry& name : names)
    names_[{name.kind, name.number}] = std::string(name.text, ::strnlen(name.text, sizeof name.text));
}

std::string SliceNames::find(NameKind kind, std::uint32_t number) const {
  const auto found = names_.find({kind, number});
  return found == names_.end() ? "" : found->second;
}

std::string SliceNames::phase(std::uint32_t number) const {
  const std::string name = find(NameKind::phase, number);
  return name.empty() ? fmt::format("phase {}", number) : name;
}

std::string SliceNames::handler(const Record& frame) const {
  std::string name = find(NameKind::handler, frame.handler);
  if (!name.empty()) return name;
  return frame.is_control != 0 ? "control" : fmt::format("handler {}", frame.handler);
}

std::string SliceNames::mark(std::uint32_t number) const {
  std::string name = find(NameKind::mark, number);
  if (!name.empty()) return name;
  return number < std::size(model::trace::mark_names) ? model::trace::mark_names[number]
                                                      : fmt::format("mark {}", number);
}

const char* SliceNames::wait(Phase reason) {
  switch (reason) {
    case Phase::waiting: return "wait for frames";
    case Phase::collective: return "wait in a collective";
    case Phase::epoch: return "wait for an epoch";
    case Phase::quiescing: return "wait for quiescence";
    default: return "wait";
  }
}

const char* flush_reason(const Record& flushed) {
  static constexpr std::array<const char*, 5> reasons = {"unknown", "full", "timeout", "idle", "requested"};
  return reasons[flushed.detail < reasons.size() ? flushed.detail : 0];
}

namespace {

class Slicer {
 public:
  Slicer(const model::trace::PeTrace& trace, std::span<const FrameEnd> ends, std::int64_t shift_ns, SliceSink& sink)
      : trace_(trace), ends_(ends), shift_ns_(shift_ns), sink_(sink), names_(trace.names) {}

  void run() {
    for (const Record& record : trace_.records) {
      at_ = record.time_ns + shift_ns_;
      add(record);
    }
    close_until(0);
  }

 private:
  void add(const Record& record) {
    switch (record.kind) {
      case Kind::begin: return begin_work();
      case Kind::end: return close_until(0);
      case Kind::wait_begins:
        end_handler();
        end_work();
        return push(SliceKind::wait, SliceNames::wait(record.phase));
      case Kind::wait_ends:
        end_handler();
        if (top() == SliceKind::wait) pop();
        return begin_work();
      case Kind::found_none:
      case Kind::polled: return end_handler();
      case Kind::taken: {
        end_handler();
        const FrameEnd& end = ends_[next_end_++];
        return push(SliceKind::handler, names_.handler(record), &end);
      }
      case Kind::posted: {
        if (record.phase != Phase::handling) end_handler();
        begin_due_work();
        sink_.post(at_, ends_[next_end_++], std::exchange(flushed_, {}));
        return;
      }
      case Kind::flushed: flushed_ = {flush_reason(record), record.bytes}; return;
      case Kind::mark: begin_due_work(); return sink_.mark(at_, record, names_.mark(record.handler));
      case Kind::phase_begins:
        end_work();
        push(SliceKind::phase, names_.phase(record.handler));
        return begin_work();
      case Kind::phase_ends:
        end_work();
        if (top() == SliceKind::phase) pop();
        return begin_work();
    }
  }

  SliceKind top() const { return open_.empty() ? SliceKind::mark : open_.back(); }
  bool is_open(SliceKind kind) const { return std::ranges::find(open_, kind) != open_.end(); }

  void push(SliceKind kind, const std::string& name, const FrameEnd* taken = nullptr) {
    begin_due_work();
    open_.push_back(kind);
    sink_.begin(at_, kind, name, taken);
  }
  void pop() {
    open_.pop_back();
    sink_.end(at_);
  }
  void close_until(std::size_t depth) {
    end_work();
    while (open_.size() > depth) pop();
  }

  /// Handlers do not nest: at most one is open, with the phases that it began.
  void end_handler() {
    const auto found = std::ranges::find(open_, SliceKind::handler);
    if (found != open_.end()) close_until(std::size_t(found - open_.begin()));
  }

  /// The slice begins when something lies in it or time has passed.
  void begin_work() {
    if (is_open(SliceKind::program) || is_open(SliceKind::wait) || is_open(SliceKind::handler)) return;
    work_is_due_ = true;
    work_since_ = at_;
  }
  void begin_due_work() {
    if (!std::exchange(work_is_due_, false)) return;
    open_.push_back(SliceKind::program);
    sink_.begin(work_since_, SliceKind::program, "program", nullptr);
  }
  void end_work() {
    if (work_is_due_ && work_since_ == at_) work_is_due_ = false;
    begin_due_work();
    if (top() == SliceKind::program) pop();
  }

  const model::trace::PeTrace& trace_;
  const std::span<const FrameEnd> ends_;
  const std::int64_t shift_ns_;
  SliceSink& sink_;
  const SliceNames names_;
  std::vector<SliceKind> open_;  // innermost last
  std::int64_t at_ = 0;
  std::size_t next_end_ = 0;
  Flushed flushed_;
  bool work_is_due_ = false;
  std::int64_t work_since_ = 0;
};

}  // namespace

void slice(const model::trace::PeTrace& trace, std::span<const FrameEnd> ends, std::int64_t shift_ns, SliceSink& sink) {
  Slicer(trace, ends, shift_ns, sink).run();
}

}  // namespace headway::tools
