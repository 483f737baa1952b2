#include "bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/aggregate/options.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <iostream>
#include <message/message.hpp>
#include <record/command_line.hpp>

#include "settings_options.hpp"

namespace headway::tools {
namespace {

using bench::add_value;

const std::vector<std::string> benches = {"randomaccess", "stream"};
const char* const command_name = "headway bench";

/// The options as given; a list holds texts that were checked.
struct Request {
  std::string bench;
  bool list = false;
  std::vector<std::string> modes = {"direct", "1d"};
  std::vector<std::string> log2s = {"20"};
  std::vector<std::string> sizes = {"8"};
  std::vector<std::string> buffers;  // empty: derived
  std::vector<std::string> peers;
  std::vector<std::string> peer_buffers = {"4K", "16K", "64K", "256K"};
  std::vector<std::string> passed_on;  // options that every Headway program gets
  std::string updates_per_word;        // empty: by table size
  std::string messages = "1000000";
  bool variable = false;
  double threshold = 0, cutoff = 0;   // 0: derived
  std::vector<std::string> only_for;  // options given that one benchmark has: "randomaccess --log2"
  BenchPlan plan;
};

[[noreturn]] void refuse(const std::string& message) { throw SettingError(message); }

void check_sizes(const std::string& option, const std::vector<std::string>& texts, std::uint64_t min,
                 std::uint64_t max) {
  for (const std::string& text : texts) {
    const std::uint64_t bytes = parse_bytes(option, text);
    if (bytes < min || bytes > max) {
      refuse(fmt::format("{}: '{}' is not allowed; allowed is {} to {}", option, text, format_bytes(min),
                         format_bytes(max)));
    }
  }
}

/// "mpi-alltoallv", "mpi-alltoallv:mpich" and "available" (all there are, which may be none).
std::vector<std::string> expand_peers(const std::vector<std::string>& texts) {
  std::vector<std::string> expanded;
  for (const std::string& text : texts) {
    if (text == "available") {
      if (!find_peers().empty()) expanded.insert(expanded.end(), peer_modes.begin(), peer_modes.end());
      continue;
    }
    std::vector<std::string> allowed = peer_modes;
    allowed.emplace_back("available");
    for (const Peer& peer : find_peers()) {
      for (const std::string& mode : peer_modes) allowed.push_back(mode + ":" + peer.mpi);
    }
    expanded.push_back(bench::parse_choice("--peer", text, allowed));
  }
  return expanded;
}

void add_options(CLI::App& app, Request& request) {
  app.add_option_function<std::string>(
      "NAME", [&](const std::string& text) { request.bench = bench::parse_choice("NAME", text, benches); },
      "randomaccess, stream");
  app.add_flag("--list", request.list, "list the benchmarks, their modes and the peers built here");

  const auto option = [&](const char* name, const char* value, const char* help,
                          std::function<void(const std::string&)> store) {
    add_value(app, name, std::move(store), value, help);
  };
  const auto own = [&](const char* bench, const char* name, const char* value, const char* help,
                       std::function<void(const std::string&)> store) {
    option(name, value, help, [&request, bench, name, store = std::move(store)](const std::string& text) {
      request.only_for.push_back(fmt::format("{} {}", bench, name));
      store(text);
    });
  };
  const auto pass_on = [&](const char* name, const char* value, const char* help, auto check) {
    option(name, value, help, [&request, name, check](const std::string& text) {
      check(text);
      request.passed_on.insert(request.passed_on.end(), {name, text});
    });
  };

  option("--mode", "LIST", "direct, 1d, 2d, 3d, ...; side by side [direct,1d]", [&](const std::string& text) {
    request.modes = bench::parse_list("--mode", text);
    for (const std::string& mode : request.modes) parse_topology(mode);
  });
  option("--peer", "LIST", "the same work on plain MPI: mpi-direct, mpi-alltoallv, also as NAME:MPI; or available",
         [&](const std::string& text) { request.peers = expand_peers(bench::parse_list("--peer", text)); });
  option("--peer-buffer-bytes", "LIST",
         "bucket sizes of mpi-alltoallv, of which the best is measured [4K,16K,64K,256K]",
         [&](const std::string& text) {
           request.peer_buffers = bench::parse_list("--peer-buffer-bytes", text);
           check_sizes("--peer-buffer-bytes", request.peer_buffers, 8, 64_MiB);
         });
  own("randomaccess", "--log2", "LIST", "randomaccess: 2^K words in all [20]", [&](const std::string& text) {
    request.log2s = bench::parse_list("--log2", text);
    for (const std::string& log2 : request.log2s) bench::parse_count("--log2", log2, 1, 40);
  });
  own("randomaccess", "--updates-per-word", "N", "randomaccess: updates are N * 2^K [4, or more: at least 2^24 in all]",
      [&](const std::string& text) {
        bench::parse_number("--updates-per-word", text, 0, 1e9);
        request.updates_per_word = text;
      });
  own("stream", "--bytes", "LIST", "stream: bytes of a message [8]", [&](const std::string& text) {
    request.sizes = bench::parse_list("--bytes", text);
    check_sizes("--bytes", request.sizes, 0, 1_GiB);
    for (std::string& size : request.sizes) size = std::to_string(parse_bytes("--bytes", size));
  });
  own("stream", "--messages", "M", "stream: messages that each PE sends [1000000]", [&](const std::string& text) {
    request.messages = std::to_string(bench::parse_count("--messages", text, 1, 1ull << 40));
  });
  app.add_flag_callback(
      "--variable",
      [&] {
        request.variable = true;
        request.only_for.emplace_back("stream --variable");
      },
      "stream: send as variable-size messages also where the size is fixed");
  option("--buffer-bytes", "LIST", "bytes of Headway's buffers, such as 16K,64K [derived]",
         [&](const std::string& text) {
           request.buffers = bench::parse_list("--buffer-bytes", text);
           check_sizes("--buffer-bytes", request.buffers, buffer_bytes_min, buffer_bytes_max);
         });
  pass_on(
      "--threshold", "FRACTION", "send a buffer filled beyond this fraction [derived]",
      [&request](const std::string& text) { request.threshold = bench::parse_fraction("--threshold", text, false); });
  pass_on("--cutoff", "FRACTION", "send a message above this fraction of a buffer by itself [derived]",
          [&request](const std::string& text) { request.cutoff = bench::parse_fraction("--cutoff", text, true); });
  pass_on("--timeout", "TIME", "send a buffer whose oldest message is older, such as 100us; or none [derived]",
          [](const std::string& text) { bench::parse_time("--timeout", text); });
  app.add_flag_callback(
      "--ordered", [&] { request.passed_on.emplace_back("--ordered"); }, "first in, first out for each pair of PEs");
  option("--repeat", "R", "rounds; medians are reported, with minimum and maximum [5]",
         [&](const std::string& text) { request.plan.repeats = bench::parse_count("--repeat", text, 1, 100'000); });
  option("--time-limit", "TIME", "end a program that takes longer [600s]", [&](const std::string& text) {
    const auto limit = bench::parse_time("--time-limit", text);
    using std::chrono::seconds;
    request.plan.limit = std::clamp(std::chrono::duration_cast<seconds>(limit), seconds(1), seconds(100'000'000));
  });
  option("--json", "FILE", "write the result file, or - for standard output",
         [&](const std::string& text) { request.plan.json = text; });
}

void print_list() {
  std::cout
      << "randomaccess   updates of 8 bytes at random words of a table spread over all PEs (HPC Challenge); verified\n"
         "stream         pairs of PEs, each sends messages of one size to its partner at once; verified\n"
         "\nmodes          direct (a frame per message), 1d, 2d, 3d, ...\n"
         "peers          ";
  const auto peers = find_peers();
  for (const Peer& peer : peers) {
    std::cout << fmt::format("{}mpi-direct:{}, mpi-alltoallv:{}{}", &peer == &peers.front() ? "" : ", ", peer.mpi,
                             peer.mpi, peer.launcher.empty() ? " (its mpirun is not in PATH)" : "");
  }
  std::cout << (peers.empty() ? "none: no MPI was found when this was built\n" : "\n") << std::flush;
}

const Peer& choose_peer(const std::vector<Peer>& peers, const std::string& text) {
  const auto colon = text.find(':');
  if (peers.empty()) {
    refuse(fmt::format(
        "--peer: '{}' needs an MPI and none was found when this was built; install one (Debian: apt install "
        "libopenmpi-dev openmpi-bin) and build again",
        text));
  }
  const auto found = colon == std::string::npos ? peers.begin()
                                                : std::ranges::find(peers, text.substr(colon + 1),
                                                                    &Peer::mpi);  // expand_peers() has checked it
  if (found->launcher.empty())
    refuse(fmt::format("--peer: '{}' needs the mpirun of {}, which is not in PATH", text, found->mpi));
  return *found;
}

/// The part of the command line that all cases of a group share.
struct Work {
  std::string title;
  std::vector<std::string> arguments;
};

std::vector<Work> works_of(const Request& request) {
  std::vector<Work> works;
  if (request.bench == "randomaccess") {
    for (const std::string& log2 : request.log2s) {
      std::string updates = request.updates_per_word;
      if (updates.empty()) updates = std::to_string(std::max(4ull, (1ull << 24) >> std::min(24, std::stoi(log2))));
      works.push_back({fmt::format("2^{} words", log2), {"--log2", log2, "--updates-per-word", updates}});
    }
  } else {
    for (const std::string& bytes : request.sizes) {
      works.push_back({fmt::format("{} bytes", bytes), {"--bytes", bytes, "--messages", request.messages}});
    }
  }
  return works;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

BenchCase headway_case(const Request& request, const Work& work, const std::string& mode, const std::string& buffer) {
  BenchCase made;
  made.label = buffer.empty() || request.buffers.size() < 2 ? mode : mode + " " + buffer;
  made.command = {program_directory() + "/headway-" + request.bench, "--mode", mode, "--json", "-"};
  append(made.command, work.arguments);
  if (!buffer.empty()) append(made.command, {"--buffer-bytes", buffer});
  if (request.variable) made.command.emplace_back("--variable");
  append(made.command, request.passed_on);
  return made;
}

BenchCase peer_case(const Request& request, const Work& work, const std::string& text, const Peer& peer,
                    std::size_t pes) {
  const std::string mode = text.substr(0, text.find(':'));
  BenchCase made;
  made.peer = true;
  made.label = text;
  made.command = launch_command(peer, pes);
  append(made.command, {request.bench, "--mode", mode, "--json", "-"});
  append(made.command, work.arguments);
  made.environment = launch_environment(peer);
  if (mode == "mpi-alltoallv") made.bucket_sizes = request.peer_buffers;
  return made;
}

void check_request(const Request& request, const Settings& settings) {
  for (const std::string& given : request.only_for) {
    const auto space = given.find(' ');
    if (given.substr(0, space) != request.bench) {
      refuse(fmt::format("{} is an option of {}, not of {}", given.substr(space + 1), given.substr(0, space),
                         request.bench));
    }
  }
  const bool variable = request.variable || !std::ranges::all_of(request.sizes, [](const std::string& size) {
                          return bench::is_fixed_size(std::stoull(size));
                        });
  if (request.bench == "stream" && variable && request.threshold + request.cutoff > 1) {
    refuse(fmt::format(
        "--threshold {} and --cutoff {} are not allowed together; for messages of variable size their sum is at most 1",
        request.threshold, request.cutoff));
  }
  if (request.bench == "stream" && settings.pes % 2 != 0) {
    refuse(fmt::format("--pes: '{}' is not allowed; stream pairs its PEs, allowed is an even number", settings.pes));
  }
}

void check_peer(const std::string& text, const Peer& peer, const Request& request, const Settings& settings) {
  if (peer.mpi == "mpich" && settings.pes > available_cores()) {
    refuse(fmt::format(
        "--peer: '{}' is not allowed with {} PEs; MPICH waits by spinning, allowed are at most the {} cores here", text,
        settings.pes, available_cores()));
  }
  if (request.bench == "stream" && std::ranges::find(request.sizes, "0") != request.sizes.end()) {
    refuse(fmt::format("--peer: '{}' is not allowed with --bytes 0; allowed is 1 byte or more", text));
  }
}

std::vector<BenchGroup> groups_of(const Request& request, const Settings& settings) {
  const std::vector<Peer> peers = find_peers();
  std::vector<std::string> buffers = request.buffers;
  if (buffers.empty()) buffers.emplace_back();
  std::vector<BenchGroup> groups;
  for (const Work& work : works_of(request)) {
    BenchGroup group{work.title, {}};
    for (const std::string& mode : request.modes) {
      for (const std::string& buffer : buffers) group.cases.push_back(headway_case(request, work, mode, buffer));
    }
    for (const std::string& text : request.peers) {
      const Peer& peer = choose_peer(peers, text);
      check_peer(text, peer, request, settings);
      group.cases.push_back(peer_case(request, work, text, peer, settings.pes));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

PlanOrStatus make_plan(int argc, char** argv) {
  Request request;
  CLI::App app("Runs a benchmark: one start of its program per case and repeat, interleaved; every run is verified.",
               command_name);
  add_options(app, request);
  const SettingsOptions settings_options(app);
  if (const auto status = bench::parse_command_line(app, argc, argv)) return {{}, *status};
  if (request.list) return print_list(), PlanOrStatus{};
  const auto unusable = [](const std::string& message) {
    std::cerr << command_name << ": " << message << '\n';
    return PlanOrStatus{{}, exit_status::unusable_arguments};
  };
  if (request.bench.empty())
    return unusable(fmt::format("a benchmark is needed; allowed are {}", fmt::join(benches, ", ")));
  const auto settings = settings_options.apply(command_name);
  if (!settings) return {{}, exit_status::unusable_arguments};
  try {
    check_request(request, *settings);
    request.plan.groups = groups_of(request, *settings);
  } catch (const SettingError& error) {
    return unusable(error.what());
  }
  request.plan.bench = request.bench;
  return {std::move(request.plan), 0};
}

}  // namespace headway::tools
