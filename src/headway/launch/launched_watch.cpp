// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/base/serialize.hpp>
#include <headway/launch/launched_watch.hpp>
#include <headway/report/process_record.hpp>
#include <utility>

namespace headway::launch {
namespace {

constexpr std::int64_t round_ns_min = 20'000'000, round_ns_max = 1'000'000'000;
constexpr std::int64_t report_timeout_ns = 5'000'000'000;

}  // namespace

LaunchedWatch::LaunchedWatch(local::Segment& segment, wire::Port& port, std::size_t process,
                             const std::vector<std::size_t>& leaders, std::chrono::nanoseconds limit)
    : segment_(&segment),
      port_(&port),
      process_(process),
      processes_((port.pes() + port.pes_per_process() - 1) / port.pes_per_process()),
      leaders_(leaders),
      leads_(std::ranges::find(leaders, process) != leaders.end()),
      limit_(limit),
      reporter_(segment),
      views_(processes_),
      statuses_(processes_) {}

LaunchedWatch::Message LaunchedWatch::state(Kind kind, std::uint32_t number) const {
  Message message{kind, number, 0, 0, 0, 0};
  for (std::size_t pe = 0; pe < segment_->header().pes; ++pe) {
    const report::PeBoard& board = report::board_of(*segment_, pe);
    const report::Phase phase = board.phase.load(std::memory_order_relaxed);
    message.activity += board.activity.load(std::memory_order_relaxed);
    message.waits |= std::uint32_t(waits(phase));
    message.works |= std::uint32_t(!waits(phase) && phase != report::Phase::finished);
  }
  return message;
}

void LaunchedWatch::send(std::size_t process, const Message& message) {
  port_->send_service(process, std::as_bytes(std::span(&message, 1)));
}

std::optional<LaunchedWatch::Page> LaunchedWatch::step(std::int64_t now) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  for (const wire::Port::Service& service : port_->take_services()) receive(service, now);
  if (!leads_) return std::nullopt;
  const std::uint64_t asked = segment_->header().reports_asked.load(std::memory_order_relaxed);
  if (std::exchange(signals_seen_, asked) != asked) send(0, {Kind::want_report, 0, 0, 0, 0, 0});
  if (reporter_.busy()) {
    if (const auto views = reporter_.step(now)) send_views(*views);
  }
  if (process_ != 0) return std::nullopt;
  begin_round(now);
  return step_report(now);
}

void LaunchedWatch::receive(const wire::Port::Service& service, std::int64_t now) {
  Message message;
  if (service.bytes.size() < sizeof message) return;
  std::memcpy(&message, service.bytes.data(), sizeof message);
  switch (message.kind) {
    case Kind::ask: return send(0, state(Kind::answer, message.number));
    case Kind::answer:
      if (process_ != 0 || message.number != round_) return;
      ++answers_;
      activity_ += message.activity;
      waits_ |= message.waits != 0;
      works_ |= message.works != 0;
      if (answers_ == leaders_.size()) receive_round(now);
      return;
    case Kind::want_report:
      if (process_ == 0 && !collecting_) begin_report(now, false);
      return;
    case Kind::ask_report:
      report_number_ = message.number;
      if (reporter_.busy()) return;
      return reporter_.begin(
          now,
          [this](std::size_t process) {
            const std::size_t first_pe = process * segment_->header().pes_per_process;
            return pid_t(report::process_record_of(*segment_, first_pe).pid.load(std::memory_order_acquire));
          },
          message.waits != 0);
    case Kind::report: {
      if (process_ != 0 || !collecting_ || !views_[service.process].empty()) return;
      ByteReader reader(std::span(service.bytes).subspan(sizeof message));
      deserialize(reader, views_[service.process]);
      ++reports_;
      return;
    }
    case Kind::finished: return receive_end(service.process, message.status);
    case Kind::all_finished: status_of_all_ = message.status; return;
  }
}

void LaunchedWatch::finish(int status) { send(0, {Kind::finished, 0, 0, 0, 0, status}); }

// --- process 0

