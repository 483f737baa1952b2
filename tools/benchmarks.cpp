// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"

#include <algorithm>
#include <halo/work.hpp>
#include <reduce/work.hpp>
#include <zerocopy/ways.hpp>

namespace headway::tools {

const std::vector<WorkOption>& work_options() {
  static const std::vector<WorkOption> all = {
      {"--scale", "N", "2^N vertices [16]"},
      {"--edge-factor", "N", "edges for each vertex [16]"},
      {"--roots", "N", "searches, from vertices that have edges [4]"},
      {"--every-edge", "", "a message for each edge, also to vertices that the PE has sent to before"},
      {"--processes-per-pe", "N", "simulated processes for each PE [256]"},
      {"--events", "N", "events of each process at first [100]"},
      {"--words", "N", "of 8 bytes, mean content of an event [8]"},
      {"--end-time", "T", "events from then on are not handled [40]"},
      {"--cells", "X,Y,Z", "cells in all [16 for each PE, or somewhat more]"},
      {"--particles", "N", "of a cell [27]"},
      {"--corner", "", "cells outside of one corner have a sixteenth of the particles"},
      {"--side", "N", "a block has N x N cells [32]"},
      {"--blocks-per-pe", "N", "blocks, for each PE [4]"},
      {"--steps", "N", "of time [leanmd: 100, stencil: 10]"},
      {"--no-serial", "", "verify without the same on one processor"},
      {"--keys", "N", "keys of 32 bits, of all PEs together [2^22]"},
      {"--distinct", "N", "keys are below this number [2^32]"},
  };
  return all;
}

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<std::string> on_mpi = {"mpi-direct", "mpi-alltoallv"};
  static const std::vector<std::string> sorts = {"mpi-samplesort", "mpi-samplesort-radix", "std-sort"};
  static const std::vector<Benchmark> all = {
      {.name = "randomaccess",
       .help = "updates at random words of a table spread over all PEs (HPC Challenge)",
       .peers = {"mpi-direct", "mpi-alltoallv", "hpcc"},
       .has_table = true,
       .has_updates = true,
       .has_sizes = true,
       .has_types = true,
       .bytes_min = 8,
       .has_count = false},
      {.name = "pingpong",
       .help = "pairs of PEs, one message to the partner and back",
       .peers = {"mpi"},
       .has_sizes = true,
       .has_types = true,
       .has_messages = true,
       .pairs = true},
      {.name = "stream",
       .help = "pairs of PEs, each sends messages of one size to its partner at once",
       .peers = on_mpi,
       .has_sizes = true,
       .has_types = true,
       .sends_ranges = true,
       .has_messages = true,
       .pairs = true},
      {.name = "staggered",
       .help = "as stream, with an acknowledgement per 100 messages",
       .peers = on_mpi,
       .has_sizes = true,
       .has_types = true,
       .has_messages = true,
       .pairs = true},
      {.name = "synthetic",
       .help = "among all PEs, each waits for 100 messages to everybody to be acknowledged",
       .peers = on_mpi,
       .has_sizes = true,
       .has_types = true,
       .has_messages = true,
       .bytes = "100"},
      {.name = "indexgather",
       .help = "reads at random words of a table spread over all PEs",
       .ways = {"get", "read", "local"},
       .has_table = true,
       .has_gathers = true,
       .has_ways = true,
       .has_limit = false,
       .has_count = false},
      {.name = "zerocopy",
       .help = "pairs of PEs, one large message to the partner and back, out of memory that stays as it is",
       .peers = {"mpi", "ucx"},
       .modes = {"direct"},
       .ways = bench::zerocopy_ways,
       .memories = bench::zerocopy_memories,
       .has_ways = true,
       .has_sizes = true,
       .has_buffers = true,
       .has_messages = true,
       .has_memory = true,
       .pairs = true,
       .bytes = "65536",
       .bytes_min = 8},
      {.name = "reduce",
       .help = "reductions whose PEs come late: processor time of each call; latency of collectives",
       .peers = {"mpi", "mpi-ireduce"},
       .modes = {""},
       .ways = bench::reduce_ways,
       .has_ways = true,
       .has_limit = false,
       .has_skew = true,
       .has_elements = true,
       .takes_modes = false,
       .has_count = false,
       .has_aggregator = false},
      {.name = "halo",
       .help = "halo exchanges of arrays by a plan, and the packing loop alone",
       .peers = {"isend", "persistent", "neighbor-v", "neighbor-w", "partitioned", "petsc", "tpetra"},
       .modes = bench::halo_modes,
       .memories = bench::halo_memories,
       .has_limit = false,
       .has_elements = true,
       .has_memory = true,
       .has_cases = true,
       .own_modes = bench::halo_modes,
       .has_count = false,
       .has_aggregator = false},
      {.name = "bfs",
       .help = "Graph500's breadth-first search, a message for each edge",
       .peers = {"mpi-direct"},
       .options = {"--scale", "--edge-factor", "--roots", "--every-edge"},
       .on_elements = true,
       .bytes = "16",
       .has_count = false},
      {.name = "sssp",
       .help = "Graph500's shortest paths, a message for each edge that is looked along",
       .options = {"--scale", "--edge-factor", "--roots", "--no-serial"},
       .has_limit = false,
       .on_elements = true,
       .has_count = false},
      {.name = "phold",
       .help = "discrete-event simulation, a message for each event",
       .options = {"--processes-per-pe", "--events", "--words", "--end-time", "--no-serial"},
       .has_limit = false,
       .on_elements = true,
       .has_count = false},
      {.name = "leanmd",
       .help = "molecular dynamics, a message for each cell's particles to each couple that computes with them",
       .options = {"--cells", "--particles", "--corner", "--steps", "--no-serial"},
       .has_limit = false,
       .on_elements = true,
       .has_count = false},
      {.name = "stencil",
       .help = "5-point stencil on blocks, a message for each cell at an edge",
       .options = {"--side", "--blocks-per-pe", "--steps"},
       .has_limit = false,
       .on_elements = true,
       .has_count = false},
      {.name = "radix",
       .help = "radix sort, a message for each key of a pass, or in bulk",
       .peers = sorts,
       .modes = {"1d"},
       .ways = {"store", "bulk"},
       .options = {"--keys", "--distinct"},
       .has_ways = true,
       .has_limit = false,
       .has_count = false},
      {.name = "sample",
       .help = "sample sort, a message for each key, sorted on each PE by std::sort or by radix",
       .peers = sorts,
       .modes = {"1d"},
       .ways = {"std", "radix"},
       .options = {"--keys", "--distinct"},
       .has_ways = true,
       .has_limit = false,
       .has_count = false},
      {.name = limit_mode,
       .help = "what this machine allows, by hand-written loops without Headway: updates, messages, latency, copies",
       .takes_modes = false,
       .has_modes = false,
       .has_aggregator = false},
  };
  return all;
}

const Benchmark& benchmark(std::string_view name) { return *std::ranges::find(benchmarks(), name, &Benchmark::name); }

std::vector<std::string> names_of(bool Benchmark::*has) {
  std::vector<std::string> names;
  for (const Benchmark& one : benchmarks()) {
    if (one.*has) names.push_back(one.name);
  }
  return names;
}

std::vector<std::string> names_with(const std::string& option) {
  std::vector<std::string> names;
  for (const Benchmark& one : benchmarks()) {
    if (std::ranges::find(one.options, option) != one.options.end()) names.push_back(one.name);
  }
  return names;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Benchmark& one : benchmarks()) names.push_back(one.name);
  return names;
}

}  // namespace headway::tools
