// SPDX-License-Identifier: BSD-3-Clause
/// `headway bench`: starts every case once per round, A B C A B C, and compares neighbours in time.
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <iostream>
#include <map>
#include <record/pairs.hpp>
#include <record/record.hpp>

#include "bench_plan.hpp"
#include "bench_table.hpp"
#include "benchmarks.hpp"
#include "commands.hpp"
#include "outcome.hpp"
#include "progress.hpp"

namespace headway::tools {
namespace {

using bench::Json;

/// A program that ended without a record: its status becomes the command's.
struct CaseFailed : std::runtime_error {
  CaseFailed(const std::string& message, int case_status) : std::runtime_error(message), status(case_status) {}
  int status;
};

/// Starts one case once; its record, or CaseFailed.
Json run_case(const BenchCase& started, const std::vector<std::string>& further, std::chrono::seconds limit) {
  std::vector<std::string> command = started.command;
  command.insert(command.end(), further.begin(), further.end());
  const ChildResult result = run_child(command, started.environment, limit);
  const auto begin = result.output.find('{');
  Json record = begin == std::string::npos ? Json() : Json::parse(result.output.substr(begin), nullptr, false);
  if (result.timed_out) {
    throw CaseFailed(fmt::format("{}: not finished within {} s (--time-limit)", started.label, limit.count()), 1);
  }
  const bool complete = record.is_object() && record.contains("verified");
  // A wrong result is a record with "verified": false and status 1; anything else that is not 0 is a failure.
  if (!complete || (result.status != 0 && record["verified"].get<bool>()) ||
      (result.status != 0 && result.status != 1)) {
    throw CaseFailed(fmt::format("{}: {} ended with status {} ({})\n{}", started.label, started.command.front(),
                                 result.status, meaning(result.status), tail(result.errors, 20)),
                     result.status == 0 ? 1 : result.status);
  }
  return record;
}

/// The compared rate: messages a second; where a case measures latency or processor time, its reciprocal. For graph
/// searches the edges a second, for sorts the keys a second, as long as `by_work`: the number of messages depends on
/// the program.
double rate_of(const Json& record, bool by_work = true) {
  for (const char* field : {"one_way_us", "latency_us", "cpu_us", "us"}) {
    if (!record.contains(field)) continue;
    const double us = record[field]["median"].get<double>();
    return us > 0 ? 1e6 / us : 0;
  }
  for (const char* field : {"teps", "keys_per_second"}) {
    if (by_work && record.contains(field)) return record[field].get<double>();
  }
  return record["messages_per_second"].get<double>();
}

/// Tries each bucket size twice, interleaved, and keeps the one with the fastest run.
void choose_bucket_size(BenchCase& peer, std::chrono::seconds limit, Progress& progress) {
  if (peer.bucket_sizes.empty()) return;
  std::map<std::string, double> best;
  for (int round = 0; round < 2; ++round) {
    for (const std::string& size : peer.bucket_sizes) {
      progress.step(fmt::format("{}, which buckets: {}", peer.label, size));
      best[size] = std::max(best[size], rate_of(run_case(peer, {"--buffer-bytes", size}, limit)));
    }
  }
  const auto fastest = std::ranges::max_element(best, {}, [](const auto& entry) { return entry.second; });
  peer.command.insert(peer.command.end(), {"--buffer-bytes", fastest->first});
}

/// Ratios of case `of` to case `to`, each of one round. The loops of limit search no graph: with them messages are
/// compared.
Json ratios(const std::vector<Json>& of, const std::vector<Json>& to) {
  const auto counts_work = [](const Json& record) {
    return record.contains("teps") || record.contains("keys_per_second");
  };
  const bool by_work = counts_work(of.front()) && counts_work(to.front());
  std::vector<double> each;
  for (std::size_t round = 0; round < of.size(); ++round) {
    const double rate = rate_of(to[round], by_work);
    if (rate > 0) each.push_back(rate_of(of[round], by_work) / rate);
  }
  return bench::ratios_to_json(std::move(each));
}

/// Runs all rounds of a group. The records come with the ratios of each case to the first, with their bounds, and to
/// the best peer, and as fractions of each peer and each limit.
std::vector<MeasuredCase> run_group(BenchGroup& group, const BenchPlan& plan, Progress& progress) {
  using Role = BenchCase::Role;
  for (BenchCase& started : group.cases) choose_bucket_size(started, plan.limit, progress);
  std::vector<std::vector<Json>> rounds(group.cases.size());
  for (std::size_t round = 0; round < plan.repeats; ++round) {
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      progress.step(fmt::format("{} {}, {}, round {} of {}", plan.bench, group.title, group.cases[i].label, round + 1,
                                plan.repeats));
      Json record = run_case(group.cases[i], {}, plan.limit);
      if (group.cases[i].role == Role::limit) record["bench"] = plan.bench;  // it stands in for that benchmark
      rounds[i].push_back(std::move(record));
    }
  }
  std::vector<MeasuredCase> measured;
  std::size_t best_peer = group.cases.size();
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    measured.push_back({group.cases[i].label, bench::merge_repeats(rounds[i])});
    const bool better =
        best_peer == group.cases.size() || rate_of(measured[i].record) > rate_of(measured[best_peer].record);
    if (group.cases[i].role == Role::peer && better) best_peer = i;
  }
  const auto position = [&](auto found) { return std::size_t(found - group.cases.begin()); };
  const std::size_t first =
      position(std::ranges::find_if(group.cases, [](const BenchCase& one) { return one.role != Role::limit; })) %
      group.cases.size();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    Json ratio_to = Json::object();
    Json in_pairs = ratios(rounds[i], rounds[first]);
    ratio_to[measured[first].label] = in_pairs["median"];
    if (best_peer < measured.size()) {
      ratio_to[measured[best_peer].label] = ratios(rounds[i], rounds[best_peer])["median"];
    }
    for (std::size_t peer = 0; peer < measured.size(); ++peer) {
      if (group.cases[peer].role != Role::peer || peer == i) continue;
      measured[i].record["of_peers"][measured[peer].label] = ratios(rounds[i], rounds[peer]);
    }
    measured[i].record["label"] = measured[i].label;
    measured[i].record["ratio_to"] = std::move(ratio_to);
    in_pairs["to"] = measured[first].label;
    measured[i].record["in_pairs"] = std::move(in_pairs);
    for (std::size_t limit = 0; limit < measured.size(); ++limit) {
      if (group.cases[limit].role != Role::limit || group.cases[i].role == Role::limit) continue;
      measured[i].record["of_" + measured[limit].label] = ratios(rounds[i], rounds[limit]);
    }
  }
  return measured;
}