void LaunchedWatch::receive_end(std::size_t process, int status) {
  statuses_[process] = status;
  if (++finished_ != processes_) return;
  const auto failing = std::ranges::find_if(statuses_, [](std::int32_t one) { return one != 0; });
  const int all = failing == statuses_.end() ? 0 : *failing;
  for (std::size_t other = 0; other < processes_; ++other) send(other, {Kind::all_finished, 0, 0, 0, 0, all});
}

/// Asks only while nothing moves in this process. Most runs never ask.
void LaunchedWatch::begin_round(std::int64_t now) {
  if (limit_.count() == 0) return;
  const std::int64_t interval = std::clamp(limit_.count() / 8, round_ns_min, round_ns_max);
  if (now - round_at_ < interval) return;
  round_at_ = now;
  const Message own = state(Kind::answer, 0);
  const bool moves = std::exchange(own_activity_, own.activity) != own.activity || own.works != 0;
  // A missing answer means that a process works.
  if (moves || answers_ != leaders_.size()) still_since_ = now;
  if (moves) {
    answers_ = leaders_.size();
    return;
  }
  ++round_;
  answers_ = 0;
  activity_ = 0;
  waits_ = works_ = false;
  for (const std::size_t leader : leaders_) send(leader, {Kind::ask, round_, 0, 0, 0, 0});
}

void LaunchedWatch::receive_round(std::int64_t now) {
  if (works_ || !waits_ || activity_ != activity_before_) still_since_ = now;
  activity_before_ = activity_;
  if (now - still_since_ >= limit_.count() && !collecting_) begin_report(now, true);
}

void LaunchedWatch::begin_report(std::int64_t now, bool stalled) {
  collecting_ = true;
  collecting_on_stall_ = stalled;
  collect_until_ = now + report_timeout_ns;
  reports_ = 0;
  for (std::vector<report::PeView>& views : views_) views.clear();
  ++report_number_;
  for (const std::size_t leader : leaders_) {
    send(leader, {Kind::ask_report, report_number_, 0, stalled, 0, 0});
  }
}

void LaunchedWatch::send_views(const std::vector<report::PeView>& views) {
  std::vector<report::PeView> shown = views;
  const auto message_of = [&] {
    const Message head{Kind::report, report_number_, 0, 0, 0, 0};
    std::vector<std::byte> bytes(sizeof head + serialized_bytes(shown));
    std::memcpy(bytes.data(), &head, sizeof head);
    serialize(bytes.data() + sizeof head, shown);
    return bytes;
  };
  std::vector<std::byte> bytes = message_of();
  if (bytes.size() > port_->service_bytes_max()) {  // many PEs: keep only the first line of each
    for (report::PeView& view : shown) {
      view.stack.clear();
      view.report.lines.resize(std::min<std::size_t>(view.report.lines.size(), 1));
    }
    bytes = message_of();
  }
  if (bytes.size() <= port_->service_bytes_max()) port_->send_service(0, bytes);
}

std::optional<LaunchedWatch::Page> LaunchedWatch::step_report(std::int64_t now) {
  if (!collecting_ || (reports_ < leaders_.size() && now < collect_until_)) return std::nullopt;
  collecting_ = false;
  const std::size_t pes = port_->pes();
  std::vector<report::PeView> all;
  for (std::size_t i = 0; i < leaders_.size(); ++i) {
    const std::size_t next_pe = i + 1 == leaders_.size() ? pes : leaders_[i + 1] * port_->pes_per_process();
    const std::size_t expected = next_pe - leaders_[i] * port_->pes_per_process();
    std::vector<report::PeView>& views = views_[leaders_[i]];
    while (views.size() < expected) {
      report::PeView& view = views.emplace_back();
      view.phase = report::Phase::computing;
      view.state = "does not answer";
    }
    for (report::PeView& view : views) all.push_back(std::move(view));
  }
  if (collecting_on_stall_ && still_since_ + limit_.count() > now) return std::nullopt;  // the run has moved meanwhile
  return Page{
      collecting_on_stall_,
      stall_page(collecting_on_stall_ ? fmt::format("nothing has moved for {:.3g} s though work is pending:",
                                                    double(now - still_since_) * 1e-9)
                                      : fmt::format("a report on {}, asked for by a signal:", base::counted(pes, "PE")),
                 all)};
}

}  // namespace headway::launch
