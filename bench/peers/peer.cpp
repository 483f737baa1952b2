// SPDX-License-Identifier: BSD-3-Clause
/// The benchmarks' work on plain MPI, for comparison: `headway-peer-MPI BENCH [options]` under mpirun.
#include "peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <amr/report.hpp>
#include <cstdio>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>
#include <iostream>
#include <message/buffers.hpp>
#include <message/message.hpp>
#include <randomaccess/table.hpp>
#include <record/command_line.hpp>

namespace headway::peers {

double slowest(double seconds) {
  double most = 0;
  MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

std::uint64_t total(std::uint64_t count) {
  std::uint64_t sum = 0;
  MPI_Allreduce(&count, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

bench::Json make_peer_record(const Arguments& arguments, std::size_t message_bytes, std::uint64_t messages,
                             double seconds, std::uint64_t errors) {
  int pes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const bench::Case measured{
      arguments.bench, "peer:" + arguments.mode, HEADWAY_PEER_MPI, std::size_t(pes), std::size_t(pes), 1, message_bytes,
      messages};
  bench::Json record = bench::make_record(measured, seconds, errors == 0);
  record["options"] = bench::Json::object();
  if (arguments.mode == "mpi-alltoallv") record["options"]["buffer_bytes"] = arguments.buffer_bytes;
  return record;
}

namespace {

struct Bench {
  std::string name;
  std::vector<std::string> modes;
  bool pairs;  // it needs an even number of ranks
  std::size_t ranks_min;
  std::size_t bytes, bytes_min;  // of a message: where --bytes says nothing, and at least
  bench::Json (*run)(const Arguments&);
};

const std::vector<std::string> exchanges = {"mpi-alltoallv", "mpi-direct"};
const std::vector<Bench> benches = {{"randomaccess", exchanges, false, 1, 8, 8, run_randomaccess},
                                    {"pingpong", {"mpi"}, true, 2, 8, 1, run_pingpong},
                                    {"zerocopy", {"mpi"}, true, 2, 65'536, 8, run_zerocopy},
                                    {"reduce", {"mpi", "mpi-ireduce"}, false, 1, 8, 1, run_reduce},
                                    {"halo", halo_modes(), false, 1, 8, 1, run_halo},
                                    {"stream", exchanges, true, 2, 8, 1, run_messages},
                                    {"staggered", exchanges, true, 2, 8, 1, run_messages},
                                    {"synthetic", exchanges, false, 2, 100, 1, run_messages},
                                    {"bfs", {"mpi-direct"}, false, 1, 8, 1, run_bfs},
                                    {"amr", {"mpi-isend"}, false, 1, 24, 1, run_amr}};

const Bench& bench_of(const Arguments& arguments) { return *std::ranges::find(benches, arguments.bench, &Bench::name); }

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Bench& one : benches) all.push_back(one.name);
  return all;
}

/// What follows from the benchmark where it is not given. Throws SettingError for a mode that it does not have.
void complete(Arguments& arguments) {
  const Bench& chosen = bench_of(arguments);
  if (arguments.mode.empty()) arguments.mode = chosen.modes.front();
  bench::parse_choice("--mode", arguments.mode, chosen.modes);
  if (arguments.bytes == 0) arguments.bytes = chosen.bytes;
  if (chosen.bytes_min > arguments.bytes) {
    throw SettingError(fmt::format("--bytes: '{}' is not allowed; allowed for {} is {} or more", arguments.bytes,
                                   chosen.name, chosen.bytes_min));
  }
  if (arguments.bench == "amr") amr::check(arguments.amr);
  if (arguments.bench == "bfs")
    arguments.graph.seed = base::Settings::from_environment().seed;  // as Headway's programs
  if (arguments.bench == "halo") {
    arguments.halo.seed = base::Settings::from_environment().seed;
    arguments.halo.complete();
  }
  if (arguments.messages == 0) arguments.messages = bench::default_messages(arguments.bench, arguments.bytes);
}

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("The benchmarks' work on plain MPI (" HEADWAY_PEER_MPI "); start it under that MPI's mpirun.",
               "headway-peer-" HEADWAY_PEER_MPI);
  app.add_option_function<std::string>(
         "bench", [&](const std::string& t) { arguments.bench = bench::parse_choice("bench", t, names()); },
         fmt::format("{}", fmt::join(names(), ", ")))
      ->required();
  const auto add = [&](const char* name, const char* value, const char* help,
                       std::function<void(const std::string&)> store) {
    bench::add_value(app, name, std::move(store), value, help);
  };
  add("--mode", "NAME",
      "mpi-alltoallv or mpi-direct; mpi-direct for bfs; mpi-isend for amr; mpi for pingpong and zerocopy; mpi or "
      "mpi-ireduce for reduce; isend, persistent, neighbor-v, neighbor-w, partitioned (with MPI 4), petsc, tpetra for "
      "halo",
      [&](const std::string& t) { arguments.mode = t; });
  add("--log2", "K", "randomaccess: 2^K words in all", [&](const std::string& t) {
    arguments.log2 = unsigned(bench::parse_count("--log2", t, 1, randomaccess::log2_max));
  });
  add("--updates-per-word", "N", "randomaccess: updates in all are N * 2^K [4]",
      [&](const std::string& t) { arguments.updates_per_word = bench::parse_number("--updates-per-word", t, 0, 1e9); });
  add("--bytes", "N", "bytes of a message, of randomaccess and zerocopy 8 or more [8; synthetic 100, zerocopy 64 KiB]",
      [&](const std::string& t) { arguments.bytes = bench::parse_count("--bytes", t, 1, bench::peer_bytes_max); });
  add("--messages", "M", "not randomaccess: messages from each rank to each, or round trips [by size]",
      [&](const std::string& t) { arguments.messages = bench::parse_count("--messages", t, 1, 1ull << 40); });
  add("--buffer-bytes", "SIZE", "mpi-alltoallv: bytes of a bucket [64K]", [&](const std::string& t) {
    arguments.buffer_bytes = base::parse_bytes("--buffer-bytes", t);
    if (arguments.buffer_bytes < 8 || arguments.buffer_bytes > 64_MiB) {
      throw SettingError(fmt::format("--buffer-bytes: '{}' is not allowed; allowed is 8 to 64M", t));
    }
  });
  add("--buffers", "NAME", "zerocopy: reused (the same for all messages) or fresh (in no cache) [reused]",
      [&](const std::string& t) { arguments.buffers = bench::parse_choice("--buffers", t, bench::buffer_kinds); });
  app.add_flag("--touch", arguments.touch, "zerocopy: the receiver adds up the words of each message");
  bench::add_reduce_options(app, arguments.reduce, "reduce: ");
  app.add_flag("--list-modes", arguments.list_modes, "print the modes of the benchmark, one a line");
  bench::add_halo_options(app, arguments.halo, "halo: ");
  add("--scale", "N", "bfs: 2^N vertices [16]",
      [&](const std::string& t) { arguments.graph.scale = unsigned(bench::parse_count("--scale", t, 1, 30)); });
  add("--edge-factor", "N", "bfs: edges for each vertex [16]",
      [&](const std::string& t) { arguments.graph.edge_factor = bench::parse_count("--edge-factor", t, 1, 1024); });
  add("--roots", "N", "bfs: searches, from vertices that have edges [4]",
      [&](const std::string& t) { arguments.roots = bench::parse_count("--roots", t, 1, 1024); });
  app.add_flag("--every-edge", arguments.every_edge,
               "bfs: a message for each edge, also to vertices that the rank has sent to before");
  amr::add_options(app, arguments.amr, "amr: ");
  add("--json", "FILE", "write the record to FILE, or - for standard output",
      [&](const std::string& t) { arguments.json = t; });
  if (const auto status = bench::parse_command_line(app, argc, argv)) return status;
  if (arguments.list_modes) {
    for (const std::string& mode : bench_of(arguments).modes) std::puts(mode.c_str());
    return 0;
  }
  if (app.count("--elements") > 0) arguments.halo.elements = arguments.reduce.elements;
  try {
    complete(arguments);
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", app.get_name(), error.what());
    return exit_status::unusable_arguments;
  }
  return std::nullopt;
}

int run(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const Bench& chosen = bench_of(arguments);
  if (std::size_t(pes) < chosen.ranks_min || (chosen.pairs && pes % 2 != 0)) {
    if (me == 0) {
      std::cerr << fmt::format("headway-peer-" HEADWAY_PEER_MPI ": {} needs {}\n", arguments.bench,
                               chosen.pairs ? "an even number of ranks" : "two ranks or more");
    }
    return exit_status::unusable_arguments;
  }
  bench::Json record;
  try {
    record = chosen.run(arguments);
  } catch (const SettingError& error) {  // on every rank
    if (me == 0) std::cerr << fmt::format("headway-peer-" HEADWAY_PEER_MPI ": {}\n", error.what());
    return exit_status::unusable_arguments;
  }
  const bool verified = record["verified"];
  if (me == 0 && !arguments.json.empty()) bench::write_json(arguments.json, record);
  if (me == 0 && arguments.json.empty()) {
    std::cout << fmt::format("{} {} {}: {}, {}, {:.3f} ms, {}\n", arguments.bench, arguments.mode, HEADWAY_PEER_MPI,
                             base::counted(pes, "rank"), bench::speed_of(record),
                             record["seconds"]["median"].get<double>() * 1e3, verified ? "verified" : "WRONG")
              << std::flush;
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::peers

int main(int argc, char** argv) {
  headway::peers::Arguments arguments;
  if (const auto status = headway::peers::parse(argc, argv, arguments)) return *status;
  MPI_Init(&argc, &argv);
  const int status = headway::peers::run(arguments);
  MPI_Finalize();
  return status;
}