int run_plan(BenchPlan& plan, const std::vector<std::string>& command_line) {
  std::size_t steps = 0;
  for (const BenchGroup& group : plan.groups) {
    for (const BenchCase& started : group.cases) steps += plan.repeats + 2 * started.bucket_sizes.size();
  }
  std::vector<MeasuredCase> all;
  const bool tables = plan.json != "-" && !plan.osu;
  {
    Progress progress(steps);
    for (BenchGroup& group : plan.groups) {
      const std::vector<MeasuredCase> measured = run_group(group, plan, progress);
      all.insert(all.end(), measured.begin(), measured.end());
      progress.clear();
      if (!tables) continue;
      std::cout << (plan.bench == limit_mode ? limit_table_of(group.title, measured)
                                             : table_of(plan.bench, group.title, measured))
                << std::endl;
    }
  }
  if (plan.osu && plan.json != "-") std::cout << osu_blocks(plan.bench, all) << std::flush;
  std::vector<Json> records;
  bool verified = true;
  for (const MeasuredCase& one : all) {
    records.push_back(one.record);
    verified = verified && one.record["verified"].get<bool>();
  }
  if (!plan.json.empty()) bench::write_json(plan.json, bench::result_file(command_line, records));
  if (!verified) std::cerr << "headway bench: results are wrong, see 'verified'\n";
  return verified ? 0 : 1;
}

}  // namespace

int bench_command(int argc, char** argv) {
  PlanOrStatus made = make_plan(argc, argv);
  if (!made.plan) return made.status;
  std::vector<std::string> command_line = {"headway", "bench"};
  command_line.insert(command_line.end(), argv + 1, argv + argc);
  try {
    return run_plan(*made.plan, command_line);
  } catch (const CaseFailed& failed) {
    std::cerr << "headway bench: " << failed.what() << (std::string(failed.what()).ends_with('\n') ? "" : "\n");
    return failed.status;
  }
}

}  // namespace headway::tools
