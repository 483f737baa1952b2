// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/launch/identity.hpp>
#include <headway/launch/json_text.hpp>
#include <headway/launch/traced_run.hpp>
#include <system_error>

namespace headway::launch {
namespace {

using model::trace::Phase;

Phase phase_of(const report::PeBoard& board) {
  switch (board.phase.load(std::memory_order_relaxed)) {
    case report::Phase::handling: return Phase::handling;
    case report::Phase::quiescing: return Phase::quiescing;
    case report::Phase::collective: return Phase::collective;
    case report::Phase::epoch: return Phase::epoch;
    case report::Phase::condition:
    case report::Phase::future: return Phase::waiting;
    default: return Phase::working;
  }
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// Of the environment, as a text in JSON; null if it is not set.
std::string quoted_variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "null" : quoted(text);
}

/// The arguments of this process, without its program.
std::string quoted_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text, argument;
  std::getline(file, argument, '\0');
  while (std::getline(file, argument, '\0')) text += (text.empty() ? "" : ", ") + launch::quoted(argument);
  return "[" + text + "]";
}

/// DIR/trace.json: what all PEs have in common.
void write_description(const std::string& folder, const transport::Endpoint& endpoint, bool simulated) {
  if (endpoint.id() != 0) return;
  const transport::HostMap& hosts = endpoint.host_map();
  const std::time_t now = std::time(nullptr);
  char began[32] = "";
  std::tm utc{};
  std::strftime(began, sizeof began, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  const std::string text = fmt::format(
      "{{\"headway\": \"{}\", \"build\": \"{}\", \"program\": {}, \"arguments\": {},\n \"pes\": {}, \"hosts\": {}, "
      "\"pes_per_process\": {}, \"transport\": {}, \"dials\": {}, \"simulated\": {}, \"network\": {},\n \"began\": "
      "\"{}\"}}\n",
      HEADWAY_VERSION, build_identity(), quoted(program_path()), quoted_arguments(), hosts.size,
      std::max<std::size_t>(hosts.host_firsts.size(), 1), hosts.pes_per_process, quoted_variable("HEADWAY_TRANSPORT"),
      quoted_variable("HEADWAY_DIAL"), simulated, quoted_variable("HEADWAY_SIM"), std::string(began));
  const std::string name = folder + "/trace.json";
  errno = 0;
  std::ofstream file(name, std::ios::binary);
  if (!(file << text).flush()) {
    throw SystemError(fmt::format("HEADWAY_TRACE={}: {} cannot be written: {}", folder, name,
                                  std::generic_category().message(errno)));
  }
}

/// Its folder exists then.
trace::Options options_of(const std::string& folder, bool simulated) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw SystemError(fmt::format("HEADWAY_TRACE={}: it cannot be made: {}", folder, error.message()));
  return {.folder = folder,
          .transport = variable("HEADWAY_TRANSPORT"),
          .dials = variable("HEADWAY_DIAL"),
          .simulated = simulated};
}

}  // namespace

TracedRun::TracedRun(const std::string& folder, transport::Endpoint& inner, const report::PeBoard& board,
                     bool simulated)
    : endpoint_(
          inner, [&board] { return phase_of(board); }, options_of(folder, simulated)) {
  endpoint_.begin();
  write_description(folder, inner, simulated);
}

void TracedRun::begin(am::Engine& engine) {
  endpoint_.name_handlers([&engine](std::uint32_t number) { return engine.name_of_made_handler(number); });
}

}  // namespace headway::launch
