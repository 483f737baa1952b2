// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/counted_run.hpp>
#include <headway/launch/identity.hpp>
#include <headway/launch/json_text.hpp>
#include <system_error>
#include <utility>

namespace headway::launch {
namespace {

count::Activity activity_of(const report::PeBoard& board) {
  const report::Phase phase = board.phase.load(std::memory_order_relaxed);
  switch (phase) {
    case report::Phase::handling: return count::Activity::handling;
    case report::Phase::sending: return count::Activity::sending;
    case report::Phase::quiescing:
    case report::Phase::epoch: return count::Activity::waiting_all;
    default: return waits(phase) ? count::Activity::waiting : count::Activity::working;
  }
}

struct Named {
  const char* name;
  std::uint64_t count::PeCounts::*value;
};
constexpr Named of_pe[] = {{"frames_sent", &count::PeCounts::frames_sent},
                           {"bytes_sent", &count::PeCounts::bytes_sent},
                           {"frames_received", &count::PeCounts::frames_received},
                           {"bytes_received", &count::PeCounts::bytes_received},
                           {"control_frames", &count::PeCounts::control_frames},
                           {"messages_in_frames", &count::PeCounts::messages_in_frames},
                           {"receivers", &count::PeCounts::receivers},
                           {"retries", &count::PeCounts::retries},
                           {"bursts", &count::PeCounts::bursts},
                           {"burst_frames_max", &count::PeCounts::burst_frames_max},
                           {"burst_ns", &count::PeCounts::burst_ns},
                           {"turns", &count::PeCounts::turns},
                           {"reads", &count::PeCounts::reads},
                           {"turns_of_all", &count::PeCounts::turns_of_all},
                           {"turns_of_handlers", &count::PeCounts::turns_of_handlers},
                           {"waits", &count::PeCounts::waits},
                           {"waits_of_all", &count::PeCounts::waits_of_all},
                           {"waiting_ns", &count::PeCounts::waiting_ns},
                           {"barriers", &count::PeCounts::barriers},
                           {"bulk", &count::PeCounts::bulk},
                           {"run_ns", &count::PeCounts::run_ns},
                           {"cpu_ns", &count::PeCounts::cpu_ns},
                           {"hardware_errno", &count::PeCounts::hardware_errno}};

struct NamedOfAggregators {
  const char* name;
  std::uint64_t count::AggregatorCounts::*value;
};
constexpr NamedOfAggregators of_aggregators[] = {{"messages", &count::AggregatorCounts::messages},
                                                 {"payload_bytes", &count::AggregatorCounts::payload_bytes},
                                                 {"forwarded", &count::AggregatorCounts::forwarded},
                                                 {"alone", &count::AggregatorCounts::alone},
                                                 {"full", &count::AggregatorCounts::full},
                                                 {"timeout", &count::AggregatorCounts::timeout},
                                                 {"idle", &count::AggregatorCounts::idle},
                                                 {"requested", &count::AggregatorCounts::requested},
                                                 {"peak_buffer_bytes", &count::AggregatorCounts::peak_buffer_bytes},
                                                 {"buffer_bytes", &count::AggregatorCounts::buffer_bytes},
                                                 {"spilled_frames", &count::AggregatorCounts::spilled_frames},
                                                 {"spilled_bytes_peak", &count::AggregatorCounts::spilled_bytes_peak}};

std::string times_to_json(const std::uint64_t (&ns)[count::spendings]) {
  return fmt::format("{{\"program\": {}, \"handlers\": {}, \"communication\": {}, \"waiting\": {}}}", ns[0], ns[1],
                     ns[2], ns[3]);
}

/// null where the kernel counts nothing.
std::string hardware_to_json(std::uint64_t value) {
  return value == count::not_counted ? "null" : fmt::format("{}", value);
}

std::string to_json(const count::PhaseCounts& phase) {
  return fmt::format(
      "{{\"name\": {}, \"parent\": {}, \"calls\": {}, \"ns\": {}, \"cycles\": {}, \"instructions\": {}, "
      "\"cache_misses\": {}}}",
      quoted(phase.name), phase.parent == count::no_parent ? "null" : fmt::format("{}", phase.parent), phase.calls,
      times_to_json(phase.ns), hardware_to_json(phase.hardware[0]), hardware_to_json(phase.hardware[1]),
      hardware_to_json(phase.hardware[2]));
}

std::string to_json(const count::PeCounts& counts, const std::vector<count::PhaseCounts>& phases) {
  std::string text = "{";
  for (const Named& named : of_pe) text += fmt::format("\"{}\": {}, ", named.name, counts.*named.value);
  for (const NamedOfAggregators& named : of_aggregators) {
    text += fmt::format("\"{}\": {}, ", named.name, counts.aggregators.*named.value);
  }
  text += "\"gap_delay_ns\": [";
  for (std::size_t i = 0; i < count::gaps; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", counts.gap_delay_ns[i]);
  text += fmt::format("], \"times_ns\": {}, \"phases\": [", times_to_json(counts.spent_ns));
  for (std::size_t i = 0; i < phases.size(); ++i) text += (i == 0 ? "" : ", ") + to_json(phases[i]);
  return text + "]}";
}

/// The fields that result files have, too: means and maxima over PEs.
std::string communication(const std::vector<count::PeCounts>& pes) {
  std::uint64_t messages = 0, messages_max = 0, run_ns = 0, barriers = 0, reads = 0, bulk = 0, retries = 0;
  for (const count::PeCounts& pe : pes) {
    messages += pe.aggregators.messages;
    messages_max = std::max(messages_max, pe.aggregators.messages);
    run_ns = std::max(run_ns, pe.run_ns);
    barriers = std::max(barriers, pe.barriers);
    reads += pe.reads;
    bulk += pe.bulk;
    retries += pe.retries;
  }
  // null without messages, or barriers
  auto over = [](double time, std::uint64_t count) {
    return count == 0 ? std::string("null") : fmt::format("{:.6g}", time / double(count));
  };
  return fmt::format(
      "{{\"us_per_message\": {}, \"ms_per_barrier\": {}, \"messages_mean\": {:.6g}, \"messages_max\": {}, "
      "\"reads\": {}, \"bulk\": {}, \"retries\": {}}}",
      over(double(run_ns) * 1e-3, messages_max), over(double(run_ns) * 1e-6, barriers),
      double(messages) / double(pes.size()), messages_max, reads, bulk, retries);
}

}  // namespace

CountedRun::CountedRun(const std::string& file, transport::Endpoint& inner, const report::PeBoard& board,
                       bool simulated)
    : name_(file),
      endpoint_(
          inner, [&board] { return activity_of(board); },
          simulated ? count::TimeSplit::Clock::run : count::TimeSplit::Clock::cycles),
      simulated_(simulated),
      cpu_begin_ns_(base::thread_cpu_ns()) {
  if (inner.id() != 0) return;
  file_.reset(std::fopen(file.c_str(), "we"));
  if (file_ == nullptr) {
    throw SystemError(
        fmt::format("HEADWAY_COUNTS={}: it cannot be written: {}", file, std::generic_category().message(errno)));
  }
  counts_.resize(inner.size());
  phases_.resize(inner.size());
}

void CountedRun::begin(am::Engine& engine) {
  control_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const std::size_t own_bytes = std::min(bytes.size(), sizeof(count::PeCounts));
    const auto counts = am::Engine::control_value<count::PeCounts>(bytes.first(own_bytes));
    if (source >= counts_.size()) throw FormatError("counts of a run go to PE 0");
    const auto phases = bytes.subspan(own_bytes);
    if (phases.size() % sizeof(count::PhaseCounts) != 0 ||
        phases.size() > count::phases_max * sizeof(count::PhaseCounts))
      throw FormatError(fmt::format("its phases have {} bytes", phases.size()));
    counts_[source] = counts;
    phases_[source].resize(phases.size() / sizeof(count::PhaseCounts));
    if (!phases.empty()) std::memcpy(phases_[source].data(), phases.data(), phases.size());
    ++arrived_;
    arrived_bytes_ += sizeof(transport::FrameHeader) + bytes.size();
  });
  have_all_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    am::Engine::control_value<bool>(bytes);
    if (source != 0) throw FormatError("PE 0 alone has the counts of all PEs");
    all_are_there_ = true;
  });
}

