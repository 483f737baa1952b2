// SPDX-License-Identifier: BSD-3-Clause
/// headway-limit: what this machine allows, by hand-written loops. One case a start; here its command line and its
/// record, which are all that it shares with Headway.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <headway/base/counted.hpp>
#include <iostream>
#include <message/buffers.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <stdexcept>

#include "measure.hpp"
#include "rings.hpp"

namespace headway::limit {
namespace {

const std::vector<std::string> trips = {"trip-mapped", "trip-pieces", "trip-cma"};
const std::vector<std::string> benches = {"updates", "ring",        "latency",     "copy",
                                          "cma",     "trip-mapped", "trip-pieces", "trip-cma"};
const std::vector<std::string> patterns = {"one-way", "both-ways", "pairs", "others"};  // in the order of Pattern
const std::vector<std::string> types = {"fixed", "bytes", "vector", "struct"};          // in the order of Type
constexpr std::array fixed_bytes = {8, 16, 32, 64, 104, 256, 1000};
constexpr std::size_t bytes_max = std::size_t(64) << 20, ring_bytes_max = std::size_t(4) << 20;
constexpr std::size_t parts_bytes_min = 16;  // a word in each

struct Arguments {
  Options options;
  std::string formulation;  // empty: all
  std::string buffers;      // empty: the bench's; a number of the ring's, or of buffer_kinds
  std::chrono::seconds time_limit{600};
  std::string json;
  std::vector<std::string> given;  // options that not every case has
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  Options& options = arguments.options;
  bench::CommandLine app("What this machine allows, by hand-written loops without Headway; verified.", "headway-limit");
  const auto option = [&](const char* name, const char* value, const char* help, bench::CommandLine::Store store) {
    app.add_value(name, value, help, [&arguments, name, store = std::move(store)](const std::string& text) {
      arguments.given.emplace_back(name);
      store(text);
    });
  };
  option("--bench", "NAME", "updates, ring, latency, copy, cma, trip-mapped, trip-pieces, trip-cma [ring]",
         [&](const std::string& text) { options.bench = bench::parse_choice("--bench", text, benches); });
  option("--pes", "N", "processes [2; copy: 1]",
         [&](const std::string& text) { options.pes = bench::parse_count("--pes", text, 1, pes_max); });
  option("--pattern", "NAME",
         "ring: one-way (PE 0 to 1, 2 to 3, ...), both-ways (all to all and to themselves), pairs (0 with 1, ...), "
         "others (all to all others, in turn) [both-ways]",
         [&](const std::string& text) {
           const auto chosen = std::ranges::find(patterns, bench::parse_choice("--pattern", text, patterns));
           options.pattern = Pattern(chosen - patterns.begin());
         });
  option("--bytes", "N", "ring, latency: bytes of a message [8]; copy, cma: of a copy, trip-...: of a message [1 MiB]",
         [&](const std::string& text) { options.bytes = bench::parse_count("--bytes", text, 8, bytes_max); });
  option("--type", "TYPE",
         "ring: what a message is: fixed, bytes (read in place), vector, struct (of a vector and a string) "
         "[fixed where the size is one of 8, 16, 32, 64, 104, 256, 1000]",
         [&](const std::string& text) {
           const auto chosen = std::ranges::find(types, bench::parse_choice("--type", text, types));
           options.type = Type(chosen - types.begin());
         });
  app.add_flag("--variable", "the same as --type bytes", [&] {
    arguments.given.emplace_back("--variable");
    options.type = Type::bytes;
  });
  option("--messages", "M",
         "messages, updates, trips or copies of each PE [1000000; copy, cma, trip-...: 4 GiB in all]",
         [&](const std::string& text) {
           options.messages = bench::parse_count("--messages", text, 1, std::uint64_t(1) << 40);
         });
  option(
      "--table-log2", "K", "ring: messages update 2^K words over all PEs [none]; updates: words in all [16]",
      [&](const std::string& text) { options.table_log2 = unsigned(bench::parse_count("--table-log2", text, 1, 36)); });
  option("--buffer-bytes", "N", "ring: bytes of a buffer [the better of 16384 and 65536]",
         [&](const std::string& text) {
           options.buffer_bytes = bench::parse_count("--buffer-bytes", text, 256, ring_bytes_max);
         });
  option("--buffers", "WHICH",
         "ring: rings of so many buffers alone [the better of 8 and 32]; trip-...: reused (the same for all messages) "
         "or fresh (each out of memory that is in no cache) [reused]",
         [&](const std::string& text) { arguments.buffers = text; });
  option("--formulation", "NAME", "run this one alone [all are tried, the best is measured]",
         [&](const std::string& text) { arguments.formulation = text; });
  app.add_flag("--no-bind", "do not bind PEs to cores", [&] { options.bind = false; });
  option("--time-limit", "SECONDS", "end a run that takes longer [600]", [&](const std::string& text) {
    arguments.time_limit = std::chrono::seconds(bench::parse_count("--time-limit", text, 1, 1'000'000));
  });
  option("--json", "FILE", "write the record to FILE, or - for standard output",
         [&](const std::string& text) { arguments.json = text; });
  return app.parse(argc, argv);
}

bool given(const Arguments& arguments, const char* option) {
  return std::ranges::find(arguments.given, option) != arguments.given.end();
}

bool is_trip(const Options& options) { return std::ranges::find(trips, options.bench) != trips.end(); }

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

void refuse_options_of_others(const Arguments& arguments) {
  struct Owned {
    const char* option;
    std::vector<std::string> benches;
  };
  std::vector<std::string> with_buffers = trips, with_bytes = trips;
  with_buffers.insert(with_buffers.begin(), "ring");
  with_bytes.insert(with_bytes.begin(), {"ring", "latency", "copy", "cma"});
  const std::vector<Owned> owned = {{"--pattern", {"ring"}},     {"--type", {"ring"}},
                                    {"--variable", {"ring"}},    {"--buffer-bytes", {"ring"}},
                                    {"--buffers", with_buffers}, {"--table-log2", {"ring", "updates"}},
                                    {"--bytes", with_bytes}};
  const std::string& bench = arguments.options.bench;
  for (const Owned& one : owned) {
    if (!given(arguments, one.option) || std::ranges::find(one.benches, bench) != one.benches.end()) continue;
    refuse(fmt::format("{} is an option of {}, not of {}", one.option, fmt::join(one.benches, " and "), bench));
  }
}

void refuse_pes(const Options& options) {
  if ((options.bench == "latency" || options.bench == "cma" || is_trip(options)) && options.pes != 2) {
    refuse(fmt::format("--pes: '{}' is not allowed; allowed for {} is 2", options.pes, options.bench));
  }
  if (options.bench != "ring" || options.pattern == Pattern::both_ways) return;
  if (options.pattern == Pattern::others) {
    if (options.pes == 1) refuse("--pes: '1' is not allowed; allowed for --pattern others are 2 or more");
  } else if (options.pes % 2 != 0) {
    refuse(fmt::format("--pes: '{}' is not allowed; allowed for --pattern {} is an even number", options.pes,
                       patterns[std::size_t(options.pattern)]));
  }
}

void refuse_sizes(const Options& options) {
  if (options.bench == "ring" && options.bytes > ring_bytes_max) {
    refuse(fmt::format("--bytes: '{}' is not allowed; allowed for ring is 8 to {}", options.bytes, ring_bytes_max));
  }
  if (options.type == Type::parts && options.bytes < parts_bytes_min) {
    refuse(fmt::format("--bytes: '{}' is not allowed; allowed for --type struct is {} to {}", options.bytes,
                       parts_bytes_min, ring_bytes_max));
  }
  if (options.table_log2 == 0) return;
  const auto memory = bench::machine_description()["memory_bytes"].get<std::uint64_t>();
  if ((sizeof(std::uint64_t) << options.table_log2) > memory / 4 * 3) {
    refuse(
        fmt::format("--table-log2: '{}' is not allowed; a table of 2^{} words does not fit the {} MiB of memory here",
                    options.table_log2, options.table_log2, memory >> 20));
  }
}

/// What --buffers means to this case.
void lay_out(Arguments& arguments) {
  Options& options = arguments.options;
  const bool is_given = given(arguments, "--buffers");
  if (!is_trip(options)) {
    if (!is_given) return;
    options.buffers = bench::parse_count("--buffers", arguments.buffers, Ring::depth_min, Ring::depth_max);
    return;
  }
  if (is_given) options.fresh = bench::parse_choice("--buffers", arguments.buffers, bench::buffer_kinds) == "fresh";
  const bench::BufferLayout layout = bench::layout_of_buffers(options.bytes, options.fresh);
  options.buffer_stride = layout.stride;
  options.buffer_count = layout.count;
}

/// Sets the options that the user left to this case, and refuses options that exclude each other.
void complete(Arguments& arguments) {
  Options& options = arguments.options;
  refuse_options_of_others(arguments);
  const bool copies = options.bench == "copy" || options.bench == "cma" || is_trip(options);
  if (copies && !given(arguments, "--bytes")) options.bytes = std::size_t(1) << 20;
  if (copies && !given(arguments, "--messages")) {
    options.messages = std::clamp<std::uint64_t>((std::uint64_t(4) << 30) / options.bytes, 1, 100'000);
  }
  lay_out(arguments);
  if (options.bench == "copy" && !given(arguments, "--pes")) options.pes = 1;
  if (options.bench == "updates" && options.table_log2 == 0) options.table_log2 = 16;
  if (std::ranges::find(fixed_bytes, int(options.bytes)) == fixed_bytes.end() && options.type == Type::fixed) {
    if (given(arguments, "--type")) {
      refuse(fmt::format("--bytes: '{}' is not allowed; allowed for --type fixed are {}", options.bytes,
                         fmt::join(fixed_bytes, ", ")));
    }
    options.type = Type::bytes;
  }
  refuse_pes(options);
  refuse_sizes(options);
}

Job job_of(const Options& options) {
  if (options.bench == "updates") return updates_job(options);
  if (options.bench == "latency") return options.bytes == 8 ? latency_job(options) : pingpong_job(options);
  if (options.bench == "copy") return copy_job(options);
  if (options.bench == "cma") return cma_job(options);
  if (options.bench == "trip-mapped") return mapped_trips_job(options);
  if (options.bench == "trip-pieces") return pieces_trips_job(options);
  if (options.bench == "trip-cma") return cma_trips_job(options);
  return ring_job(options);
}

std::size_t message_bytes(const Options& options) { return options.bench == "updates" ? 8 : options.bytes; }

bench::Json record_of(const Options& options, const Job& job, const Outcome& outcome) {
  const bool verified = outcome.errors == 0;
  bench::Json record = bench::make_record(
      {options.bench, "limit", "local", options.pes, options.pes, 1, message_bytes(options), outcome.messages},
      outcome.seconds, verified);
  record["errors"] = outcome.errors;
  if (is_trip(options)) {
    record["by"] = options.bench;  // in a comparison it stands in the place of another benchmark
    record["buffers"] = bench::buffer_kinds[options.fresh ? 1 : 0];
  }
  if (outcome.unavailable[0] != '\0') {
    record["unavailable"] = outcome.unavailable;
    return record;
  }
  record["formulation"] = job.formulations[outcome.winner];
  for (std::size_t i = 0; i < job.formulations.size(); ++i) {
    if (outcome.tried[i] > 0) {
      record["tried_messages_per_second"][job.formulations[i]] = double(outcome.tried_messages) / outcome.tried[i];
    }
  }
  if (options.table_log2 > 0) record["table_log2"] = options.table_log2;
  if (options.bench == "ring") {
    record["pattern"] = patterns[std::size_t(options.pattern)];
    record["options"] = {{"buffer_bytes", job.buffer_bytes[outcome.winner]},
                         {"buffers", job.buffers[outcome.winner]},
                         {"type", types[std::size_t(options.type)]},
                         {"variable", options.type != Type::fixed}};
  }
  if (options.bench == "latency" || is_trip(options)) {
    const double one_way_us = outcome.seconds / double(outcome.messages) * 1e6;
    record["one_way_us"] = {{"median", one_way_us}, {"min", one_way_us}, {"max", one_way_us}};
  }
  if (options.bench == "copy" || options.bench == "cma") {
    record["bytes_per_second"] = record["messages_per_second"].get<double>() * double(options.bytes);
  }
  return record;
}

void print(const Options& options, const bench::Json& record) {
  if (record.contains("unavailable")) {
    std::cout << fmt::format("limit {}: not here: {}\n", options.bench, record["unavailable"].get<std::string>());
    return;
  }
  std::string figure = fmt::format("{:.2f} M/s in all", record["messages_per_second"].get<double>() / 1e6);
  if (record.contains("one_way_us"))
    figure = fmt::format("{:.1f} ns", record["one_way_us"]["median"].get<double>() * 1e3);
  if (record.contains("bytes_per_second")) {
    figure = fmt::format("{:.2f} GB/s", record["bytes_per_second"].get<double>() / 1e9);
  }
  std::cout << fmt::format(
                   "limit {}: {}, {} x {}, {:.3f} ms, {}, '{}', {}\n", options.bench, base::counted(options.pes, "PE"),
                   record["messages"].get<std::uint64_t>(), base::counted(message_bytes(options), "byte"),
                   record["seconds"]["median"].get<double>() * 1e3, figure, record["formulation"].get<std::string>(),
                   record["verified"].get<bool>() ? "verified" : "WRONG")
            << std::flush;
}

/// The job, and the formulation that the user chose.
struct Prepared {
  Job job;
  std::optional<std::size_t> only;  // of its formulations
};

Prepared prepare(Arguments& arguments) {
  complete(arguments);
  Prepared prepared{job_of(arguments.options), {}};
  const std::vector<std::string>& names = prepared.job.formulations;
  if (!arguments.formulation.empty()) {
    bench::parse_choice("--formulation", arguments.formulation, names);
    prepared.only = std::size_t(std::ranges::find(names, arguments.formulation) - names.begin());
  }
  return prepared;
}

int run(const Arguments& arguments, const Prepared& prepared) {
  const Options& options = arguments.options;
  const Memory shared(Memory::Kind::shared, prepared.job.shared_bytes), result(Memory::Kind::shared, sizeof(Outcome));
  auto& outcome = *reinterpret_cast<Outcome*>(result.data());
  const std::string failure = run_processes(options.pes, options.bind, arguments.time_limit, [&](Pe& pe) {
    prepared.job.body(pe, shared.data(), prepared.only, outcome);
  });
  if (!failure.empty()) throw std::runtime_error(failure);
  const bench::Json record = record_of(options, prepared.job, outcome);
  if (arguments.json.empty()) {
    print(options, record);
  } else {
    bench::write_json(arguments.json, record);
  }
  return record["verified"].get<bool>() ? 0 : 1;
}

}  // namespace
}  // namespace headway::limit

int main(int argc, char** argv) {
  using namespace headway::limit;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  int status_of_errors = 2;  // unusable arguments
  try {
    const Prepared prepared = prepare(arguments);
    status_of_errors = 1;
    return run(arguments, prepared);
  } catch (const std::exception& error) {
    std::cerr << "headway-limit: " << error.what() << '\n';
    return status_of_errors;
  }
}
