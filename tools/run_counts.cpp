// SPDX-License-Identifier: BSD-3-Clause
#include "run_counts.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <system_error>

namespace headway::tools {
namespace {

struct Field {
  const char* name;
  double PeRow::*value;
};
constexpr Field fields[] = {{"frames_sent", &PeRow::frames_sent},
                            {"bytes_sent", &PeRow::bytes_sent},
                            {"frames_received", &PeRow::frames_received},
                            {"control_frames", &PeRow::control_frames},
                            {"messages_in_frames", &PeRow::messages_in_frames},
                            {"receivers", &PeRow::receivers},
                            {"retries", &PeRow::retries},
                            {"bursts", &PeRow::bursts},
                            {"burst_ns", &PeRow::burst_ns},
                            {"turns", &PeRow::turns},
                            {"reads", &PeRow::reads},
                            {"turns_of_all", &PeRow::turns_of_all},
                            {"turns_of_handlers", &PeRow::turns_of_handlers},
                            {"waits", &PeRow::waits},
                            {"waits_of_all", &PeRow::waits_of_all},
                            {"waiting_ns", &PeRow::waiting_ns},
                            {"barriers", &PeRow::barriers},
                            {"bulk", &PeRow::bulk},
                            {"run_ns", &PeRow::run_ns},
                            {"cpu_ns", &PeRow::cpu_ns},
                            {"messages", &PeRow::messages},
                            {"payload_bytes", &PeRow::payload_bytes},
                            {"alone", &PeRow::alone},
                            {"peak_buffer_bytes", &PeRow::peak_buffer_bytes},
                            {"buffer_bytes", &PeRow::buffer_bytes},
                            {"spilled_bytes_peak", &PeRow::spilled_bytes_peak}};

std::string shown(const bench::Json& value, const char* format_of_whole = "{:.0f}") {
  if (!value.is_number()) return "-";
  const double number = value.get<double>();
  return number == std::trunc(number) ? fmt::format(fmt::runtime(format_of_whole), number)
                                      : fmt::format("{:.4g}", number);
}

/// The row of a phase, which is added behind those that lie in the same one.
PhaseRow& phase_row(RunCounts& counts, const std::string& name, std::size_t parent, std::size_t& index) {
  constexpr std::size_t none = ~std::size_t(0);
  const std::size_t depth = parent == none ? 0 : counts.phases[parent].depth + 1;
  for (index = parent == none ? 0 : parent + 1; index < counts.phases.size(); ++index) {
    PhaseRow& row = counts.phases[index];
    if (row.depth < depth) break;
    if (row.depth == depth && row.name == name) return row;
  }
  return *counts.phases.insert(counts.phases.begin() + std::ptrdiff_t(index), PhaseRow{.name = name, .depth = depth});
}

void add_phases(RunCounts& counts, const bench::Json& phases, std::size_t pe) {
  std::vector<std::size_t> places;  // in counts.phases, by index
  for (const bench::Json& phase : phases) {
    const bench::Json& parent = phase.at("parent");
    std::size_t index = 0;
    const std::size_t rows = counts.phases.size();
    PhaseRow& row = phase_row(counts, phase.at("name").get<std::string>(),
                              parent.is_null() ? ~std::size_t(0) : places.at(parent.get<std::size_t>()), index);
    if (counts.phases.size() != rows) {
      for (std::size_t& place : places) place += place >= index;
    }
    places.push_back(index);
    const bench::Json& ns = phase.at("ns");
    const double program = ns.at("program").get<double>(), handlers = ns.at("handlers").get<double>(),
                 communication = ns.at("communication").get<double>(), idle = ns.at("waiting").get<double>();
    const double all = program + handlers + communication + idle;
    if (all > row.ns_max || row.pes == 0) row.slowest_pe = pe;
    row.ns_max = std::max(row.ns_max, all);
    row.ns += all;
    row.program_ns += program;
    row.handlers_ns += handlers;
    row.communication_ns += communication;
    row.idle_ns += idle;
    row.calls += phase.at("calls").get<double>();
    auto add = [&](std::optional<double>& sum, const bench::Json& value) {
      if (value.is_null() || (row.pes != 0 && !sum))
        sum.reset();
      else
        sum = sum.value_or(0) + value.get<double>();
    };
    add(row.cycles, phase.at("cycles"));
    add(row.instructions, phase.at("instructions"));
    add(row.cache_misses, phase.at("cache_misses"));
    ++row.pes;
  }
}

/// Why the kernel counts no cycles.
std::string reason_of(int error) {
  switch (error) {
    case EACCES:
    case EPERM: return "the kernel does not allow them; allowed is /proc/sys/kernel/perf_event_paranoid of at most 2";
    case ENOTSUP: return "the run was simulated";
    case ENOENT:
    case ENODEV: return "this machine has no such counters, as many virtual machines";
    default: return std::generic_category().message(error);
  }
}

std::string percent(double part, double all) { return all == 0 ? "-" : fmt::format("{:.1f} %", 100 * part / all); }

}  // namespace

double RunCounts::mean(double PeRow::*value) const {
  double sum = 0;
  for (const PeRow& row : rows) sum += row.*value;
  return rows.empty() ? 0 : sum / double(rows.size());
}

double RunCounts::max(double PeRow::*value) const {
  double most = 0;
  for (const PeRow& row : rows) most = std::max(most, row.*value);
  return most;
}

double RunCounts::min(double PeRow::*value) const {
  double least = rows.empty() ? 0 : rows.front().*value;
  for (const PeRow& row : rows) least = std::min(least, row.*value);
  return least;
}

RunCounts read_counts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw SystemError(fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)));
  }
  RunCounts counts;
  try {
    const bench::Json json = bench::Json::parse(file);
    counts.pes = json.at("pes").get<std::size_t>();
    counts.pes_per_process = json.at("pes_per_process").get<std::size_t>();
    counts.hosts = json.at("hosts").get<std::size_t>();
    counts.simulated = json.at("simulated").get<bool>();
    counts.budget_bytes = json.at("budget_bytes").get<double>();
    counts.communication = json.at("communication");
    for (const bench::Json& pe : json.at("per_pe")) {
      PeRow& row = counts.rows.emplace_back();
      for (const Field& field : fields) row.*field.value = pe.at(field.name).get<double>();
      row.gap_delay_ns = pe.at("gap_delay_ns").get<std::vector<double>>();
      const bench::Json& times = pe.at("times_ns");
      row.program_ns = times.at("program").get<double>();
      row.handlers_ns = times.at("handlers").get<double>();
      row.communication_ns = times.at("communication").get<double>();
      row.idle_ns = times.at("waiting").get<double>();
      add_phases(counts, pe.at("phases"), counts.rows.size() - 1);
      counts.hardware_errno = std::max(counts.hardware_errno, pe.at("hardware_errno").get<int>());
    }
  } catch (const bench::Json::exception& error) {
    throw SystemError(fmt::format("{}: it holds no counts of a run: {}", path, error.what()));
  }
  if (counts.pes == 0 || counts.rows.size() != counts.pes) {
    throw SystemError(fmt::format("{}: counts of {} PEs in a run of {}", path, counts.rows.size(), counts.pes));
  }
  return counts;
}

