// SPDX-License-Identifier: BSD-3-Clause
/// Integer radix sort of keys that are spread over all PEs (radix and radb of Split-C's programs). Each pass makes
/// histograms, scans them over the PEs, and sends each key to its place: one message each, or in bulk.
#include <algorithm>
#include <array>
#include <headway/headway.hpp>
#include <options.hpp>
#include <sorting/verify.hpp>
#include <support/scale.hpp>
#include <support/work.hpp>

#include "sorter.hpp"

namespace headway::radix {
namespace {

const std::array<std::string, 2> ways = {"store", "bulk"};

struct Arguments {
  sorting::Input input{.keys = 0};  // 0: as many as `scale` says
  double scale = 0.25, work_us = 0;
  unsigned digit_bits = 16;
  std::string way = "store";
  bool pairs = false, serial = true;
  std::uint64_t spoil = 0;
  std::string spoil_what = "order";
  AggregatorOptions aggregation;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Integer radix sort (radix and radb of Split-C) on Headway's aggregator; verified.",
                         "headway-radix");
  app.add_count("--keys", "N", "keys of 32 bits, of all PEs together [by --scale]", arguments.input.keys, 1,
                sorting::keys_max);
  apps::add_scale(app, "16 M keys", arguments.scale);
  apps::add_work(app, "key in a pass", arguments.work_us);
  app.add_count("--distinct", "N", "keys are below this number [2^32]", arguments.input.distinct, 1,
                std::uint64_t(1) << 32);
  app.add_count("--digit-bits", "N", "bits of a digit [16]", arguments.digit_bits, 4, 16);
  app.add_choice("--way", "NAME",
                 "store: a message for each key, and for each bucket around the ring; bulk: keys and histograms in "
                 "large messages [store]",
                 arguments.way, ways);
  app.add_flag("--pairs", "sort keys with their indices, to verify that equal keys keep their order", arguments.pairs);
  app.add_flag("--no-serial", "do not sort on one processor to compare numbers of messages (up to 2^22 keys)",
               [&] { arguments.serial = false; });
  app.add_count("--spoil", "N", "change so many results on each PE, to test the check [0]", arguments.spoil, 0,
                sorting::keys_max);
  app.add_choice("--spoil-what", "NAME",
                 "order: exchange unequal neighbours; key: double one; index: exchange those of equal keys [order]",
                 arguments.spoil_what, sorting::spoilings);
  bench::add_aggregator_options(app, arguments.aggregation);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    if (arguments.input.keys == 0) arguments.input.keys = apps::scaled(arguments.scale, 1 << 24);
    if (arguments.spoil_what == "index" && !arguments.pairs)
      throw SettingError("--spoil-what: 'index' is allowed only with --pairs");
  });
}

constexpr std::uint64_t serial_keys_max = 1 << 22;

/// Collective. How many of this PE's counts of messages are wrong. The keys that one processor moves are known to PE 0.
template <class Sorter>
std::uint64_t wrong_counts(Pe& pe, const Arguments& arguments, const Digits& digits, const Sorter& sorter,
                           std::uint64_t keys_sent, std::uint64_t scan_sent) {
  std::uint64_t wrong = scan_sent != sorter.scan_expected();
  if (arguments.way == "bulk") return wrong + (keys_sent > digits.passes() * (pe.size() - 1));
  if (!arguments.serial || arguments.input.keys > serial_keys_max) return wrong;
  const std::vector<std::uint64_t> sent = all_gather(pe, keys_sent);
  if (pe.id() != 0) return wrong;
  std::vector<Key> keys(arguments.input.keys);
  for (std::size_t i = 0; i != keys.size(); ++i) keys[i] = arguments.input.key(i);
  const std::vector<std::uint64_t> expected = sort_and_count(keys, digits, pe.size());
  for (std::size_t other = 0; other != pe.size(); ++other) wrong += sent[other] != expected[other];
  return wrong;
}

template <class Sorter>
int measure_with(Pe& pe, const Arguments& arguments) {
  const Digits digits(arguments.digit_bits);
  Sorter sorter(pe, arguments.input, digits, arguments.aggregation, apps::Work(pe, arguments.work_us));
  pe.quiesce();
  const std::vector<AggregatorStatistics> before = sorter.statistics();
  const std::int64_t begin = pe.engine().now();
  sorter.sort();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const std::vector<AggregatorStatistics> after = sorter.statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t keys_sent = sorter.keys_sent(), scan_sent = sorter.scan_sent();
  const std::uint64_t keys_sent_all = bench::sum_over_pes(pe, keys_sent);
  const std::uint64_t scan_sent_all = bench::sum_over_pes(pe, scan_sent);
  const std::uint64_t bytes_sent = bench::sum_over_pes(pe, sorter.bytes_sent());
  const double most = bench::max_over_pes(pe, double(keys_sent + scan_sent));

  const std::uint64_t peak_memory = sorting::peak_memory_bytes(pe);
  sorting::spoil(sorter.items(), arguments.spoil, arguments.spoil_what);
  const std::uint64_t first = sorter.blocks().first(pe.id());
  const auto items = std::span(std::as_const(sorter).items());
  sorting::Verdict verdict = sorting::verify(pe, arguments.input, first, first + items.size(), items);
  verdict.other = bench::sum_over_pes(pe, wrong_counts(pe, arguments, digits, sorter, keys_sent, scan_sent));
  if (pe.id() == 0) {
    const bool verified = verdict.errors() == 0;
    bench::Json record = bench::make_record(
        bench::make_case(pe, "radix", sorter.options(), bytes_sent / std::max<std::uint64_t>(keys_sent_all, 1),
                         keys_sent_all + scan_sent_all),
        seconds, verified);
    bench::add_frames(record, frames);
    record["digit_bits"] = arguments.digit_bits;
    record["passes"] = digits.passes();
    record["key_messages"] = keys_sent_all;
    record["scan_messages"] = scan_sent_all;
    record["messages_max"] = std::uint64_t(most);
    sorting::add_verdict(record, "headway-radix", arguments.input, verdict, seconds, pe.size(), peak_memory);
    record["options"] = bench::options_record(sorter.options());
    record["options"]["way"] = arguments.way;
    record["options"]["pairs"] = arguments.pairs;
    bench::report(record, arguments.json);
  }
  return verdict.errors() == 0 ? 0 : 1;
}

int measure(Pe& pe, const Arguments& given) {
  Arguments arguments = given;
  arguments.input.seed = base::Settings::from_environment().seed;
  const bool bulk = arguments.way == "bulk";
  if (arguments.pairs) {
    using sorting::Pair;
    return bulk ? measure_with<BulkSorter<Pair>>(pe, arguments) : measure_with<StoreSorter<Pair>>(pe, arguments);
  }
  return bulk ? measure_with<BulkSorter<Key>>(pe, arguments) : measure_with<StoreSorter<Key>>(pe, arguments);
}

}  // namespace
}  // namespace headway::radix

int main(int argc, char** argv) {
  using namespace headway::radix;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
