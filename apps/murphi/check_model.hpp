// SPDX-License-Identifier: BSD-3-Clause
/// A measured and verified search of one model.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <headway/base/machine.hpp>
#include <headway/headway.hpp>
#include <options.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "murphi_options.hpp"
#include "search.hpp"
#include "serial.hpp"

namespace headway::murphi {

template <class Model>
std::string text_of(const Model& model, const std::vector<typename Search<Model>::Step>& steps) {
  using State = typename Model::State;
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format("{:3} {}: {}\n", i, i == 0 ? std::string("initially") : model.rule_name(steps[i].link.rule),
                        model.describe(unpack<State>(steps[i].state)));
  }
  return text + fmt::format("    {}\n", model.violated(unpack<State>(steps.back().state)));
}

inline Limits limits_of(const Pe& pe, const Arguments& arguments) {
  Limits limits;
  if (arguments.states_max != 0) limits.states_max = arguments.states_max;
  limits.bytes_max =
      arguments.memory_bytes != 0 ? arguments.memory_bytes : base::available_memory_bytes() / 2 / pe.size();
  return limits;
}

template <IsModel Model>
int check_model(Pe& pe, const Arguments& arguments) {
  const Model model(arguments.bug);
  const bool by_levels = arguments.search == "levels";
  Search<Model> search(pe, model, limits_of(pe, arguments), arguments.aggregation, apps::Work(pe, arguments.work_us));
  pe.quiesce();
  const AggregatorStatistics before = search.messages().statistics();
  const std::int64_t begin = pe.engine().now();
  by_levels ? search.run_by_levels() : search.run_freely();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = search.messages().statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));

  const auto greater = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
  std::uint64_t own_checksum = 0;
  for (std::uint64_t i = 0; i < search.table().size(); ++i) own_checksum += hash_of(search.table().state(i));
  const Counts counts{bench::sum_over_pes(pe, search.table().size()), bench::sum_over_pes(pe, search.rules()),
                      search.levels(), bench::sum_over_pes(pe, search.violations())};
  const std::uint64_t sent = bench::sum_over_pes(pe, search.sent()), kept = bench::sum_over_pes(pe, search.kept());
  const std::uint64_t handled = bench::sum_over_pes(pe, after.handled - before.handled);
  const std::uint64_t checksum = bench::sum_over_pes(pe, own_checksum);
  const std::uint64_t states_of_pe_max = allreduce(pe, search.table().size(), greater);
  const std::uint64_t messages_of_pe_max = allreduce(pe, search.sent(), greater);
  const std::uint64_t bytes_of_pe_max = allreduce(pe, search.table().bytes_peak(), greater);

  std::uint64_t initial = 0;
  model.for_each_initial([&](const typename Model::State&) { ++initial; });
  std::uint64_t errors = handled != sent;
  errors += sent + kept != counts.rules + initial;
  errors += search.violated() != arguments.bug;
  std::uint64_t steps = 0;
  if (search.violated()) {
    const auto trace = search.counterexample();
    steps = trace.size() - 1;
    errors += search.check(trace);
    if (pe.id() == 0) {
      std::FILE* const to = arguments.json == "-" ? stderr : stdout;
      std::fputs(text_of(model, trace).c_str(), to);
      std::fflush(to);
    }
  }
  search.spoil(arguments.spoil);
  if (arguments.checks) errors += bench::sum_over_pes(pe, search.check());
  if (pe.id() == 0 && counts.states <= arguments.serial_states_max && (by_levels || !search.violated())) {
    Counts alone = search_alone(model, arguments.serial_states_max);
    if (!by_levels) alone.levels = 0;
    errors += alone != counts;
  }
  errors = broadcast(pe, errors, 0);
  if (pe.id() == 0) {
    const AggregatorOptions& effective = search.messages().options();
    bench::Json record = bench::make_record(
        bench::make_case(pe, "murphi", effective, sizeof(typename Search<Model>::Message), sent), seconds, errors == 0);
    bench::add_frames(record, frames);
    record["model"] = arguments.model;
    record["n"] = arguments.n;
    record["search"] = arguments.search;
    record["bug"] = arguments.bug;
    record["states"] = counts.states;
    record["rules"] = counts.rules;
    if (by_levels) record["levels"] = counts.levels;
    record["violations"] = counts.violations;
    record["steps"] = steps;
    record["states_per_second"] = double(counts.states) / seconds;
    record["state_bytes"] = sizeof(typename Model::State);
    record["states_of_pe_max"] = states_of_pe_max;
    record["imbalance"] = double(states_of_pe_max) * double(pe.size()) / double(counts.states);
    record["messages_of_pe_max"] = messages_of_pe_max;
    record["kept"] = kept;
    record["table_bytes_of_pe_max"] = bytes_of_pe_max;
    record["checksum"] = fmt::format("{:016x}", checksum);
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    bench::report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

/// Calls check_model<Make<n>>() for the n of the arguments, which is from `first` to `last`.
template <template <std::size_t> class Make, std::size_t first, std::size_t last>
int check_model_of(Pe& pe, const Arguments& arguments) {
  if constexpr (first < last) {
    if (arguments.n != first) return check_model_of<Make, first + 1, last>(pe, arguments);
  }
  return check_model<Make<first>>(pe, arguments);
}

}  // namespace headway::murphi
