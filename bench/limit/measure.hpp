// SPDX-License-Identifier: BSD-3-Clause
/// Measures one case in its formulations; declares its options and its results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "processes.hpp"

namespace headway::limit {

/// The type of a message: a struct of a size that the compiler knows, bytes of any number read in place, a vector, or a
/// vector and a string (`struct`).
enum class Type { fixed, bytes, vector, parts };

enum class Pattern { one_way, both_ways, pairs, others };

/// The user's request. Sizes are in range, and fit each other.
struct Options {
  std::string bench = "ring";
  std::size_t pes = 2;
  Pattern pattern = Pattern::both_ways;
  std::size_t bytes = 8;  // of a message or a copy
  Type type = Type::fixed;
  std::uint64_t messages = 1'000'000;               // of each PE that sends
  unsigned table_log2 = 0;                          // 0: no table
  std::size_t buffer_bytes = 0;                     // 0: several are tried
  std::size_t buffers = 0;                          // of a ring; 0: several are tried
  bool fresh = false;                               // of trips: no message lies where one of those before it did
  std::size_t buffer_stride = 0, buffer_count = 1;  // of trips: what each PE sends from, and receives to
  bool bind = true;
};

inline constexpr std::size_t formulations_max = 192;

/// The parts of a run of round trips. The run's time is that of the median part, as in headway-pingpong and its peers.
inline constexpr std::uint64_t trip_parts = 20;

/// The result of the processes; lies in shared memory, PE 0 writes it.
struct Outcome {
  std::size_t winner;              // of the formulations
  double seconds;                  // of the winner's pass over all messages, on the slowest PE
  std::uint64_t messages;          // in that pass, of all PEs
  std::uint64_t errors;            // of all passes, tried ones too
  double tried[formulations_max];  // seconds of a short pass of each formulation, the best of some
  std::uint64_t tried_messages;    // in those, of all PEs
  char unavailable[256];           // why this machine does not do this, where it does not
};

/// A case, ready to be started.
struct Job {
  std::vector<std::string> formulations;
  std::vector<std::size_t> buffer_bytes, buffers;  // by formulation, or empty
  std::size_t shared_bytes = 0;
  /// On every PE. `only` is the one formulation to run, if not all.
  std::function<void(Pe& pe, std::byte* shared, std::optional<std::size_t> only, Outcome& outcome)> body;
};

Job updates_job(const Options& options);
Job ring_job(const Options& options);
Job latency_job(const Options& options);   // of 8 bytes
Job pingpong_job(const Options& options);  // of more
Job copy_job(const Options& options);
Job cma_job(const Options& options);
/// Messages between memory of the one and of the other, there and back.
Job mapped_trips_job(const Options& options);
Job pieces_trips_job(const Options& options);
Job cma_trips_job(const Options& options);

/// Collective. Passes over `messages` in at most `parts` parts; the seconds of all of them, had each message taken what
/// one of the median part took.
template <class Pass>
double seconds_in_parts(Pe& pe, std::uint64_t messages, std::uint64_t parts, Pass pass) {
  std::vector<double> seconds_a_message;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t some = messages * (part + 1) / parts - messages * part / parts;
    if (some > 0) seconds_a_message.push_back(pe.largest_of_all(pass(some)) / double(some));
  }
  const auto middle = seconds_a_message.begin() + std::ptrdiff_t(seconds_a_message.size() / 2);
  std::ranges::nth_element(seconds_a_message, middle);
  return *middle * double(messages);
}

/// Collective. Short passes of all formulations, interleaved, find the fastest. Another pass of that one alone is the
/// measurement: the shortest of many tries would be luckier than the program compared with it. pass(formulation,
/// messages), called alike on every PE between meetings of all, does the PE's share and returns its seconds. The
/// measurement is in `parts` where the program compared with it measures in parts.
template <class Pass>
void measure_best(Pe& pe, std::size_t formulations, std::optional<std::size_t> only, std::uint64_t tried,
                  std::uint64_t messages, Outcome& outcome, Pass pass, std::uint64_t parts = 1) {
  constexpr int rounds = 4;
  const double never = std::numeric_limits<double>::infinity();
  std::vector<double> best(formulations, never);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < formulations; ++i) {
      if (only && *only != i) continue;
      best[i] = std::min(best[i], pe.largest_of_all(pass(i, tried)));
    }
  }
  const auto winner = std::size_t(std::ranges::min_element(best) - best.begin());
  const double seconds = seconds_in_parts(pe, messages, parts, [&](std::uint64_t some) { return pass(winner, some); });
  if (pe.id() != 0) return;
  outcome.winner = winner;
  outcome.seconds = seconds;
  for (std::size_t i = 0; i < formulations; ++i) outcome.tried[i] = best[i] == never ? 0 : best[i];
}

/// Round trips of messages numbered from 1 on. play(formulation, number of the first, trips) does the PE's share, and
/// returns how many messages were wrong.
template <class Play>
class RoundTrips {
 public:
  RoundTrips(Pe& pe, Play play) : pe_(&pe), play_(std::move(play)) {}

  /// Collective. The PE's seconds.
  double pass(std::size_t formulation, std::uint64_t trips) {
    pe_->meet_all();
    const double begin = now();
    wrong_ += play_(formulation, number_, trips);
    number_ += trips;
    return now() - begin;
  }

  /// Collective. measure_best() of `trips`.
  void measure(std::size_t formulations, std::optional<std::size_t> only, std::uint64_t tried, std::uint64_t trips,
               Outcome& outcome) {
    measure_best(
        *pe_, formulations, only, tried, trips, outcome,
        [this](std::size_t formulation, std::uint64_t some) { return pass(formulation, some); }, trip_parts);
    const std::uint64_t errors = pe_->sum_of_all(wrong_);
    if (pe_->id() != 0) return;
    outcome.messages = 2 * trips;
    outcome.tried_messages = 2 * tried;
    outcome.errors = errors;
  }

 private:
  Pe* pe_;
  Play play_;
  std::uint64_t number_ = 1, wrong_ = 0;
};

}  // namespace headway::limit
