// SPDX-License-Identifier: BSD-3-Clause
/// Shared by headway-reduce and its peers: the work as options, the part that each PE gives, and the result.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <headway/base/counted.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::bench {

/// cpu: processor time of reductions under skew; latency: of one collective after the other.
inline const std::vector<std::string> reduce_measures = {"cpu", "latency"};
inline const std::vector<std::string> reduce_calls = {"reduce", "allreduce", "barrier"};
/// bypass: calls return a future, and the PE takes its value later; blocking: the PE waits for each call at once.
inline const std::vector<std::string> reduce_ways = {"bypass", "blocking"};

inline constexpr std::uint64_t reduce_elements_max = 1 << 20, reduce_iterations_max = std::uint64_t(1) << 32,
                               reduce_looks_max = 1000;
inline constexpr double reduce_us_max = 1e6;  // of skew, and of the delay beyond it

struct ReduceWork {
  std::string measure = reduce_measures.front();
  std::string call = reduce_calls.front();  // of latency; cpu is of reduce
  std::size_t elements = 1;                 // of cpu, as are the next four; latency is of one
  double skew_us_max = 1000;
  double settle_us = 500;  // the catch-up delay is this and the largest skew
  std::uint64_t looks = 0;
  std::uint64_t iterations = 0;  // 0: 1000 of cpu, 20000 of latency

  bool of_cpu() const { return measure == reduce_measures.front(); }
  std::uint64_t iterations_or_default() const { return iterations != 0 ? iterations : of_cpu() ? 1000 : 20'000; }
  /// So many before, which do not count.
  std::uint64_t warming() const { return iterations_or_default() / 20 + 5; }
};

// Texts of options that the programs and `headway bench` have.
inline constexpr const char* reduce_measure_help = "cpu (of reductions under skew), latency (of one after the other)";
inline constexpr const char* reduce_settle_help =
    "cpu: us by which the delay after each call is longer than the largest skew [500]";
inline constexpr const char* reduce_looks_help =
    "cpu: how often a PE looks into the library during the delay after its call [0]";
inline constexpr const char* reduce_iterations_help = "how many calls are measured [cpu 1000, latency 20000]";

inline double parse_us(const char* option, const std::string& text) {
  return parse_number(option, text, 0, reduce_us_max);
}

/// Adds the options of a work. `of` begins their help, "reduce: " where the program has others.
inline void add_reduce_options(CommandLine& app, ReduceWork& work, const std::string& of = "") {
  app.add_choice("--measure", "NAME", of + reduce_measure_help + " [cpu]", work.measure, reduce_measures);
  app.add_choice("--call", "NAME", of + "latency: reduce, allreduce, barrier [reduce]", work.call, reduce_calls);
  app.add_count("--elements", "N", of + "cpu: numbers of 8 bytes that each PE gives [1]", work.elements, 1,
                reduce_elements_max);
  app.add_number("--skew-us", "US", of + "cpu: a PE comes by 0 to so many us late, at random [1000]", work.skew_us_max,
                 0, reduce_us_max);
  app.add_number("--settle-us", "US", of + reduce_settle_help, work.settle_us, 0, reduce_us_max);
  app.add_count("--looks", "N", of + reduce_looks_help, work.looks, 0, reduce_looks_max);
  app.add_count("--iterations", "N", of + reduce_iterations_help, work.iterations, 1, reduce_iterations_max);
}

/// The PEs' parts and their sum, in iteration `i`: whole numbers, so that sums of doubles are exact in any order.
class ReduceValues {
 public:
  ReduceValues(std::size_t me, std::size_t pes) : me_(me), pes_(double(pes)) {}

  void fill(std::span<double> given, std::uint64_t i) const {
    const double first = double(me_ + 1) * turn(i);
    for (std::size_t e = 0; e < given.size(); ++e) given[e] = first + double(e);
  }
  std::uint64_t errors(std::span<const double> sum, std::uint64_t i) const {
    const double first = pes_ * (pes_ + 1) / 2 * turn(i);
    std::uint64_t errors = 0;
    for (std::size_t e = 0; e < sum.size(); ++e) errors += sum[e] != first + pes_ * double(e);
    return errors;
  }

 private:
  static double turn(std::uint64_t i) { return double(i % 1024 + 1); }

  std::size_t me_;
  double pes_;
};

/// Of a call.
inline std::size_t reduce_elements(const ReduceWork& work) {
  return work.of_cpu() ? work.elements : work.call == "barrier" ? 0 : 1;
}

/// Adds the work to a record.
inline void add_reduce_work(Json& record, const ReduceWork& work) {
  record["measure"] = work.measure;
  record["call"] = work.of_cpu() ? "reduce" : work.call;
  record["elements"] = reduce_elements(work);
  record["iterations"] = work.iterations_or_default();
  if (!work.of_cpu()) return;
  record["skew_us_max"] = work.skew_us_max;
  record["settle_us"] = work.settle_us;
  record["looks"] = work.looks;
}

/// "cpu of reduce, 32 elements, skew up to 1000 us", "latency of barrier".
inline std::string reduce_title(const std::string& measure, const std::string& call, std::size_t elements,
                                double skew_us_max) {
  if (measure != reduce_measures.front()) return fmt::format("{} of {}", measure, call);
  return fmt::format("{} of {}, {}, {}", measure, call, base::counted(elements, "element"),
                     skew_us_max > 0 ? fmt::format("skew up to {:g} us", skew_us_max) : "no skew");
}
inline std::string reduce_title(const Json& record) {
  return reduce_title(record["measure"], record["call"], record["elements"], record.value("skew_us_max", 0.0));
}

}  // namespace headway::bench
