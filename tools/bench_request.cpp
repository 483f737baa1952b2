// SPDX-License-Identifier: BSD-3-Clause
#include "bench_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <halo/lists.hpp>
#include <halo/work.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <message/buffers.hpp>
#include <message/type.hpp>
#include <reduce/work.hpp>
#include <zerocopy/ways.hpp>

#include "bench_limit.hpp"

namespace headway::tools {
namespace {

void check_sizes(const std::string& option, const std::vector<std::string>& texts, std::uint64_t min,
                 std::uint64_t max) {
  for (const std::string& text : texts) {
    const std::uint64_t bytes = base::parse_bytes(option, text);
    if (bytes < min || bytes > max) {
      throw SettingError(fmt::format("{}: '{}' is not allowed; allowed is {} to {}", option, text,
                                     base::format_bytes(min), base::format_bytes(max)));
    }
  }
}

void check_mode(const std::string& mode) {
  if (is_limit(mode)) return check_limit_mode(mode);
  try {
    parse_topology(mode);
  } catch (const SettingError& error) {
    throw SettingError(fmt::format("{}; or {}, {}N", error.what(), limit_mode, limit_of_buffers));
  }
}

/// Adds options to a command, one kind a function.
class Adder {
 public:
  using Store = bench::CommandLine::Store;

  Adder(bench::CommandLine& app, Request& request) : app_(app), request_(request) {}

  void option(const char* name, const char* value, const std::string& help, Store store) {
    app_.add_value(name, value, help, std::move(store));
  }
  /// One that some benchmarks have; the help says which.
  void own(bool Benchmark::*of, const char* name, const char* value, const std::string& help, Store store) {
    option(name, value, shown(of, help),
           [this_request = &request_, of, name, store = std::move(store)](const auto& text) {
             this_request->own_options.push_back({name, of});
             store(text);
           });
  }
  /// The same for many benchmarks; the help does not list them.
  void own_unnamed(bool Benchmark::*of, const char* name, const char* value, const std::string& help, Store store) {
    option(name, value, help, [this_request = &request_, of, name, store = std::move(store)](const std::string& text) {
      this_request->own_options.push_back({name, of});
      store(text);
    });
  }
  void own_flag(bool Benchmark::*of, const char* name, const std::string& help, std::function<void()> set) {
    app_.add_flag(name, shown(of, help), [this_request = &request_, of, name, set = std::move(set)] {
      this_request->own_options.push_back({name, of});
      set();
    });
  }
  /// One that all benchmarks on Headway have.
  void of_headway(const char* name, const char* value, const std::string& help, Store store) {
    own_unnamed(&Benchmark::has_modes, name, value, help, std::move(store));
  }
  /// The same for those with an aggregator of their own.
  void of_aggregator(const char* name, const char* value, const std::string& help, Store store) {
    own_unnamed(&Benchmark::has_aggregator, name, value, help, std::move(store));
  }
  void flag_of_aggregator(const char* name, const char* help) {
    app_.add_flag(name, help, [this_request = &request_, name] {
      this_request->own_options.push_back({name, &Benchmark::has_aggregator});
      this_request->passed_on.emplace_back(name);
    });
  }
  /// One that the programs get as it is, once it was checked.
  void pass_on(const char* name, const char* value, const char* help, Store check) {
    of_aggregator(name, value, help, [this_request = &request_, name, check = std::move(check)](const auto& text) {
      check(text);
      this_request->passed_on.insert(this_request->passed_on.end(), {name, text});
    });
  }

 private:
  static std::string shown(bool Benchmark::*of, const std::string& help) {
    return fmt::format("{}: {}", fmt::join(names_of(of), ", "), help);
  }

