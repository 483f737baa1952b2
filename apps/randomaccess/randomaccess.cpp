/// HPC Challenge RandomAccess: T[a mod 2^k] ^= a for 4 * 2^k values of one global sequence, on a table spread over all
/// PEs. Each PE generates its part and sends every update, eight bytes, to the PE that owns the word.
#include <fmt/format.h>

#include <headway/base/bytes.hpp>
#include <headway/base/machine.hpp>
#include <headway/headway.hpp>
#include <iostream>
#include <options.hpp>

#include "sequence.hpp"
#include "table.hpp"

namespace headway::randomaccess {
namespace {

struct Arguments {
  unsigned log2 = 20;
  double updates_per_word = 4;
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("HPC Challenge RandomAccess on Headway; verified, 0 errors allowed.", "headway-randomaccess");
  bench::add_value(
      app, "--log2",
      [&](const std::string& text) {
        arguments.log2 = unsigned(bench::parse_count("--log2", text, 1, log2_max));
        const std::uint64_t bytes = sizeof(std::uint64_t) << arguments.log2;
        if (bytes > available_memory_bytes() / 4 * 3) {
          throw SettingError(fmt::format("--log2: '{}' is not allowed; a table of {} does not fit the {} here", text,
                                         format_bytes(bytes), format_bytes(available_memory_bytes())));
        }
      },
      "K", "2^K words in all [20]");
  bench::add_value(
      app, "--updates-per-word",
      [&](const std::string& text) {
        arguments.updates_per_word = bench::parse_number("--updates-per-word", text, 0, 1e9);
      },
      "N", "updates in all are N * 2^K [4]");
  bench::add_aggregator_options(app, arguments.aggregator);
  bench::add_value(
      app, "--json", [&](const std::string& text) { arguments.json = text; }, "FILE",
      "write the record to FILE, or - for standard output");
  return bench::parse_command_line(app, argc, argv);
}

template <class Blocks>
int measure(Pe& pe, const Arguments& arguments, const Blocks blocks) {
  const std::size_t me = pe.id();
  const auto updates_all = std::uint64_t(double(std::uint64_t(1) << arguments.log2) * arguments.updates_per_word);
  const Share share = share_of(updates_all, me, pe.size());

  Table table(blocks, me);
  Aggregator<std::uint64_t> updates(pe, arguments.aggregator);
  updates.on([words = table.data(), blocks](const std::uint64_t& a) { words[blocks.slot(a)] ^= a; });

  const auto pass = [&](Share part) {
    pe.quiesce();
    const std::int64_t begin = pe.engine().now();
    std::uint64_t a = starts(part.begin);
    for (std::uint64_t left = part.size(); left > 0; --left) {
      a = step(a);
      updates.send(blocks.owner(a), a);
    }
    pe.quiesce();
    return double(pe.engine().now() - begin) * 1e-9;
  };
  pass({share.begin, share.begin + std::min<std::uint64_t>(share.size() / 4, 1 << 18)});  // warms caches and frames
  table.reset();
  const AggregatorStatistics before = updates.statistics();
  const double seconds = bench::max_over_pes(pe, pass(share));
  const AggregatorStatistics after = updates.statistics();

  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t handled = bench::sum_over_pes(pe, after.handled - before.handled);
  const std::uint64_t errors = bench::sum_over_pes(pe, table.undo_and_count_errors(blocks, me, updates_all));
  const bool verified = errors == 0 && handled == updates_all;
  if (me == 0) {
    const AggregatorOptions& effective = updates.options();
    bench::Json record = bench::make_record(
        bench::make_case(pe, "randomaccess", effective, sizeof(std::uint64_t), updates_all), seconds, verified);
    bench::add_frames(record, frames);
    record["table_log2"] = arguments.log2;
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    bench::report(record, arguments.json);
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::randomaccess

int main(int argc, char** argv) {
  using namespace headway::randomaccess;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    return with_blocks(arguments.log2, pe.size(), pe.id(),
                       [&](const auto& blocks) { return measure(pe, arguments, blocks); });
  });
}
