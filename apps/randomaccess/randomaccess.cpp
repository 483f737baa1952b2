// SPDX-License-Identifier: BSD-3-Clause
/// HPC Challenge RandomAccess: T[a mod 2^k] ^= a for 4 * 2^k values of one global sequence, on a table spread over all
/// PEs. Each PE generates its part and sends every update, eight bytes, to the PE that owns the word. Updates may also
/// be larger messages, by their last eight bytes instead: T[a mod 2^k] ^= ~a.
#include <fmt/format.h>

#include <headway/base/bytes.hpp>
#include <headway/base/machine.hpp>
#include <headway/headway.hpp>
#include <message/kinds.hpp>
#include <message/payload.hpp>
#include <message/type.hpp>
#include <options.hpp>

#include "sequence.hpp"
#include "table.hpp"

namespace headway::randomaccess {
namespace {

struct Arguments {
  unsigned log2 = 20;
  double updates_per_word = 4;
  std::size_t bytes = sizeof(std::uint64_t);  // of an update
  std::string type;                           // one of message_types
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("HPC Challenge RandomAccess on Headway; verified, 0 errors allowed.", "headway-randomaccess");
  app.add_value("--log2", "K", "2^K words in all [20]", [&](const std::string& text) {
    arguments.log2 = unsigned(bench::parse_count("--log2", text, 1, log2_max));
    const std::uint64_t bytes = sizeof(std::uint64_t) << arguments.log2;
    if (bytes > base::available_memory_bytes() / 4 * 3) {
      throw SettingError(fmt::format("--log2: '{}' is not allowed; a table of {} does not fit the {} here", text,
                                     base::format_bytes(bytes), base::format_bytes(base::available_memory_bytes())));
    }
  });
  app.add_number("--updates-per-word", "N", "updates in all are N * 2^K [4]", arguments.updates_per_word, 0, 1e9);
  app.add_count("--bytes", "N", "bytes of an update: the value, a pattern, and the value's complement [8]",
                arguments.bytes, sizeof(std::uint64_t), bench::message_bytes_max);
  app.add_choice("--type", "TYPE", bench::message_types_help, arguments.type, bench::message_types);
  app.add_flag("--variable", "the same as --type bytes", [&] { arguments.type = "bytes"; });
  bench::add_aggregator_options(app, arguments.aggregator);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    bench::check_type(arguments.type, arguments.bytes, arguments.aggregator.threshold, arguments.aggregator.cutoff);
    arguments.type = bench::type_or_default(arguments.type, arguments.bytes);
  });
}

/// The update of HPC Challenge: the value alone. A Kind as those of message/kinds.hpp.
struct ValueAlone {
  using Sender = Aggregator<std::uint64_t>;
  using Received = const std::uint64_t&;
  ValueAlone(std::size_t /*bytes*/, std::size_t /*source*/) {}
  void send(Sender& sender, std::size_t owner, std::uint64_t a) { sender.send(owner, a); }
  static bench::Ends ends(Received a) { return {a, a}; }
  static void check(auto& checker, Received a) { checker(reinterpret_cast<const std::byte*>(&a), sizeof a); }
};

/// Collective. Sends some updates. Their handler checks every byte and applies nothing. Returns the number of errors.
template <class Kind, class Blocks>
std::uint64_t check_payload(Pe& pe, const Arguments& arguments, const Blocks& blocks, Share share) {
  typename Kind::Sender updates(pe, arguments.aggregator);
  bench::PayloadChecker checker(arguments.bytes, pe.size());
  std::uint64_t strays = 0;
  updates.on([&](PeId source, typename Kind::Received received) {
    const auto check = [&](const std::byte* message, std::size_t bytes) { checker(source, message, bytes); };
    Kind::check(check, received);
    strays += blocks.owner(Kind::ends(received).front) != pe.id();
  });
  Kind kind(arguments.bytes, pe.id());
  const std::uint64_t messages = bench::checked_messages(share.size(), arguments.bytes);
  pe.quiesce();
  std::uint64_t a = starts(share.begin);
  for (std::uint64_t left = messages; left > 0; --left) {
    a = step(a);
    kind.send(updates, blocks.owner(a), a);
  }
  pe.quiesce();
  const std::uint64_t came = bench::sum_over_pes(pe, checker.count()), sent = bench::sum_over_pes(pe, messages);
  return checker.errors() + strays + (came != sent);
}