  bench::CommandLine& app_;
  Request& request_;
};

void add_work_options(Adder& add, Request& request) {
  add.own(&Benchmark::has_table, "--log2", "LIST", "2^K words in all [20]", [&](const std::string& text) {
    request.log2s = bench::parse_list("--log2", text);
    for (std::string& log2 : request.log2s) log2 = std::to_string(bench::parse_count("--log2", log2, 1, 40));
  });
  add.own(&Benchmark::has_updates, "--updates-per-word", "N",
          "updates are N * 2^K [4, or more: at least 2^24 in all, of direct 2^22; of more than 8 bytes at most 4 GiB]",
          [&](const std::string& text) {
            bench::parse_number("--updates-per-word", text, 0, 1e9);
            request.updates_per_word = text;
          });
  add.own(&Benchmark::has_sizes, "--bytes", "LIST", "bytes of a message, such as 8,104,1K,1M; a comparison each",
          [&](const std::string& text) {
            request.sizes = bench::parse_list("--bytes", text);
            check_sizes("--bytes", request.sizes, 0, bench::message_bytes_max);
            for (std::string& size : request.sizes) size = std::to_string(base::parse_bytes("--bytes", size));
          });
  add.own(&Benchmark::has_count, "--messages", "M",
          "messages from each PE to each that it sends to; round trips of pingpong and zerocopy [by size]",
          [&](const std::string& text) {
            request.messages = std::to_string(bench::parse_count("--messages", text, 1, 1ull << 40));
          });
  add.own(&Benchmark::has_types, "--type", "TYPE", bench::message_types_help,
          [&](const std::string& text) { request.type = bench::parse_choice("--type", text, bench::message_types); });
  add.own_flag(&Benchmark::has_types, "--variable", "the same as --type bytes", [&] { request.type = "bytes"; });
  add.own_flag(&Benchmark::sends_ranges, "--one-by-one", "a send() for each message instead of a send_range() for all",
               [&] { request.passed_on.emplace_back("--one-by-one"); });
  add.own_flag(&Benchmark::has_messages, "--osu", "print two columns a mode, size and value, as the OSU benchmarks do",
               [&] { request.osu = true; });
}

/// A list of names, each one of `allowed`.
std::vector<std::string> parse_choices(const std::string& option, const std::string& text,
                                       const std::vector<std::string>& allowed) {
  std::vector<std::string> chosen = bench::parse_list(option, text);
  for (const std::string& name : chosen) bench::parse_choice(option, name, allowed);
  return chosen;
}

void add_way_options(Adder& add, Request& request) {
  add.own(&Benchmark::has_ways, "--way", "LIST", "how it is done, such as get,read; side by side [all there are]",
          [&](const std::string& text) { request.ways = bench::parse_list("--way", text); });
  add.own(&Benchmark::has_gathers, "--gathers", "N", "words that each PE reads [by way]", [&](const std::string& text) {
    bench::parse_count("--gathers", text, 1, 1ull << 40);
    request.passed_on.insert(request.passed_on.end(), {"--gathers", text});
  });
  add.own_flag(&Benchmark::has_gathers, "--messages-only", "by messages also where memory could be mapped",
               [&] { request.passed_on.emplace_back("--messages-only"); });
  add.own(
      &Benchmark::has_buffers, "--buffers", "LIST",
      "reused (the same for all messages), fresh (each out of memory that is in no cache); a comparison each "
      "[reused]",
      [&](const std::string& text) { request.buffer_kinds = parse_choices("--buffers", text, bench::buffer_kinds); });
  add.own(&Benchmark::has_memory, "--memory", "LIST",
          "of what Headway sends: heap; zerocopy: pool (mapped by the PEs of a host), halo: field (the same, "
          "halo::Field); side by side [all there are]",
          [&](const std::string& text) { request.memories = bench::parse_list("--memory", text); });
  add.own_flag(&Benchmark::has_buffers, "--touch", "the receiver adds up each message, peers' as well",
               [&] { request.touch = true; });
}

void add_reduce_options(Adder& add, Request& request) {
  constexpr auto of = &Benchmark::has_skew;
  add.own(of, "--measure", "LIST", fmt::format("{} [both]", bench::reduce_measure_help), [&](const std::string& text) {
    request.measures = parse_choices("--measure", text, bench::reduce_measures);
  });
  add.own(of, "--call", "LIST", "latency: reduce, allreduce, barrier; a comparison each [all]",
          [&](const std::string& text) { request.calls = parse_choices("--call", text, bench::reduce_calls); });
  add.own(&Benchmark::has_elements, "--elements", "LIST",
          "reduce cpu: numbers of 8 bytes that each PE gives [1,32,128,1024]; halo: size of the case [by case]; a "
          "comparison each",
          [&](const std::string& text) {
            request.elements = bench::parse_list("--elements", text);
            for (std::string& one : request.elements) {
              one = std::to_string(bench::parse_count("--elements", one, 1, bench::reduce_elements_max));
            }
          });
  add.own(of, "--skew-us", "LIST", "cpu: PEs come by 0 to so many us late, at random; a comparison each [1000,0]",
          [&](const std::string& text) {
            request.skews_us = bench::parse_list("--skew-us", text);
            for (const std::string& one : request.skews_us) bench::parse_us("--skew-us", one);
          });
  const auto pass = [&](const char* name, const char* value, const char* help, auto check) {
    add.own(of, name, value, help, [&request, name, check](const std::string& text) {
      check(text);
      request.reduce_options.insert(request.reduce_options.end(), {name, text});
    });
  };
  pass("--settle-us", "US", bench::reduce_settle_help,
       [](const std::string& text) { bench::parse_us("--settle-us", text); });
  pass("--looks", "N", bench::reduce_looks_help,
       [](const std::string& text) { bench::parse_count("--looks", text, 0, bench::reduce_looks_max); });
  pass("--iterations", "N", bench::reduce_iterations_help,
       [](const std::string& text) { bench::parse_count("--iterations", text, 1, bench::reduce_iterations_max); });
}

void add_halo_options(Adder& add, Request& request) {
  constexpr auto of = &Benchmark::has_cases;
  const auto list = [&](const char* name, const std::string& help, std::vector<std::string>& to, auto check) {
    add.own(of, name, "LIST", help + "; a comparison each", [&to, name, check](const std::string& text) {
      to = bench::parse_list(name, text);
      for (const std::string& one : to) check(name, one);
    });
  };
  const auto pass = [&](const char* name, const char* value, const std::string& help, auto check) {
    add.own(of, name, value, help, [&request, name, check](const std::string& text) {
      check(name, text);
      request.halo_options.insert(request.halo_options.end(), {name, text});
    });
  };
  const auto one_of = [](std::vector<std::string> allowed) {
    return [allowed = std::move(allowed)](const char* name, const std::string& text) {
      bench::parse_choice(name, text, allowed);
    };
  };
  const auto up_to = [](std::uint64_t max) {
    return [max](const char* name, const std::string& text) { bench::parse_count(name, text, 1, max); };
  };
  list("--case", fmt::format("{} [row]", fmt::join(bench::halo_case_names(), ", ")), request.cases,
       one_of(bench::halo_case_names()));
  list("--fields", "arrays in one exchange [blocks 4, others 1]", request.fields, up_to(bench::halo_fields_max));
  list("--element-bytes", "4, 8, 16, 24, 88 [particles 88, others 8]", request.element_bytes,
       one_of(bench::halo_element_bytes));
  pass("--width", "N", "grid27, blocks: layers of ghost cells [1]", up_to(bench::halo_width_max));
  pass("--points", "N", "grid27, blocks: 27 or 7 cells that an update reads [27]", one_of({"27", "7"}));
  pass("--application", "NAME", fmt::format("recorded: {} [clamr]", fmt::join(bench::halo_applications, ", ")),
       one_of(bench::halo_applications));
  pass("--exchanges", "N", "how many are measured [by size]", up_to(bench::halo_exchanges_max));
  pass("--compute-us", "N", "us of computation while an exchange is under way [0]", up_to(bench::halo_compute_us_max));
  add.own(of, "--plan", "FILE", "the plan in this file, instead of cases", [&request](const std::string& text) {
    request.plan = text;
    request.cases = {""};
  });
}

void add_application_options(Adder& add, bench::CommandLine& app, Request& request) {
  for (const WorkOption& option : work_options()) {
    const std::string help = fmt::format("{}: {}", fmt::join(names_with(option.name), ", "), option.help);
    const auto store = [&request, name = option.name](const std::string& text) {
      request.work_options.push_back({name, text});
    };
    if (option.value.empty())
      app.add_flag(option.name, help, [store] { store(""); });
    else
      add.option(option.name.c_str(), option.value.c_str(), help, store);
  }
  constexpr auto of = &Benchmark::on_elements;
  add.own(of, "--balance", "LIST", "none, greedy, refine, rotate; side by side [none]", [&](const std::string& text) {
    request.balances = parse_choices("--balance", text, {"none", "greedy", "refine", "rotate"});
  });
  add.own(of, "--balance-every", "N", "steps of a phase, after which elements are moved [1]",
          [&](const std::string& text) {
            bench::parse_count("--balance-every", text, 1, 1 << 30);
            request.passed_on.insert(request.passed_on.end(), {"--balance-every", text});
          });
}

void add_aggregator_options(Adder& add, Request& request) {
  add.own_unnamed(
      &Benchmark::takes_modes, "--mode", "LIST",
      "direct, 1d, 2d, 3d, ..., ww (or pe-to-pe), wps (or pe-to-process), wps-2d, ..., "
      "pp (or process-to-process), ..., whs (or pe-to-host), ..., hh (or host-to-host), ..., limit, limit-8 "
      "(rings of so many buffers alone), limit-mapped, limit-pieces, limit-cma (zerocopy); side by side "
      "[direct,1d; zerocopy: direct]; of halo: halo, pack",
      [&](const std::string& text) { request.modes = bench::parse_list("--mode", text); });
  add.of_aggregator("--buffer-bytes", "LIST", "bytes of Headway's buffers, such as 16K,64K [derived]",
                    [&](const std::string& text) {
                      request.buffers = bench::parse_list("--buffer-bytes", text);
                      check_sizes("--buffer-bytes", request.buffers, base::buffer_bytes_min, base::buffer_bytes_max);
                    });
  add.pass_on(
      "--threshold", "FRACTION", "send a buffer filled beyond this fraction [derived]",
      [&request](const std::string& text) { request.threshold = bench::parse_fraction("--threshold", text, false); });
  add.pass_on("--cutoff", "FRACTION", "send a message above this fraction of a buffer by itself [derived]",
              [&request](const std::string& text) { request.cutoff = bench::parse_fraction("--cutoff", text, true); });
  add.pass_on("--timeout", "TIME", "send a buffer whose oldest message is older, such as 100us; or none [derived]",
              [](const std::string& text) { bench::parse_time("--timeout", text); });
  add.flag_of_aggregator("--patient", bench::patient_help);
  add.flag_of_aggregator("--ordered", "first in, first out for each pair of PEs");
}

void add_peer_options(Adder& add, Request& request) {
  add.of_headway("--peer", "LIST",
                 "the same work without Headway: mpi-direct, mpi-alltoallv, hpcc (randomaccess), mpi (pingpong, "
                 "zerocopy, reduce), ucx (zerocopy), mpi-ireduce (reduce), isend, persistent, neighbor-v, neighbor-w, "
                 "partitioned, petsc, tpetra (halo); also as NAME:MPI; or available",
                 [&](const std::string& text) { request.peers = bench::parse_list("--peer", text); });
  add.option("--peer-buffer-bytes", "LIST",
             "bucket sizes of mpi-alltoallv, of which the best is measured [4K,16K,64K,256K]",
             [&](const std::string& text) {
               request.peer_buffers = bench::parse_list("--peer-buffer-bytes", text);
               check_sizes("--peer-buffer-bytes", request.peer_buffers, 8, 64_MiB);
             });
}

}  // namespace

void add_options(bench::CommandLine& app, Request& request) {
  app.add_positional("NAME", fmt::format("{}", fmt::join(all_names(), ", ")),
                     [&](const std::string& text) { request.bench = bench::parse_choice("NAME", text, all_names()); });
  app.add_flag("--list", "list the benchmarks, their modes and the peers here", request.list);
  Adder add(app, request);
  add_work_options(add, request);
  add_way_options(add, request);
  add_reduce_options(add, request);
  add_halo_options(add, request);
  add_application_options(add, app, request);
  add_aggregator_options(add, request);
  add_peer_options(add, request);
  add.option("--repeat", "R", "rounds; medians are reported, with minimum and maximum [5]",
             [&](const std::string& text) { request.repeats = bench::parse_count("--repeat", text, 1, 100'000); });
  add.option("--time-limit", "TIME", "end a program that takes longer [600s]", [&](const std::string& text) {
    const auto limit = bench::parse_time("--time-limit", text);
    using std::chrono::seconds;
    request.limit = std::clamp(std::chrono::duration_cast<seconds>(limit), seconds(1), seconds(100'000'000));
  });
  add.option("--json", "FILE", "write the result file, or - for standard output",
             [&](const std::string& text) { request.json = text; });
}

void complete(Request& request, const base::Settings& settings) {
  const Benchmark& asked = benchmark(request.bench);
  for (const Request::OwnOption& given : request.own_options) {
    if (!(asked.*given.of)) {
      throw SettingError(fmt::format("{} is an option of {}, not of {}", given.name,
                                     fmt::join(names_of(given.of), ", "), request.bench));
    }
  }
  for (const Request::GivenOption& given : request.work_options) {
    const std::vector<std::string> names = names_with(given.name);
    if (std::ranges::find(names, request.bench) != names.end()) continue;
    throw SettingError(
        fmt::format("{} is an option of {}, not of {}", given.name, fmt::join(names, ", "), request.bench));
  }
  if (request.sizes.empty()) request.sizes = {asked.bytes};
  if (request.modes.empty()) request.modes = asked.modes;
  if (request.ways.empty()) request.ways = asked.ways;
  for (const std::string& way : request.ways) bench::parse_choice("--way", way, asked.ways);
  if (request.memories.empty()) request.memories = asked.memories;
  for (const std::string& memory : request.memories) bench::parse_choice("--memory", memory, asked.memories);
  for (const std::string& mode : request.modes) {
    if (!asked.own_modes.empty()) bench::parse_choice("--mode", mode, asked.own_modes);
    if (asked.own_modes.empty() && asked.takes_modes) {
      try {
        check_mode(mode);
      } catch (const SettingError& error) {
        throw SettingError(std::string("--mode: ") + error.what());
      }
    }
    if (asked.has_limit || !is_limit(mode)) continue;
    throw SettingError(
        fmt::format("--mode: '{}' is not allowed for {}, which has no hand-written loop", mode, asked.name));
  }
  if (asked.has_sizes) {
    check_sizes("--bytes", request.sizes, asked.bytes_min, bench::message_bytes_max);
    for (const std::string& size : request.sizes) {
      if (asked.has_buffers && std::stoull(size) % sizeof(std::uint64_t) != 0) {
        throw SettingError(
            fmt::format("--bytes: '{}' is not allowed; allowed for {} are multiples of 8", size, asked.name));
      }
      if (asked.has_types) {
        bench::check_type(request.type, std::stoull(size), request.threshold, request.cutoff);
      }
    }
  }
  if (!request.plan.empty()) bench::read_halo_plan(request.plan, settings.pes);
  if (asked.pairs ? settings.pes % 2 != 0 : asked.has_messages && settings.pes < 2) {
    throw SettingError(fmt::format(
        "--pes: '{}' is not allowed; allowed {}", settings.pes,
        asked.pairs ? fmt::format("is an even number, for {} pairs its PEs", request.bench) : "are 2 or more"));
  }
}

}  // namespace headway::tools
