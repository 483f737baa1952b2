// SPDX-License-Identifier: BSD-3-Clause
/// Sample sort of keys that are spread over all PEs (sample of Split-C's programs): samples give splitters, each key is
/// a message to the PE of its range, and every PE sorts the keys that it received.
#include <array>
#include <headway/headway.hpp>
#include <options.hpp>
#include <sorting/local_sort.hpp>
#include <sorting/splitters.hpp>
#include <sorting/verify.hpp>
#include <span>
#include <support/scale.hpp>
#include <support/work.hpp>
#include <vector>

namespace headway::sample {
namespace {

using sorting::Key;

struct Arguments {
  sorting::Input input{.keys = 0};  // 0: as many as `scale` says
  double scale = 0.125, work_us = 0;
  std::size_t oversampling = 1024;
  std::string way = "radix";
  std::uint64_t spoil = 0;
  std::string spoil_what = "order";
  AggregatorOptions aggregation;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Sample sort (sample of Split-C) on Headway's aggregator; verified.", "headway-sample");
  app.add_count("--keys", "N", "keys of 32 bits, of all PEs together [by --scale]", arguments.input.keys, 1,
                sorting::keys_max);
  apps::add_scale(app, "32 M keys", arguments.scale);
  apps::add_work(app, "key: half when it is sent, half when it is sorted", arguments.work_us);
  app.add_count("--distinct", "N", "keys are below this number [2^32]", arguments.input.distinct, 1,
                std::uint64_t(1) << 32);
  app.add_count("--oversampling", "N", "samples of each PE [1024]", arguments.oversampling, 1, 1 << 20);
  app.add_choice("--way", "NAME", "how each PE sorts its range: std (std::sort) or radix [radix]", arguments.way,
                 sorting::local_sorts);
  app.add_count("--spoil", "N", "change so many results on each PE, to test the check [0]", arguments.spoil, 0,
                sorting::keys_max);
  app.add_choice("--spoil-what", "NAME", "order: exchange unequal neighbours; key: double one [order]",
                 arguments.spoil_what, std::span(sorting::spoilings).first(2));
  bench::add_aggregator_options(app, arguments.aggregation);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    if (arguments.input.keys == 0) arguments.input.keys = apps::scaled(arguments.scale, 1 << 25);
  });
}

/// One PE's part.
class Sorter {
 public:
  Sorter(Pe& pe, const Arguments& arguments)
      : pe_(pe),
        arguments_(arguments),
        work_(pe, arguments.work_us / 2),
        blocks_(arguments.input.keys, pe.size()),
        messages_(pe, arguments.aggregation),
        groups_(pe.size()) {
    const std::uint64_t first = blocks_.first(pe.id()), count = blocks_.count(pe.id());
    given_.resize(count);
    for (std::size_t i = 0; i != count; ++i) given_[i] = arguments.input.key(first + i);
    received_.resize(blocks_.block() + blocks_.block() / 4 + 1024);
    messages_.on([this](Key key) { take(key); });
  }

  void sort() {
    const std::vector<Key> splitters = agree_on_splitters();
    const Key* next = given_.data();
    const auto choose = [&](Key& key) {
      key = *next++;
      return sorting::destination(splitters, key);
    };
    groups_.split(given_.size(), choose, [&](std::size_t owner, std::span<const Key> keys) {
      if (owner != pe_.id()) return work_ ? work_and_send(owner, keys) : messages_.send_range(owner, keys);
      work_.done(double(keys.size()));
      for (const Key key : keys) take(key);
    });
    pe_.quiesce();
    sorting::sort(keys(), arguments_.way);
    work_.done(double(count_));
    pe_.quiesce();
  }

  std::span<Key> keys() { return std::span(received_).first(count_); }
  std::uint64_t kept() const { return count_ - messages_.statistics().handled; }
  const sorting::Blocks& blocks() const { return blocks_; }
  AggregatorStatistics statistics() const { return messages_.statistics(); }
  const AggregatorOptions& options() const { return messages_.options(); }

 private:
  std::vector<Key> agree_on_splitters() {
    std::vector<Key> samples;
    const std::vector<std::vector<Key>> all = all_gather(
        pe_, sorting::draw_samples(arguments_.input, blocks_.first(pe_.id()), given_.size(), arguments_.oversampling));
    for (const std::vector<Key>& part : all) samples.insert(samples.end(), part.begin(), part.end());
    return sorting::choose_splitters(std::move(samples), pe_.size());
  }
  void work_and_send(std::size_t owner, std::span<const Key> keys) {
    for (const Key key : keys) {
      work_.done(1);
      messages_.send(owner, key);
    }
  }
  void take(Key key) {
    if (count_ == received_.size()) [[unlikely]]
      received_.resize(count_ + count_ / 4);
    received_[count_++] = key;
  }

  Pe& pe_;
  const Arguments& arguments_;
  apps::Work work_;  // sending or sorting a key
  sorting::Blocks blocks_;
  Aggregator<Key> messages_;
  sorting::Groups<Key> groups_;
  std::vector<Key> given_, received_;  // the latter has memory for more than `count_` keys
  std::size_t count_ = 0;
};

int measure(Pe& pe, const Arguments& given) {
  Arguments arguments = given;
  arguments.input.seed = base::Settings::from_environment().seed;
  Sorter sorter(pe, arguments);
  pe.quiesce();
  const AggregatorStatistics before = sorter.statistics();
  const std::int64_t begin = pe.engine().now();
  sorter.sort();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = sorter.statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t messages = bench::sum_over_pes(pe, after.messages);
  const double most = bench::max_over_pes(pe, double(after.messages));
  const std::uint64_t kept = bench::sum_over_pes(pe, sorter.kept());

  const std::uint64_t peak_memory = sorting::peak_memory_bytes(pe);
  sorting::spoil(sorter.keys(), arguments.spoil, arguments.spoil_what);
  const std::uint64_t first = sorter.blocks().first(pe.id());
  sorting::Verdict verdict = sorting::verify(pe, arguments.input, first, first + sorter.blocks().count(pe.id()),
                                             std::span<const Key>(sorter.keys()));
  verdict.other = messages + kept != arguments.input.keys;
  if (pe.id() == 0) {
    bench::Json record = bench::make_record(bench::make_case(pe, "sample", sorter.options(), sizeof(Key), messages),
                                            seconds, verdict.errors() == 0);
    bench::add_frames(record, frames);
    record["messages_max"] = std::uint64_t(most);
    sorting::add_verdict(record, "headway-sample", arguments.input, verdict, seconds, pe.size(), peak_memory);
    record["options"] = bench::options_record(sorter.options());
    record["options"]["oversampling"] = arguments.oversampling;
    record["options"]["way"] = arguments.way;
    bench::report(record, arguments.json);
  }
  return verdict.errors() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::sample

int main(int argc, char** argv) {
  using namespace headway::sample;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
