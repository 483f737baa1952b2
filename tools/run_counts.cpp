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

}  // namespace headway::tools