namespace {

// Files to remove when a signal ends this process, which runs no destructors.
std::array<std::atomic<const char*>, 8> names_to_remove{};
pid_t remover = 0;  // not a child between fork and exec

extern "C" void remove_and_end(int signal) {
  for (const auto& name : names_to_remove) {
    if (const char* const path = name.load(); path != nullptr && ::getpid() == remover) ::unlink(path);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

/// A signal that this process ignores, as under nohup, stays ignored.
void remove_at_signals() {
  if (remover == ::getpid()) return;
  remover = ::getpid();
  for (const int signal : ending_signals) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = remove_and_end;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

TemporaryFile::TemporaryFile() {
  path_ = (std::filesystem::temp_directory_path() / "headway-counts-XXXXXX").string();
  remove_at_signals();
  // A signal between the next calls waits until the file is known.
  sigset_t held, before;
  ::sigemptyset(&held);
  for (const int signal : ending_signals) ::sigaddset(&held, signal);
  ::sigprocmask(SIG_BLOCK, &held, &before);
  const int descriptor = ::mkstemp(path_.data()), error = errno;
  for (auto& name : names_to_remove) {
    const char* none = nullptr;
    if (descriptor < 0 || name.compare_exchange_strong(none, path_.c_str())) break;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (descriptor < 0)
    throw SystemError(fmt::format("{}: cannot be made: {}", path_, std::generic_category().message(error)));
  ::close(descriptor);
}

TemporaryFile::~TemporaryFile() {
  ::unlink(path_.c_str());
  for (auto& name : names_to_remove) {
    const char* own = path_.c_str();
    if (name.compare_exchange_strong(own, nullptr)) break;
  }
}

std::string communication_table(const RunCounts& counts) {
  const bench::Json& all = counts.communication;
  std::string table = fmt::format("{:>12} {:>12} {:>14} {:>14} {:>10} {:>10} {:>10}\n", "us/message", "ms/barrier",
                                  "messages mean", "messages max", "reads", "bulk", "retries");
  table += fmt::format("{:>12} {:>12} {:>14} {:>14} {:>10} {:>10} {:>10}\n\n", shown(all.at("us_per_message")),
                       shown(all.at("ms_per_barrier")), shown(all.at("messages_mean")), shown(all.at("messages_max")),
                       shown(all.at("reads")), shown(all.at("bulk")), shown(all.at("retries")));
  table += fmt::format("{:>5} {:>12} {:>10} {:>12} {:>10} {:>8} {:>8} {:>9} {:>10} {:>10}\n", "PE", "messages",
                       "frames", "bytes", "receivers", "turns", "reads", "waits", "waiting ms", "run ms");
  for (std::size_t pe = 0; pe < counts.rows.size(); ++pe) {
    const PeRow& row = counts.rows[pe];
    table +=
        fmt::format("{:>5} {:>12.0f} {:>10.0f} {:>12.0f} {:>10.0f} {:>8.0f} {:>8.0f} {:>9.0f} {:>10.3f} {:>10.3f}\n",
                    pe, row.messages, row.frames_sent, row.bytes_sent, row.receivers, row.turns, row.reads, row.waits,
                    row.waiting_ns * 1e-6, row.run_ns * 1e-6);
  }
  return table;
}

std::string times_table(const RunCounts& counts) {
  std::string table = fmt::format("{:>5} {:>12} {:>10} {:>10} {:>14} {:>10}\n", "PE", "run ms", "program", "handlers",
                                  "communication", "waiting");
  std::size_t slowest = 0;
  for (std::size_t pe = 1; pe < counts.rows.size(); ++pe) {
    if (counts.rows[pe].busy_ns() > counts.rows[slowest].busy_ns()) slowest = pe;
  }
  for (std::size_t pe = 0; pe < counts.rows.size(); ++pe) {
    const PeRow& row = counts.rows[pe];
    table += fmt::format("{:>5} {:>12.3f} {:>10} {:>10} {:>14} {:>10}{}\n", pe, row.run_ns * 1e-6,
                         percent(row.program_ns, row.run_ns), percent(row.handlers_ns, row.run_ns),
                         percent(row.communication_ns, row.run_ns), percent(row.idle_ns, row.run_ns),
                         pe == slowest && counts.rows.size() > 1 ? "  slowest: waits least" : "");
  }
  return table;
}

std::string phases_table(const RunCounts& counts) {
  if (counts.phases.empty()) return "";
  std::size_t width = 5;
  for (const PhaseRow& row : counts.phases) width = std::max(width, row.name.size() + 2 * row.depth);
  std::string table = fmt::format("{:<{}} {:>9} {:>12} {:>12} {:>5} {:>9} {:>9} {:>13} {:>9} {:>10} {:>6} {:>12}\n",
                                  "phase", width, "calls", "mean ms", "most ms", "PE", "program", "handlers",
                                  "communication", "waiting", "Mcycles", "IPC", "cache misses");
  bool counted = true;
  for (const PhaseRow& row : counts.phases) {
    counted &= row.cycles.has_value();
    const bool has_ipc = row.cycles && row.instructions && *row.cycles != 0;
    table += fmt::format("{:<{}} {:>9.0f} {:>12.3f} {:>12.3f} {:>5} {:>9} {:>9} {:>13} {:>9} {:>10} {:>6} {:>12}\n",
                         std::string(2 * row.depth, ' ') + row.name, width, row.calls, row.ns / row.pes * 1e-6,
                         row.ns_max * 1e-6, row.slowest_pe, percent(row.program_ns, row.ns),
                         percent(row.handlers_ns, row.ns), percent(row.communication_ns, row.ns),
                         percent(row.idle_ns, row.ns), row.cycles ? fmt::format("{:.4g}", *row.cycles * 1e-6) : "-",
                         has_ipc ? fmt::format("{:.2f}", *row.instructions / *row.cycles) : "-",
                         row.cache_misses ? fmt::format("{:.4g}", *row.cache_misses) : "-");
  }
  if (!counted) table += fmt::format("No cycles were counted: {}.\n", reason_of(counts.hardware_errno));
  return table;
}

}  // namespace headway::tools
