// SPDX-License-Identifier: BSD-3-Clause
/// PE 0 puts words to random places of PE 1's memory; verified.
#include <fmt/format.h>

#include <array>
#include <headway/base/counted.hpp>
#include <headway/headway.hpp>
#include <iostream>
#include <options.hpp>
#include <put/work.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::bench {
namespace {

const std::array<std::string, 3> ways = {"write", "put", "store"};

struct Arguments {
  unsigned log2 = 16;
  std::uint64_t puts = 0;  // 0: as many as suit the way
  std::string way = "put";
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output

  std::uint64_t puts_or_default() const {
    if (puts != 0) return puts;
    return way == "write" && !memory.mapped ? 100'000 : 10'000'000;
  }
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("PE 0 puts words to random places of PE 1's memory; verified.", "headway-put");
  app.add_count("--log2", "K", "2^K words that are put to [16]", arguments.log2, 1, 30);
  app.add_count("--puts", "N", "words that are put [10^7, and 10^5 with --way write --messages-only]", arguments.puts,
                1, std::uint64_t(1) << 40);
  app.add_choice("--way", "NAME",
                 "write (each waited for), put (split-phase), store (by messages, that their receiver waits for) [put]",
                 arguments.way, ways);
  add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// PE 0's part.
void put_all(GlobalMemory& memory, const Arguments& arguments, GlobalPtr<std::uint64_t> to,
             std::span<const std::uint64_t> words, std::uint64_t puts) {
  PutPlaces places(arguments.log2);
  const auto each = [&](auto put) {
    for (std::uint64_t i = 0; i < puts; ++i) {
      const std::uint64_t place = places.next();
      put(to + std::ptrdiff_t(place), words[place]);
    }
  };
  if (arguments.way == "write") {
    each([&](GlobalPtr<std::uint64_t> p, std::uint64_t word) { memory.write(p, word); });
  } else if (arguments.way == "put") {
    each([&](GlobalPtr<std::uint64_t> p, std::uint64_t word) { memory.put(p, word); });
    memory.sync();
  } else {
    each([&](GlobalPtr<std::uint64_t> p, std::uint64_t word) { memory.store(p, word); });
  }
}

int measure(Pe& pe, const Arguments& arguments) {
  if (pe.size() != 2) {
    if (pe.id() == 0) {
      std::cerr << fmt::format("headway-put: {} {} not allowed; allowed are 2\n", base::counted(pe.size(), "PE"),
                               base::by_number(pe.size(), "is", "are"));
    }
    return exit_status::unusable_arguments;
  }
  GlobalMemory memory(pe, arguments.memory);
  const DistArray<std::uint64_t> table(pe, std::size_t(2) << arguments.log2);  // of which PE 1's half is put to
  const std::span<std::uint64_t> own = table.local();
  std::ranges::fill(own, 0);
  const GlobalPtr<std::uint64_t> to = table[std::size_t(1) << arguments.log2];
  const std::uint64_t puts = arguments.puts_or_default();
  std::array<AggregatorStatistics, 11> before;
  double seconds = 0;
  for (const bool timed : {false, true}) {
    const std::vector<std::uint64_t> words = words_to_put(arguments.log2, timed);
    pe.quiesce();
    before = memory.statistics();
    const std::int64_t begin = pe.engine().now();
    if (pe.id() == 0) put_all(memory, arguments, to, words, timed ? puts : warming_puts(puts));
    pe.quiesce();
    seconds = max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  }
  const FrameCounts frames = sum_over_pes(pe, growth(before, memory.statistics()));
  std::uint64_t errors = pe.id() == 1 ? wrong_puts(own, arguments.log2, puts) : 0;
  if (pe.id() == 1 && arguments.way == "store") {
    errors += memory.stored_bytes() != (puts + warming_puts(puts)) * sizeof(std::uint64_t);
  }
  errors = sum_over_pes(pe, errors);
  if (pe.id() == 0) {
    const AggregatorOptions& effective = memory.aggregation();
    Json record = make_record(make_case(pe, "put", effective, sizeof(std::uint64_t), puts), seconds, errors == 0);
    add_frames(record, frames);
    record["errors"] = errors;
    record["options"] = options_record(effective);
    record["options"]["way"] = arguments.way;
    record["options"]["mapped"] = arguments.memory.mapped;
    report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
