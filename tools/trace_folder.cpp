// SPDX-License-Identifier: BSD-3-Clause
#include "trace_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <map>
#include <numeric>
#include <set>

namespace headway::tools {

using model::trace::Flows;
using model::trace::Header;
using model::trace::PeTrace;

namespace {

constexpr std::uint32_t pid_least_of_ours = 5'000'000;  // beyond those of Linux

std::string path_of(const std::string& folder, std::size_t pe) {
  return folder + "/" + fmt::format(model::trace::file_name_format, pe);
}

PeTrace read(const std::string& path, std::uint64_t written_max = UINT64_MAX) {
  return model::trace::read_trace(path, {.may_be_unended = true, .may_lose_records = true, .written_max = written_max});
}

std::string counted(std::uint64_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

}  // namespace

TraceFolder::TraceFolder(const std::string& folder) : folder_(folder), flows_(0) {
  if (!std::filesystem::is_directory(folder))
    throw SystemError(fmt::format("'{}' is no folder: name that of HEADWAY_TRACE or --trace", folder));
  PeTrace trace = read(path_of(folder, 0));
  first_ = trace.header;
  flows_ = Flows(first_.pes);
  process_of_.resize(first_.pes);
  lost_.resize(first_.pes);
  written_.resize(first_.pes);
  for (std::size_t pe = 0; pe < pes(); ++pe) {
    if (pe != 0) trace = read(path_of(folder, pe));
    const Header& header = trace.header;
    auto refuse = [&](const std::string& why) {
      throw SystemError(fmt::format("{}: it cannot be used as a trace: {}", path_of(folder, pe), why));
    };
    if (header.pe != pe) refuse(fmt::format("it is of PE {}", header.pe));
    if (header.pes != first_.pes || header.clock != first_.clock)
      refuse(fmt::format("it is of another run than that of PE 0: {} PEs and {}", header.pes, first_.pes));
    add(trace);
  }
  flows_.finish();
  std::set<std::uint32_t> pids;
  for (const TraceProcess& process : processes_) pids.insert(process.pid);
  const bool unique = pids.size() == processes_.size() && !pids.contains(0);
  for (std::size_t number = 0; number < processes_.size(); ++number) {
    TraceProcess& process = processes_[number];
    if (!unique) process.pid = pid_least_of_ours + std::uint32_t(number);
    process.name = simulated() ? fmt::format("simulated host {}", process.host)
                               : fmt::format("host {}, process {}", process.host, number);
  }
  read_description(folder);
}

void TraceFolder::add(const PeTrace& trace) {
  flows_.add(trace);
  const std::size_t pe = trace.header.pe;
  const std::size_t host = flows_.host_of(pe);
  const auto found = std::ranges::find_if(processes_, [&](const TraceProcess& process) {
    return process.host == host && process.pid == trace.header.process;
  });
  process_of_[pe] = std::size_t(found - processes_.begin());
  if (found == processes_.end()) processes_.push_back({.host = host, .pid = trace.header.process});
  processes_[process_of_[pe]].pes.push_back(pe);
  lost_[pe] = trace.lost;
  written_[pe] = trace.header.written;
  records_ += trace.records.size();
  unfinished_ += !trace.ended;
}

PeTrace TraceFolder::trace(std::size_t pe) const {
  PeTrace trace = read(path_of(folder_, pe), written_[pe]);
  const auto ends = std::ranges::count_if(trace.records, [](const model::trace::Record& record) {
    return record.kind == model::trace::Kind::posted || record.kind == model::trace::Kind::taken;
  });
  if (std::size_t(ends) != flows_.of(pe).size())
    throw SystemError(fmt::format("{}: the PE replaced records while they were read: wait until the run has ended",
                                  path_of(folder_, pe)));
  return trace;
}

void TraceFolder::read_description(const std::string& folder) {
  const std::string path = folder + "/trace.json";
  std::ifstream file(path);
  if (!file) return;
  description_ = bench::Json::parse(file, nullptr, false);
  if (!description_.is_object()) throw SystemError(fmt::format("{}: it is no JSON object", path));
}

std::uint64_t TraceFolder::lost() const { return std::accumulate(lost_.begin(), lost_.end(), std::uint64_t(0)); }

std::int64_t TraceFolder::residual_ns() const {
  std::int64_t largest = 0;
  for (const auto& clock : flows_.clocks()) largest = std::max(largest, clock.residual_ns.value_or(0));
  return largest;
}

std::size_t TraceFolder::unaligned_hosts() const {
  return std::size_t(std::ranges::count_if(flows_.clocks(), [](const auto& clock) { return !clock.residual_ns; }));
}

std::string TraceFolder::summary() const {
  const Flows::Counts& frames = flows_.counts();
  std::string text = fmt::format("{} on {}, {} of {} us: {}, {} joined\n", counted(pes(), "PE"),
                                 counted(flows_.hosts(), "host"), simulated() ? "simulated time" : "time",
                                 flows_.end_ns() / 1000, counted(records_, "record"), counted(frames.joined, "frame"));
  if (flows_.hosts() > 1 && !simulated()) {
    text += fmt::format("clocks of hosts: aligned by frames, residual at most {} ns", residual_ns());
    if (unaligned_hosts() != 0) {
      text += fmt::format("; {} without frames in both directions: by the clock of day",
                          counted(unaligned_hosts(), "host"));
    }
    if (frames.backward != 0) text += fmt::format("; {} arrive before their post", counted(frames.backward, "frame"));
    text += '\n';
  }
  text += fmt::format("records lost: {}{}\n", lost(),
                      lost() == 0 ? "" : ": the rings of their PEs were full, the oldest records are missing");
  text += fmt::format("frames undelivered: {}, and {} of the runtime's own\n", frames.undelivered,
                      frames.undelivered_control);
  if (frames.unknown != 0) text += fmt::format("frames with one end unknown: {}: no arrows\n", frames.unknown);
  if (unfinished_ != 0) text += fmt::format("{} did not come to the end of the run\n", counted(unfinished_, "PE"));
  return text;
}

}  // namespace headway::tools
