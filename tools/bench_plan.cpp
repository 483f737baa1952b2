// SPDX-License-Identifier: BSD-3-Clause
#include "bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <halo/work.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <iostream>
#include <message/message.hpp>
#include <record/command_line.hpp>
#include <reduce/work.hpp>

#include "bench_limit.hpp"
#include "bench_peers.hpp"
#include "bench_request.hpp"
#include "settings_options.hpp"

namespace headway::tools {
namespace {

const char* const command_name = "headway bench";

void print_list() {
  for (const Benchmark& one : benchmarks()) std::cout << fmt::format("{:<14} {}; verified\n", one.name, one.help);
  std::cout << "\nmodes          direct (a frame per message), 1d, 2d, 3d, ..., of processes wps (or pe-to-process), "
               "wps-2d, ..., pp (or process-to-process), ..., of hosts whs (or pe-to-host), ..., hh (or "
               "host-to-host), ..., limit (the hand-written loop), limit-8 (its rings of 8 buffers alone), of zerocopy "
               "limit-mapped, "
               "limit-pieces, limit-cma; of halo its own: halo, pack (the packing loop alone)\n";
  for (const Benchmark& one : benchmarks()) {
    const std::vector<std::string> names = peers_here(one);
    if (!names.empty()) std::cout << fmt::format("peers of {}: {}\n", one.name, fmt::join(names, ", "));
  }
  std::cout << (find_peers().empty() ? "peers          no MPI was found when this was built\n" : "") << std::flush;
}

constexpr double updates_min = 1 << 24;
constexpr double updates_min_direct = 1 << 22;  // a frame each takes some 20 times as long

/// The default number of updates a word: HPC Challenge's four; more on a small table, `min` in all, so that the run
/// lasts long enough to measure; fewer of large updates, so that it ends.
std::string default_updates_per_word(const std::string& log2, const std::string& bytes, double min) {
  const double words = std::ldexp(1, std::stoi(log2)), all = std::max(4 * words, min);
  const double fitting = bytes == "8" ? all : std::min(all, double(4_GiB) / std::stod(bytes));
  return fmt::format("{}", fitting / words);
}

std::vector<Work> works_of_reduce(const Request& request) {
  std::vector<Work> works;
  const auto add = [&](const std::string& title, bool of_cpu, const std::vector<std::string>& arguments) {
    Work& work = works.emplace_back();
    work.title = title;
    work.bytes = benchmark(request.bench).bytes;
    work.of_cpu = of_cpu;
    work.arguments = arguments;
    append(work.arguments, request.reduce_options);
  };
  const std::vector<std::string> elements_list =
      request.elements.empty() ? std::vector<std::string>{"1", "32", "128", "1024"} : request.elements;
  for (const std::string& measure : request.measures) {
    if (measure == "latency") {
      for (const std::string& call : request.calls) {
        add(bench::reduce_title(measure, call, 1, 0), false, {"--measure", measure, "--call", call});
      }
      continue;
    }
    for (const std::string& skew_us : request.skews_us) {
      for (const std::string& elements : elements_list) {
        const double us = bench::parse_us("--skew-us", skew_us);
        add(bench::reduce_title(measure, "reduce", std::stoull(elements), us), true,
            {"--measure", measure, "--elements", elements, "--skew-us", skew_us});
      }
    }
  }
  return works;
}

/// A comparison for each case, size, number of fields and size of an element.
std::vector<Work> works_of_halo(const Request& request) {
  const auto or_default = [](const std::vector<std::string>& given) {
    return given.empty() ? std::vector<std::string>{""} : given;
  };
  std::vector<Work> works;
  for (const std::string& name : request.cases) {
    for (const std::string& elements : or_default(request.elements)) {
      for (const std::string& fields : or_default(request.fields)) {
        for (const std::string& bytes : or_default(request.element_bytes)) {
          bench::HaloWork sizes;
          Work& work = works.emplace_back();
          const auto add = [&](const char* option, const std::string& text, auto& member) {
            if (text.empty()) return;
            append(work.arguments, {option, text});
            if constexpr (std::is_same_v<decltype(member), std::string&>)
              member = text;
            else
              member = std::stoul(text);
          };
          add("--case", name, sizes.name);
          add("--plan", request.plan, sizes.plan);
          add("--elements", elements, sizes.elements);
          add("--fields", fields, sizes.fields);
          add("--element-bytes", bytes, sizes.bytes);
          for (std::size_t i = 0; i < request.halo_options.size(); i += 2) {
            if (request.halo_options[i] == "--application") sizes.application = request.halo_options[i + 1];
            if (request.halo_options[i] == "--width") sizes.width = std::stoul(request.halo_options[i + 1]);
          }
          sizes.complete();
          work.title = bench::halo_title(sizes);
          work.bytes = benchmark(request.bench).bytes;
          append(work.arguments, request.halo_options);
        }
      }
    }
  }
  return works;
}

Work work_of_application(const Request& request) {
  Work work;
  work.bytes = benchmark(request.bench).bytes;
  for (const auto& [name, text] : request.work_options) {
    if (!work.title.empty()) work.title += ", ";
    work.title += name.substr(2) + (text.empty() ? "" : " " + text);
    work.arguments.push_back(name);
    if (!text.empty()) work.arguments.push_back(text);
  }
  if (work.title.empty()) work.title = "of its own size";
  return work;
}

std::vector<Work> works_of(const Request& request) {
  std::vector<Work> works;
  const Benchmark& asked = benchmark(request.bench);
  if (asked.has_skew) return works_of_reduce(request);
  if (asked.has_cases) return works_of_halo(request);
  if (!asked.options.empty()) return {work_of_application(request)};
  if (asked.has_gathers) {
    for (const std::string& log2 : request.log2s) {
      works.push_back({.title = fmt::format("2^{} words", log2),
                       .log2 = log2,
                       .updates_per_word = "",
                       .bytes = asked.bytes,
                       .arguments = {"--log2", log2}});
    }
    return works;
  }
  if (asked.has_table) {
    for (const std::string& log2 : request.log2s) {
      for (const std::string& bytes : request.sizes) {
        const bool by_default = request.updates_per_word.empty();
        const std::string updates =
            by_default ? default_updates_per_word(log2, bytes, updates_min) : request.updates_per_word;
        works.push_back({.title = fmt::format("2^{} words{}", log2,
                                              bytes == "8" ? "" : ", " + base::counted(std::stoull(bytes), "byte")),
                         .log2 = log2,
                         .updates_per_word = updates,
                         .updates_per_word_direct =
                             by_default ? default_updates_per_word(log2, bytes, updates_min_direct) : updates,
                         .bytes = bytes,
                         .arguments = {"--log2", log2, "--updates-per-word", updates, "--bytes", bytes}});
      }
    }
    return works;
  }
  const auto add = [&](const std::string& bytes, const std::string& buffers) {
    Work& work = works.emplace_back();
    work.title = fmt::format("{}{}", base::counted(std::stoull(bytes), "byte"),
                             buffers.empty() ? "" : ", " + buffers + " buffers");
    work.bytes = bytes;
    work.buffers = buffers;
    work.arguments = {"--bytes", bytes};
    if (!buffers.empty()) append(work.arguments, {"--buffers", buffers});
    if (!request.messages.empty()) append(work.arguments, {"--messages", request.messages});
    if (request.touch) work.arguments.emplace_back("--touch");
  };
  for (const std::string& bytes : request.sizes) {
    if (!asked.has_buffers) add(bytes, "");
    for (const std::string& buffers : request.buffer_kinds) {
      if (asked.has_buffers) add(bytes, buffers);
    }
  }
  return works;
}

/// A benchmark's variant in one mode: the only one, or one for each way and kind of memory, or for each way to balance.
struct Variant {
  std::string label;  // empty: there is but one
  std::vector<std::string> arguments;
};

std::vector<Variant> variants_of(const Request& request, const std::string& mode) {
  const Benchmark& asked = benchmark(request.bench);
  std::vector<Variant> variants;
  if (asked.has_cases && mode == bench::halo_mode) {
    for (const std::string& memory : request.memories) variants.push_back({memory, {"--memory", memory}});
    return variants;
  }
  for (const std::string& balance : request.balances) variants.push_back({balance, {"--balance", balance}});
  if (!asked.has_ways) return variants.empty() ? std::vector<Variant>{{}} : variants;
  for (const std::string& way : request.ways) {
    if (!asked.has_buffers) variants.push_back({way, {"--way", way}});
    for (const std::string& memory : request.memories) {
      if (asked.has_buffers) variants.push_back({way + " " + memory, {"--way", way, "--memory", memory}});
    }
  }
  return variants;
}

std::string label_of(const Request& request, const Variant& variant, const std::string& mode) {
  const auto topologies = std::ranges::count_if(request.modes, [](const auto& one) { return !is_limit(one); });
  if (variant.label.empty()) return mode;
  if (!benchmark(request.bench).own_modes.empty()) return mode + " " + variant.label;
  return topologies > 1 ? variant.label + " " + mode : variant.label;
}

BenchCase headway_case(const Request& request, const Work& work, const Variant& variant, const std::string& mode,
                       const std::string& buffer) {
  BenchCase made;
  made.label = label_of(request, variant, mode);
  if (!buffer.empty() && request.buffers.size() > 1) made.label += " " + buffer;
  made.command = {program_directory() + "/headway-" + request.bench, "--json", "-"};
  if (!mode.empty()) append(made.command, {"--mode", mode});
  append(made.command, work.arguments);
  if (mode == "direct" && !work.updates_per_word_direct.empty()) {
    *std::next(std::ranges::find(made.command, "--updates-per-word")) = work.updates_per_word_direct;
  }
  append(made.command, variant.arguments);
  if (!buffer.empty()) append(made.command, {"--buffer-bytes", buffer});
  if (!request.type.empty()) append(made.command, {"--type", request.type});
  append(made.command, request.passed_on);
  return made;
}

std::vector<BenchCase> limits_of(const Request& request, const std::string& mode, const Work& work,
                                 const base::Settings& settings) {
  const Benchmark& asked = benchmark(request.bench);
  if (asked.has_buffers) return limits_of_trips(request, mode, work, settings);
  if (asked.has_table) return {limit_of_table(request, mode, work, settings)};
  if (asked.on_elements) return {limit_of_edges(request, mode, work, settings)};
  return {limit_of_messages(request, mode, work, settings)};
}

std::vector<BenchGroup> groups_of(const Request& request, const base::Settings& settings) {
  if (!benchmark(request.bench).has_modes) return limit_groups(request, settings);
  std::vector<std::string> buffers = request.buffers;
  if (buffers.empty()) buffers.emplace_back();
  std::vector<BenchGroup> groups;
  for (const Work& work : works_of(request)) {
    BenchGroup group{work.title, {}};
    for (const std::string& mode : request.modes) {
      if (is_limit(mode)) {
        for (BenchCase& limit : limits_of(request, mode, work, settings)) group.cases.push_back(std::move(limit));
        continue;
      }
      for (const Variant& variant : variants_of(request, mode)) {
        for (const std::string& buffer : buffers) {
          group.cases.push_back(headway_case(request, work, variant, mode, buffer));
        }
      }
    }
    for (BenchCase& peer : peer_cases(request, work, settings)) {
      group.cases.push_back(std::move(peer));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

PlanOrStatus make_plan(int argc, char** argv) {
  Request request;
  bench::CommandLine app(
      "Runs a benchmark: one start of its program per case and repeat, interleaved; every run is verified.",
      command_name);
  add_options(app, request);
  const SettingsOptions settings_options(app, false);
  if (const auto status = app.parse(argc, argv)) return {{}, *status};
  if (request.list) return print_list(), PlanOrStatus{};
  const auto unusable = [](const std::string& message) {
    std::cerr << command_name << ": " << message << '\n';
    return PlanOrStatus{{}, exit_status::unusable_arguments};
  };
  if (request.bench.empty())
    return unusable(fmt::format("a benchmark is needed; allowed are {}", fmt::join(all_names(), ", ")));
  const auto settings = settings_options.apply(command_name);
  if (!settings) return {{}, exit_status::unusable_arguments};
  try {
    complete(request, *settings);
    return {BenchPlan{.bench = request.bench,
                      .groups = groups_of(request, *settings),
                      .repeats = request.repeats,
                      .limit = request.limit,
                      .osu = request.osu,
                      .json = request.json},
            0};
  } catch (const SettingError& error) {
    return unusable(error.what());
  }
}

}  // namespace headway::tools
