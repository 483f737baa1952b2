// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sensitivity_result.hpp"

namespace headway::tools {
namespace {

// Slowdowns below are taken as none: this much two runs of the same program differ.
constexpr double felt = 1.1;
// A dial that the program tolerates: the slowdown at the largest value that was set.
constexpr double tolerated = 1.5;
// A method that is off by more leaves something unexplained.
constexpr double explained = 0.15;
constexpr double imbalance_min = 1.3;

struct Finding {
  double gain;  // slowdown that a change may remove; orders the sentences
  std::string text;
};

const char* meaning_of(const std::string& dial) {
  if (dial == "o") return "overhead, processor time for each frame";
  if (dial == "item_o") return "processor time for each message";
  if (dial == "g") return "gap, the time between two frames";
  if (dial == "L") return "latency";
  return "the time of each byte";
}

std::string unit_of(const DialSweep& sweep) { return sweep.is_per_byte() ? "ns/B" : "us"; }

std::string of_dial(const SweepCurve& curve) {
  const DialSweep& sweep = curve.sweep;
  const std::string at = sweep.text(curve.points.back().value);
  const double slowdown = curve.largest();
  if (slowdown < felt) {
    return fmt::format("{} ({}): not felt. With {} more the run takes {:.2f} times as long.", sweep.name,
                       meaning_of(sweep.name), at, slowdown);
  }
  const std::string text =
      fmt::format("{} ({}): {}. With {} more the run takes {:.3g} times as long", sweep.name, meaning_of(sweep.name),
                  slowdown < tolerated ? "tolerated" : "sensitive", at, slowdown);
  if (curve.points.size() < 2) return text + ".";
  return text + fmt::format("; each {} adds {:.3g} % ({}, R^2 {:.3f}).", unit_of(sweep), curve.fit.slope * 100,
                            curve.fit.r2 >= 0.98 ? "linear" : "not linear", curve.fit.r2);
}

const SweepCurve* curve_of(const Panel& panel, std::string_view name) {
  const auto found = std::ranges::find(panel.curves, name, [](const SweepCurve& c) { return c.sweep.name; });
  return found == panel.curves.end() ? nullptr : &*found;
}

double largest_of(const Panel& panel, std::string_view name) {
  const SweepCurve* curve = curve_of(panel, name);
  return curve == nullptr ? 1 : curve->largest();
}

/// Frames without those of the runtime itself.
double data_frames(const RunCounts& counts) {
  return counts.mean(&PeRow::frames_sent) - counts.mean(&PeRow::control_frames);
}

void advise_aggregation(const Panel& panel, std::vector<Finding>& findings) {
  const double cost = std::max({largest_of(panel, "o"), largest_of(panel, "g"), largest_of(panel, "item_o")});
  const RunCounts& counts = panel.plain.counts;
  const double frames = data_frames(counts), messages = counts.mean(&PeRow::messages_in_frames);
  if (cost < felt || frames < 1 || messages / frames >= 4) return;
  const double receivers = std::max(counts.mean(&PeRow::receivers), 1.0);
  const double per_turn = frames / std::max(counts.mean(&PeRow::turns), 1.0) / receivers;
  if (per_turn < 2) {
    findings.push_back(
        {cost, fmt::format("A frame carries {:.1f} messages, and a PE waits after {:.1f} frames for each receiver, so "
                           "buffers would not fill. Let each PE do more independent work between waits; then "
                           "aggregate.",
                           messages / frames, per_turn)});
    return;
  }
  findings.push_back({cost, fmt::format("Aggregate: a frame carries {:.1f} messages, and a PE sends {:.0f} frames to "
                                        "each receiver before it waits. With buffers (`--mode 1d`, or an Aggregator) "
                                        "about that many times fewer frames suffice.",
                                        messages / frames, per_turn)});
}

void advise_reads(const Panel& panel, std::vector<Finding>& findings) {
  const double cost = std::max(largest_of(panel, "L"), largest_of(panel, "o"));
  const RunCounts& counts = panel.plain.counts;
  const double reads = counts.max(&PeRow::reads), frames = counts.max(&PeRow::frames_sent);
  if (cost < felt || frames < 1 || reads < 0.05 * frames) return;
  findings.push_back({cost, fmt::format("Prefetch reads: the busiest PE waits {:.0f} times for an answer ({:.0f} % of "
                                        "its frames), and each wait takes the latency twice. Ask for several values "
                                        "before waiting, or let owners send them.",
                                        reads, 100 * reads / frames)});
}

void advise_turns(const Panel& panel, std::vector<Finding>& findings) {
  const double cost = largest_of(panel, "L");
  const RunCounts& counts = panel.plain.counts;
  const double turns = counts.max(&PeRow::turns), reads = counts.max(&PeRow::reads);
  if (cost < felt || turns < 2 * reads + 1) return;
  findings.push_back({cost, fmt::format("Overlap: the busiest PE waits {:.0f} times for others after it has sent, on "
                                        "average every {:.3g} us. Send earlier, or work on something else before the "
                                        "wait.",
                                        turns, panel.plain.seconds * 1e6 / turns)});
}

void advise_bytes(const Panel& panel, std::vector<Finding>& findings) {
  const double cost = largest_of(panel, "G");
  const RunCounts& counts = panel.plain.counts;
  const double bytes = counts.mean(&PeRow::bytes_sent), payload = counts.mean(&PeRow::payload_bytes);
  if (cost < felt || bytes < 1) return;
  std::string text = fmt::format("Send fewer bytes: {:.3g} MB leave each PE", bytes * 1e-6);
  if (payload > 0 && payload < 0.7 * bytes)
    text += fmt::format(", and {:.0f} % of them are headers: larger messages need fewer", 100 * (1 - payload / bytes));
  findings.push_back({cost, text + "."});
}

void advise_balance(const Panel& panel, std::vector<Finding>& findings) {
  const RunCounts& counts = panel.plain.counts;
  double most = 0, sum = 0;
  std::size_t busiest = 0;
  for (std::size_t pe = 0; pe < counts.rows.size(); ++pe) {
    const double frames = counts.rows[pe].frames_sent + counts.rows[pe].frames_received;
    sum += frames;
    if (frames > most) most = frames, busiest = pe;
  }
  const double mean = sum / double(std::max<std::size_t>(counts.rows.size(), 1));
  const double cost = std::max(largest_of(panel, "o"), largest_of(panel, "g"));
  if (cost < felt || mean < 1 || most / mean < imbalance_min) return;
  findings.push_back({1 + (cost - 1) * (1 - mean / most),
                      fmt::format("Balance: PE {} sends and gets {:.0f} frames, {:.2f} times the mean of all PEs, and "
                                  "the others wait for it.",
                                  busiest, most, most / mean)});
}

/// The formulas know the busiest PE alone: time beyond theirs is in chains through several PEs.
void explain_chains(const Panel& panel, std::vector<Finding>& findings) {
  const SweepCurve* overhead = curve_of(panel, "o");
  if (overhead == nullptr || overhead->largest() < felt) return;
  const SweepPoint& last = overhead->points.back();
  const PredictedSlowdown* formula = last.by("formula");
  if (formula == nullptr || last.slowdown.median < formula->slowdown * (1 + explained)) return;
  findings.push_back({last.slowdown.median / formula->slowdown,
                      fmt::format("Shorten chains: frames of the busiest PE explain {:.3g} times at {}, but the run "
                                  "takes {:.3g} times as long. PEs wait for each other in turn, so overheads of "
                                  "several PEs add up.",
                                  formula->slowdown, overhead->sweep.text(last.value), last.slowdown.median)});
}

}  // namespace

std::vector<std::string> conclusions(const Panel& panel) {
  std::vector<const SweepCurve*> curves;
  for (const SweepCurve& curve : panel.curves) curves.push_back(&curve);
  std::ranges::stable_sort(curves, std::greater(), [](const SweepCurve* c) { return c->largest(); });
  std::vector<std::string> sentences;
  for (const SweepCurve* curve : curves) sentences.push_back(of_dial(*curve));
  std::vector<Finding> findings;
  for (const auto advise :
       {advise_aggregation, advise_reads, advise_turns, advise_bytes, advise_balance, explain_chains})
    advise(panel, findings);
  std::ranges::stable_sort(findings, std::greater(), &Finding::gain);
  for (Finding& finding : findings) sentences.push_back(std::move(finding.text));
  if (findings.empty()) {
    const bool none = std::ranges::all_of(panel.curves, [](const SweepCurve& c) { return c.largest() < felt; });
    sentences.emplace_back(none ? "The network hardly matters to this run: computation or balance decide its time."
                                : "No change of the communication stands out.");
  }
  return sentences;
}

}  // namespace headway::tools