void CountedRun::finish(am::Engine& engine) {
  count::PeCounts counts = endpoint_.counts();
  // Faster PEs have sent their counts already. These frames are not of the program.
  counts.frames_received -= arrived_;
  counts.bytes_received -= arrived_bytes_;
  std::vector<count::PhaseCounts> phases = endpoint_.phases();
  if (!simulated_) counts.cpu_ns = std::uint64_t(base::thread_cpu_ns() - cpu_begin_ns_);
  if (const am::Calls calls = engine.calls(am::root_scope); calls.any()) counts.barriers += calls.called_max;
  if (engine.id() != 0) {
    std::vector<std::byte> bytes(sizeof counts + phases.size() * sizeof(count::PhaseCounts));
    std::memcpy(bytes.data(), &counts, sizeof counts);
    if (!phases.empty()) std::memcpy(bytes.data() + sizeof counts, phases.data(), bytes.size() - sizeof counts);
    engine.send_control(0, control_, bytes);
    // Else this PE's part in the quiescence below could be among the frames that another PE still counts.
    engine.wait_until([&] { return all_are_there_; }, report::Phase::quiescing);
  } else {
    counts_[0] = counts;
    phases_[0] = std::move(phases);
    engine.wait_until([&] { return arrived_ + 1 == engine.size(); }, report::Phase::quiescing);
    all_are_there_ = true;
    const auto there = std::as_bytes(std::span(&all_are_there_, 1));
    for (std::size_t pe = 1; pe < engine.size(); ++pe) engine.send_control(pe, have_all_, there);
    write(engine);
  }
  engine.quiesce();
}

void CountedRun::write(am::Engine& engine) {
  const transport::HostMap& hosts = endpoint_.host_map();
  std::string text = fmt::format(
      "{{\"program\": {}, \"pes\": {}, \"pes_per_process\": {}, \"hosts\": {}, \"simulated\": {}, \"budget_bytes\": "
      "{},\n \"communication\": {},\n \"per_pe\": [",
      quoted(program_path()), engine.size(), hosts.pes_per_process, std::max<std::size_t>(hosts.host_firsts.size(), 1),
      simulated_, engine.store().budget_bytes(), communication(counts_));
  for (std::size_t pe = 0; pe < counts_.size(); ++pe)
    text += (pe == 0 ? "\n  " : ",\n  ") + to_json(counts_[pe], phases_[pe]);
  text += "]}\n";
  errno = 0;
  int error = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() ? 0 : errno;
  if (std::fclose(file_.release()) != 0 && error == 0) error = errno;
  if (error != 0) {
    throw SystemError(
        fmt::format("HEADWAY_COUNTS={}: it cannot be written: {}", name_, std::generic_category().message(error)));
  }
}

}  // namespace headway::launch
