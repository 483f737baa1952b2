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
                                    {"amr", {"mpi-isend"}, false, 1, 24, 1, run_amr},
                                    {"radix", sample_modes(), false, 1, 4, 1, run_sample},
                                    {"sample", sample_modes(), false, 1, 4, 1, run_sample}};

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
  arguments.sorting.seed = base::Settings::from_environment().seed;
  if (arguments.bench == "halo") {
    arguments.halo.seed = base::Settings::from_environment().seed;
    arguments.halo.complete();
  }
  if (arguments.messages == 0) arguments.messages = bench::default_messages(arguments.bench, arguments.bytes);
}

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("The benchmarks' work on plain MPI (" HEADWAY_PEER_MPI "); start it under that MPI's mpirun.",
                         "headway-peer-" HEADWAY_PEER_MPI);
  app.add_positional(
      "bench", fmt::format("{}", fmt::join(names(), ", ")),
      [&](const std::string& t) { arguments.bench = bench::parse_choice("bench", t, names()); }, true);
  app.add_text(
      "--mode", "NAME",
      "mpi-alltoallv or mpi-direct; mpi-direct for bfs; mpi-isend for amr; mpi for pingpong and zerocopy; mpi or "
      "mpi-ireduce for reduce; isend, persistent, neighbor-v, neighbor-w, partitioned (with MPI 4), petsc, tpetra for "
      "halo; mpi-samplesort, mpi-samplesort-radix, std-sort for radix and sample",
      arguments.mode);
  app.add_count("--log2", "K", "randomaccess: 2^K words in all", arguments.log2, 1, randomaccess::log2_max);
  app.add_number("--updates-per-word", "N", "randomaccess: updates in all are N * 2^K [4]", arguments.updates_per_word,
                 0, 1e9);
  app.add_count("--bytes", "N",
                "bytes of a message, of randomaccess and zerocopy 8 or more [8; synthetic 100, zerocopy 64 KiB]",
                arguments.bytes, 1, bench::peer_bytes_max);
  app.add_count("--messages", "M", "not randomaccess: messages from each rank to each, or round trips [by size]",
                arguments.messages, 1, 1ull << 40);
  app.add_value("--buffer-bytes", "SIZE", "mpi-alltoallv: bytes of a bucket [64K]", [&](const std::string& t) {
    arguments.buffer_bytes = base::parse_bytes("--buffer-bytes", t);
    if (arguments.buffer_bytes < 8 || arguments.buffer_bytes > 64_MiB) {
      throw SettingError(fmt::format("--buffer-bytes: '{}' is not allowed; allowed is 8 to 64M", t));
    }
  });
  app.add_choice("--buffers", "NAME", "zerocopy: reused (the same for all messages) or fresh (in no cache) [reused]",
                 arguments.buffers, bench::buffer_kinds);
  app.add_flag("--touch", "zerocopy: the receiver adds up the words of each message", arguments.touch);
  bench::add_reduce_options(app, arguments.reduce, "reduce: ");
  app.add_flag("--list-modes", "print the modes of the benchmark, one a line", arguments.list_modes);
  bench::add_halo_options(app, arguments.halo, "halo: ");
  app.add_count("--scale", "N", "bfs: 2^N vertices [16]", arguments.graph.scale, 1, 30);
  app.add_count("--edge-factor", "N", "bfs: edges for each vertex [16]", arguments.graph.edge_factor, 1, 1024);
  app.add_count("--roots", "N", "bfs: searches, from vertices that have edges [4]", arguments.roots, 1, 1024);
  app.add_flag("--every-edge", "bfs: a message for each edge, also to vertices that the rank has sent to before",
               arguments.every_edge);
  app.add_count("--keys", "N", "radix, sample: keys of all ranks together [2^22]", arguments.sorting.keys, 1,
                sorting::keys_max);
  app.add_count("--distinct", "N", "radix, sample: keys are below this number [2^32]", arguments.sorting.distinct, 1,
                std::uint64_t(1) << 32);
  amr::add_options(app, arguments.amr, "amr: ");
  app.add_json(arguments.json);
  const auto status = app.parse(argc, argv, [&] {
    if (arguments.list_modes) return;
    if (app.given("--elements")) arguments.halo.elements = arguments.reduce.elements;
    complete(arguments);
  });
  if (status || !arguments.list_modes) return status;
  for (const std::string& mode : bench_of(arguments).modes) std::puts(mode.c_str());
  return 0;
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
