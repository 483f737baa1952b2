// SPDX-License-Identifier: BSD-3-Clause
/// Each PE reads words at random places of a table that is spread over all PEs (bale's index gather). Verified: every
/// word says where it lies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <headway/base/machine.hpp>
#include <headway/base/random.hpp>
#include <headway/headway.hpp>
#include <options.hpp>
#include <span>
#include <vector>

namespace headway::bench {
namespace {

const std::array<std::string, 3> ways = {"get", "read", "local"};

struct Arguments {
  unsigned log2 = 20;
  std::uint64_t gathers = 0;  // of each PE; 0: as many as suit the way
  std::string way = "get";
  bool dependent = false;
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output

  std::uint64_t gathers_or_default() const { return gathers != 0 ? gathers : way == "read" ? 100'000 : 10'000'000; }
  bool is_local() const { return way == "local"; }
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("Random reads of a table spread over all PEs; verified.", "headway-indexgather");
  app.add_count("--log2", "K", "2^K words in all [20]", arguments.log2, 1, 40);
  app.add_count("--gathers", "N", "words that each PE reads [10^7, and 10^5 with --way read]", arguments.gathers, 1,
                std::uint64_t(1) << 40);
  app.add_choice(
      "--way", "NAME",
      "get (split-phase), read (one after the other), local (out of a copy that each PE has, to compare with) [get]",
      arguments.way, ways);
  app.add_flag("--dependent",
               "each place depends on the word read before, so that reads do not overlap; with --way read and local",
               arguments.dependent);
  add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    if (arguments.dependent && arguments.way == "get")
      throw SettingError("--dependent: not allowed with --way get; allowed are read, local");
    const std::uint64_t words = std::uint64_t(1) << arguments.log2;
    const std::uint64_t bytes =
        sizeof(words) * (words * (arguments.is_local() ? 2 : 1) + arguments.gathers_or_default());
    if (bytes > base::available_memory_bytes() / 4 * 3) {
      throw SettingError(fmt::format("--log2: '{}' is not allowed; table and what is read, {}, do not fit the {} here",
                                     arguments.log2, base::format_bytes(bytes),
                                     base::format_bytes(base::available_memory_bytes())));
    }
  });
}

std::uint64_t value_at(std::uint64_t index) { return index * 0x9e3779b97f4a7c15 ^ index >> 7; }

/// Where a PE's reads go, one after the other, the same each time it is made.
class Sequence {
 public:
  Sequence(std::size_t pe, unsigned log2) : random_(pe + 1), mask_((std::uint64_t(1) << log2) - 1) {}
  std::uint64_t next() { return random_.next() & mask_; }
  /// That depends on a word that was read.
  std::uint64_t next(std::uint64_t word) { return (random_.next() ^ word) & mask_; }

 private:
  Random random_;
  std::uint64_t mask_;
};

class Gather {
 public:
  Gather(Pe& pe, const Arguments& arguments, GlobalMemory& memory, const DistArray<std::uint64_t>& table)
      : pe_(&pe), arguments_(&arguments), memory_(&memory), table_(&table) {
    if (!arguments.is_local()) return;
    copy_.resize(std::size_t(1) << arguments.log2);
    for (std::size_t i = 0; i < copy_.size(); ++i) copy_[i] = value_at(i);
  }

  /// All reads, one word each, into `values`.
  void run(std::span<std::uint64_t> values) {
    Sequence sequence(pe_->id(), arguments_->log2);
    const auto places = table_->places();
    GlobalMemory& memory = *memory_;
    if (arguments_->dependent) {
      const bool local = arguments_->is_local();
      std::uint64_t word = 0;
      if (local)
        for (std::uint64_t& value : values) value = word = copy_[sequence.next(word)];
      else
        for (std::uint64_t& value : values) value = word = memory.read(places, sequence.next(word));
    } else if (arguments_->way == "read") {
      for (std::uint64_t& value : values) value = memory.read(places, sequence.next());
    } else if (arguments_->is_local()) {
      for (std::uint64_t& value : values) value = copy_[sequence.next()];
    } else {
      for (std::uint64_t& value : values) memory.get(places[sequence.next()], &value);
      memory.sync();
    }
  }

  std::uint64_t errors(std::span<const std::uint64_t> values) const {
    Sequence sequence(pe_->id(), arguments_->log2);
    std::uint64_t errors = 0, word = 0;
    for (const std::uint64_t value : values) {
      word = value_at(arguments_->dependent ? sequence.next(word) : sequence.next());
      errors += value != word;
    }
    return errors;
  }

 private:
  Pe* pe_;
  const Arguments* arguments_;
  GlobalMemory* memory_;
  const DistArray<std::uint64_t>* table_;
  std::vector<std::uint64_t> copy_;  // of all of it
};

int measure(Pe& pe, const Arguments& arguments) {
  GlobalMemory memory(pe, arguments.memory);
  const DistArray<std::uint64_t> table(pe, std::size_t(1) << arguments.log2);
  const std::span<std::uint64_t> own = table.local();
  for (std::size_t j = 0; j < own.size(); ++j) own[j] = value_at(table.layout().global(pe.id(), j));
  Gather gather(pe, arguments, memory, table);
  const std::uint64_t gathers = arguments.gathers_or_default();
  std::vector<std::uint64_t> values(gathers);
  pe.quiesce();
  gather.run(std::span(values).first(std::min<std::uint64_t>((gathers + 3) / 4, 1 << 18)));  // warms caches and frames
  std::ranges::fill(values, 0);
  pe.quiesce();
  const auto before = memory.statistics();
  const std::int64_t begin = pe.engine().now();
  gather.run(values);
  pe.quiesce();
  const double seconds = max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const auto after = memory.statistics();
  const FrameCounts frames = sum_over_pes(pe, growth(before, after));
  const std::uint64_t errors = sum_over_pes(pe, gather.errors(values));
  if (pe.id() == 0) {
    const AggregatorOptions& effective = memory.aggregation();
    Json record = make_record(make_case(pe, "indexgather", effective, sizeof(std::uint64_t), gathers * pe.size()),
                              seconds, errors == 0);
    add_frames(record, frames);
    record["table_log2"] = arguments.log2;
    record["errors"] = errors;
    record["options"] = options_record(effective);
    record["options"]["way"] = arguments.way;
    record["options"]["dependent"] = arguments.dependent;
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
