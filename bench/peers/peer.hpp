// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the benchmarks of a peer: the arguments, and the record of a run.
#pragma once

#include <mpi.h>

#include <amr/simulation.hpp>
#include <cstddef>
#include <cstdint>
#include <graph/kronecker.hpp>
#include <halo/work.hpp>
#include <record/record.hpp>
#include <reduce/work.hpp>
#include <sorting/keys.hpp>
#include <string>
#include <vector>

namespace headway::peers {

struct Arguments {
  std::string bench = "randomaccess";
  bool list_modes = false;
  std::string mode;  // empty: the first that the benchmark has
  unsigned log2 = 20;
  double updates_per_word = 4;
  std::size_t bytes = 0;       // 0: the benchmark's
  std::uint64_t messages = 0;  // 0: by size
  std::size_t buffer_bytes = std::size_t(64) << 10;
  std::string buffers = "reused";  // of zerocopy, as is the next
  bool touch = false;
  bench::ReduceWork reduce;  // of reduce
  bench::HaloWork halo;
  graph::KroneckerOptions graph{.scale = 16};  // of bfs, as are the next two
  std::uint64_t roots = 4;
  bool every_edge = false;
  headway::amr::Options amr;                         // of amr
  headway::sorting::Input sorting{.keys = 1 << 22};  // of radix and sample
  std::string json;                                  // a file, "-", or empty for a line on standard output
};

/// The modes of run_halo() that this MPI has.
const std::vector<std::string>& halo_modes();
const std::vector<std::string>& sample_modes();

/// Collective on MPI_COMM_WORLD. The record is rank 0's; the others' are partial.
bench::Json run_randomaccess(const Arguments& arguments);
bench::Json run_pingpong(const Arguments& arguments);
bench::Json run_zerocopy(const Arguments& arguments);
bench::Json run_reduce(const Arguments& arguments);
bench::Json run_halo(const Arguments& arguments);
bench::Json run_bfs(const Arguments& arguments);
bench::Json run_amr(const Arguments& arguments);
/// radix, sample: both sort the same keys.
bench::Json run_sample(const Arguments& arguments);
/// stream, staggered, synthetic.
bench::Json run_messages(const Arguments& arguments);

/// The most seconds any rank took.
double slowest(double seconds);
std::uint64_t total(std::uint64_t count);

/// The common fields; verified when no rank has an error.
bench::Json make_peer_record(const Arguments& arguments, std::size_t message_bytes, std::uint64_t messages,
                             double seconds, std::uint64_t errors);

}  // namespace headway::peers