template <class Kind, class Blocks>
int measure(Pe& pe, const Arguments& arguments, const Blocks blocks) {
  const std::size_t me = pe.id();
  const auto updates_all = std::uint64_t(double(std::uint64_t(1) << arguments.log2) * arguments.updates_per_word);
  const Share share = share_of(updates_all, me, pe.size());

  const bool has_payload = arguments.bytes > sizeof(std::uint64_t);
  const std::uint64_t damaged = has_payload ? check_payload<Kind>(pe, arguments, blocks, share) : 0;
  Table table(blocks, me);
  typename Kind::Sender updates(pe, arguments.aggregator);
  const auto apply = [words = table.data(), blocks](typename Kind::Received received) {
    const bench::Ends ends = Kind::ends(received);
    words[blocks.slot(ends.front)] ^= ends.back;
  };
  const auto fetch = [words = table.data(), blocks](typename Kind::Received received) {
    __builtin_prefetch(&words[blocks.slot(Kind::ends(received).front)], 1);
  };
  const bool cached = table.size() <= words_cached;
  if (cached)
    updates.on(apply);
  else
    updates.on(apply, fetch);

  const auto pass = [&](Share part, const char* name) {
    const auto passing = phase(pe, name);
    pe.quiesce();
    const std::int64_t begin = pe.engine().now();
    // A local copy: the compiler would read a captured value again after each message, since bytes may alias anything.
    const Blocks split = blocks;
    Kind kind(arguments.bytes, me);
    typename Kind::Sender& sender = updates;
    std::uint64_t a = starts(part.begin);
    const auto next = [&a, split] {
      a = step(a);
      return std::pair(split.owner(a), a);
    };
    if constexpr (std::is_same_v<Kind, ValueAlone>) {
      sender.send_n(part.size(), next);
    } else {  // made in the frame, not before
      for (std::uint64_t left = part.size(); left > 0; --left) {
        const auto [owner, value] = next();
        kind.send(sender, owner, value);
      }
    }
    pe.quiesce();
    return double(pe.engine().now() - begin) * 1e-9;
  };
  // Warms caches and frames.
  pass({share.begin, share.begin + std::min<std::uint64_t>(share.size() / 4, 1 << 18)}, "warm up");
  table.reset();
  const AggregatorStatistics before = updates.statistics();
  const double seconds = bench::max_over_pes(pe, pass(share, "update"));
  const AggregatorStatistics after = updates.statistics();

  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t handled = bench::sum_over_pes(pe, after.handled - before.handled);
  const auto value_of = [&](std::uint64_t a) { return bench::back_of(a, arguments.bytes); };
  const std::uint64_t errors =
      bench::sum_over_pes(pe, damaged + table.undo_and_count_errors(blocks, me, updates_all, value_of));
  const bool verified = errors == 0 && handled == updates_all;
  if (me == 0) {
    const AggregatorOptions& effective = updates.options();
    bench::Json record = bench::make_record(
        bench::make_case(pe, "randomaccess", effective, arguments.bytes, updates_all), seconds, verified);
    bench::add_frames(record, frames);
    record["table_log2"] = arguments.log2;
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    record["options"]["type"] = arguments.type;
    record["options"]["variable"] = arguments.type != "fixed";
    bench::report(record, arguments.json);
  }
  return verified ? 0 : 1;
}

/// Measures with the kind of messages that the arguments name. Only for the smallest is the cheapest kind of blocks
/// worth its compile time.
int measure_any(Pe& pe, const Arguments& arguments) {
  if (arguments.type == "fixed" && arguments.bytes == sizeof(std::uint64_t)) {
    return with_blocks(arguments.log2, pe.size(), pe.id(),
                       [&](const auto& blocks) { return measure<ValueAlone>(pe, arguments, blocks); });
  }
  const AnyBlocks blocks(arguments.log2, pe.size(), pe.id());
  return bench::with_kind(arguments.type, arguments.bytes,
                          [&]<class Kind>(std::type_identity<Kind>) { return measure<Kind>(pe, arguments, blocks); });
}

}  // namespace
}  // namespace headway::randomaccess

int main(int argc, char** argv) {
  using namespace headway::randomaccess;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure_any(pe, arguments); });
}
