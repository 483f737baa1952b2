// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdlib>
#include <reduce/latency.hpp>
#include <reduce/skew.hpp>
#include <reduce/work.hpp>

#include "peer.hpp"

namespace headway::peers {
namespace {

/// MPI_Reduce: all is done in the call.
class Blocking {
 public:
  static constexpr bool by_thread = false;
  explicit Blocking(std::size_t elements) : sum_(elements) {}
  void begin(std::span<const double> given) {
    MPI_Reduce(given.data(), sum_.data(), int(given.size()), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  }
  void look() {}
  std::span<const double> end() { return sum_; }

 private:
  std::vector<double> sum_;
};

/// MPI_Ireduce, and MPI_Wait at the end of the iteration; a look is an MPI_Test.
class Split {
 public:
  static constexpr bool by_thread = false;
  explicit Split(std::size_t elements) : sum_(elements) {}
  void begin(std::span<const double> given) {
    MPI_Ireduce(given.data(), sum_.data(), int(given.size()), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD, &request_);
  }
  void look() {
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
  }
  std::span<const double> end() {
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    return sum_;
  }

 private:
  std::vector<double> sum_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

struct BlockingCalls {
  double reduce(double given, std::size_t root) {
    double sum = 0;
    MPI_Reduce(&given, &sum, 1, MPI_DOUBLE, MPI_SUM, int(root), MPI_COMM_WORLD);
    return sum;
  }
  double allreduce(double given) {
    double sum = 0;
    MPI_Allreduce(&given, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
};

struct SplitCalls {
  double reduce(double given, std::size_t root) {
    double sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ireduce(&given, &sum, 1, MPI_DOUBLE, MPI_SUM, int(root), MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum;
  }
  double allreduce(double given) {
    double sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&given, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum;
  }
  void barrier() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
};

bench::ReduceWorld make_world() {
  int me = 0, pes = 1, here = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  if (!bench::time_is_simulated) {
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
  }
  return {.me = std::size_t(me),
          .pes = std::size_t(pes),
          .pes_per_process = 1,
          .one_clock = bench::time_is_simulated || here == pes,
          .meet = [] { MPI_Barrier(MPI_COMM_WORLD); },
          .sum =
              [](double value) {
                double sum = 0;
                MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                return sum;
              },
          .latest =
              [](std::int64_t value) {
                std::int64_t latest = 0;
                MPI_Allreduce(&value, &latest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
                return latest;
              }};
}

}  // namespace

bench::Json run_reduce(const Arguments& arguments) {
  const bench::ReduceWork& work = arguments.reduce;
  const bench::ReduceWorld world = make_world();
  const bool split = arguments.mode == "mpi-ireduce";
  bench::Json record;
  const auto begin_record = [&](double seconds, std::uint64_t errors) {
    record = make_peer_record(arguments, sizeof(double) * bench::reduce_elements(work),
                              work.iterations_or_default() * world.pes, seconds, errors);
    record["errors"] = errors;
    bench::add_reduce_work(record, work);
  };
  if (work.of_cpu()) {
    const auto measure = [&](auto reduction) {
      const bench::SkewResult result = bench::measure_skew(work, world, reduction, world.meet);
      begin_record(result.seconds, result.errors);
      bench::add_skew_result(record, result);
    };
    split ? measure(Split(work.elements)) : measure(Blocking(work.elements));
  } else {
    const auto measure = [&](auto calls) {
      const bench::LatencyResult result = bench::measure_latency(work, world, calls);
      begin_record(result.seconds, result.errors);
      bench::add_latency_result(record, result);
    };
    split ? measure(SplitCalls()) : measure(BlockingCalls());
  }
  return record;
}

}  // namespace headway::peers
