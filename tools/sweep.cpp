// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace headway::tools {
namespace {

double fastest_of(const Candidate& candidate) { return *std::ranges::min_element(candidate.seconds); }

/// How many of `left` challengers go on to the next round.
std::size_t half_of(std::size_t left) { return (left + 1) / 2; }

}  // namespace

std::string Candidate::name() const {
  std::string text;
  for (const Variable& setting : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.name, setting.value);
  }
  return text.empty() ? "the defaults" : text;
}

std::vector<Candidate> candidates(std::size_t pes) {
  std::vector<Candidate> all(1);  // the defaults
  std::vector<std::string> topologies = {"1d"};
  if (pes > 4) topologies.emplace_back("2d");
  for (const std::string& topology : topologies) {
    for (const char* buffer : {"1K", "4K", "16K", "64K", "256K"}) {
      for (const char* threshold : {"0.5", "0.9"}) {
        all.push_back(
            {{{"HEADWAY_BUFFER_BYTES", buffer}, {"HEADWAY_TOPOLOGY", topology}, {"HEADWAY_THRESHOLD", threshold}}});
      }
    }
  }
  return all;
}

std::size_t runs_of_sweep(std::size_t candidates, std::size_t pairs) {
  std::size_t runs = 2 * pairs;
  for (std::size_t left = candidates - 1; left > 0; left = left == 1 ? 0 : half_of(left)) runs += left;
  return runs;
}

Sweep find_fastest(std::vector<Candidate> all, std::size_t pairs, const Measure& measure,
                   const std::function<bool()>& in_time) {
  Sweep sweep{std::move(all)};
  // Whether it has seconds now; it is cut short, has failed, or neither.
  auto run_once = [&](Candidate& candidate) {
    sweep.cut_short = sweep.cut_short || !in_time();
    if (sweep.cut_short || candidate.failed) return false;
    const auto seconds = measure(candidate);
    if (seconds)
      candidate.seconds.push_back(*seconds);
    else if (in_time())
      candidate.failed = true;
    else
      sweep.cut_short = true;
    return seconds.has_value();
  };
  std::vector<std::size_t> left(sweep.candidates.size() - 1);  // the challengers
  std::iota(left.begin(), left.end(), std::size_t(1));
  while (!left.empty()) {
    for (const std::size_t i : left) run_once(sweep.candidates[i]);
    if (sweep.cut_short) return sweep;
    std::erase_if(left, [&](std::size_t i) { return sweep.candidates[i].failed; });
    std::ranges::stable_sort(left, {}, [&](std::size_t i) { return fastest_of(sweep.candidates[i]); });
    if (left.size() <= 1) break;
    left.resize(half_of(left.size()));
  }
  if (left.empty()) return sweep;

  sweep.fastest = left.front();
  Candidate& defaults = sweep.candidates.front();
  Candidate& winner = sweep.candidates[sweep.fastest];
  std::vector<double> ratios;
  while (ratios.size() < pairs && run_once(defaults) && run_once(winner)) {
    ratios.push_back(winner.seconds.back() / defaults.seconds.back());
  }
  sweep.pairs = ratios.size();
  if (!winner.failed && !defaults.failed && !ratios.empty()) sweep.ratio = bench::spread_of(ratios);
  return sweep;
}

}  // namespace headway::tools
