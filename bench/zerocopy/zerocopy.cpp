// SPDX-License-Identifier: BSD-3-Clause
/// Pairs of PEs: one message to the partner and one back, out of memory of which both ends are written and no more. How
/// it travels is a way, a class that has
///
///     Method(pe, options, targets)     collective; content that is copied to memory of its receiver's comes to
///     targets, a
///                                   HeapBuffers, a buffer each message in turn
///     on(arrived)                   arrived(index, data) is called when a message is here, in a handler or in
///                                   wait_until(); all of it is in data, which stays until arrived() returns
///     copies                        whether it has use for targets
///     issue(partner, index, data)   begins to send; data stays as it is until the partner's next message has arrived
///     wait_until(done)              until done() holds, which reads what arrived() changes
///     statistics(), options()       of what carries it
#include <fmt/format.h>

#include <cstdio>
#include <headway/base/counted.hpp>
#include <headway/headway.hpp>
#include <iostream>
#include <message/laps.hpp>
#include <message/message.hpp>
#include <message/type.hpp>
#include <numeric>
#include <options.hpp>
#include <zerocopy/direct.hpp>
#include <zerocopy/kept.hpp>
#include <zerocopy/post.hpp>
#include <zerocopy/regular.hpp>
#include <zerocopy/send.hpp>
#include <zerocopy/sources.hpp>
#include <zerocopy/ways.hpp>

namespace headway::bench {
namespace {

/// Answers up to this size are sent when the message has arrived, maybe by its handler; larger ones by the main
/// program, which waits for room where a handler would have its message copied aside.
constexpr std::size_t answered_at_once_bytes_max = std::size_t(64) << 10;

struct Arguments {
  std::size_t bytes = std::size_t(64) << 10;
  std::uint64_t messages = 0;  // round trips; 0: by size
  std::string way = zerocopy_ways.front(), memory = zerocopy_memories.front(), buffers = buffer_kinds.front();
  bool touch = false;
  bool list_ways = false;
  AggregatorOptions aggregator{.topology = direct()};
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app(
      "One message to the partner and back between pairs of PEs, out of memory that stays as it is; verified.",
      "headway-zerocopy");
  app.add_choice("--way", "NAME", fmt::format("{} [{}]", fmt::join(zerocopy_ways, ", "), arguments.way), arguments.way,
                 zerocopy_ways);
  app.add_flag("--list-ways", "print the ways, one a line", arguments.list_ways);
  app.add_choice("--memory", "NAME", "of what is sent: heap or pool (mapped by the PEs of a host) [heap]",
                 arguments.memory, zerocopy_memories);
  app.add_choice("--buffers", "NAME", buffer_kinds_help, arguments.buffers, buffer_kinds);
  app.add_value("--bytes", "N", fmt::format("bytes of a message, a multiple of 8 [{}]", arguments.bytes),
                [&](const std::string& text) {
                  arguments.bytes = parse_count("--bytes", text, sizeof(std::uint64_t), message_bytes_max);
                  if (arguments.bytes % sizeof(std::uint64_t) == 0) return;
                  throw SettingError(fmt::format("--bytes: '{}' is not allowed; allowed are multiples of 8", text));
                });
  app.add_count("--messages", "M",
                fmt::format("round trips of each pair [by size, at most {}]", default_messages("zerocopy", 1)),
                arguments.messages, 1, 1ull << 40);
  app.add_flag("--touch", "the receiver adds up the words of each message while it is timed", arguments.touch);
  add_aggregator_options(app, arguments.aggregator);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    if (arguments.messages == 0) arguments.messages = default_messages("zerocopy", arguments.bytes);
  });
}

std::uint64_t sum_of(std::span<const std::uint64_t> words) {
  return std::accumulate(words.begin(), words.end(), std::uint64_t(0));
}

/// The sum of all words of messages 0 to `messages`-1 of `source`. A message's number and its complement add up to -1.
std::uint64_t expected_touched(std::uint64_t messages, std::size_t bytes, std::size_t source) {
  std::vector<std::uint64_t> message(bytes / sizeof(std::uint64_t));
  fill_pattern(std::as_writable_bytes(std::span(message)), source);
  if (message.size() == 1) return messages * (messages - 1) / 2;
  message.front() = 0;
  message.back() = ~std::uint64_t(0);
  return messages * sum_of(message);
}

/// One PE's part of the game. Collective to make.
template <class Method>
class Player {
 public:
  Player(Pe& pe, const Arguments& arguments)
      : pe_(&pe),
        arguments_(&arguments),
        sources_(pe, arguments.bytes, arguments.buffers == "fresh", arguments.memory == "pool"),
        targets_(Method::copies ? arguments.bytes : 0, Method::copies && arguments.buffers == "fresh"),
        method_(pe, arguments.aggregator, targets_) {
    method_.on([this](std::uint64_t index, std::span<const std::uint64_t> data) { arrived(index, data); });
  }

  /// Collective. Looks at every byte, or with no checker adds up. The time from when all are ready to when all has
  /// arrived, the longest of any PE.
  double pass(std::uint64_t trips, Checker* checker, bool touch) {
    checker_ = checker;
    touch_ = touch;
    sum_ = {};
    came_ = sent_ = touched_ = 0;
    trips_ = trips;
    pe_->quiesce();
    const std::int64_t begin = pe_->engine().now();
    laps_ = {trips, begin};
    play();
    pe_->quiesce();
    return max_over_pes(*pe_, double(pe_->engine().now() - begin) * 1e-9);
  }

  /// How many results of the last pass are wrong, which had no checker.
  std::uint64_t errors() const {
    const std::uint64_t touched = touch_ ? expected_touched(trips_, arguments_->bytes, partner()) : 0;
    return misnumbered_ + (sum_ != expected_sum(trips_, arguments_->bytes)) + (touched_ != touched);
  }

  /// Collective. The mean over pairs.
  double one_way_us() const {
    const double in_all = allreduce(*pe_, begins() ? laps_.one_way_us() : 0, [](double a, double b) { return a + b; });
    const std::size_t pairs = pe_->size() / 2;
    return in_all / double(pairs);
  }

  std::size_t partner() const { return pe_->id() ^ 1; }
  std::size_t buffers() const { return sources_.count(); }
  const Method& way() const { return method_; }

 private:
  bool begins() const { return pe_->id() % 2 == 0; }
  bool at_once() const { return arguments_->bytes <= answered_at_once_bytes_max; }
  void hit() {
    const std::uint64_t index = sent_++;
    method_.issue(partner(), index, sources_.message(index));
  }

  void arrived(std::uint64_t index, std::span<const std::uint64_t> data) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data.data());
    if (checker_ != nullptr) {
      (*checker_)(bytes, data.size_bytes());
    } else if (data.size_bytes() == arguments_->bytes) {
      add(sum_, ends_of(bytes, data.size_bytes()));
      if (touch_) touched_ += sum_of(data);
    }
    misnumbered_ += index != came_;
    ++came_;
    if (laps_.due(came_)) laps_.mark(pe_->engine().now());
    if (at_once() && sent_ < trips_) hit();
  }

  void play() {
    if (at_once()) {
      if (begins()) hit();
      method_.wait_until([this] { return came_ == trips_; });
      return;
    }
    for (std::uint64_t trip = 0; trip < trips_; ++trip) {
      if (begins()) hit();
      method_.wait_until([this, trip] { return came_ > trip; });
      if (!begins()) hit();
    }
  }

  Pe* pe_;
  const Arguments* arguments_;
  Sources sources_;
  HeapBuffers targets_;
  Method method_;
  Checker* checker_ = nullptr;
  bool touch_ = false;
  Sum sum_;
  std::uint64_t trips_ = 0, sent_ = 0, came_ = 0, touched_ = 0, misnumbered_ = 0;
  Laps laps_;
};

/// Collective. Verifies, measures and reports; the status to end with.
template <class Method>
int measure(Pe& pe, const Arguments& arguments) {
  Player<Method> player(pe, arguments);
  const std::uint64_t some = checked_messages(arguments.messages, arguments.bytes);
  Checker checker(arguments.bytes, some, player.partner());
  player.pass(some, &checker, false);
  player.pass(player.buffers(), nullptr, arguments.touch);  // every buffer has been sent, every frame been used
  std::uint64_t errors = checker.errors() + player.errors();
  const AggregatorStatistics before = player.way().statistics();
  const double seconds = player.pass(arguments.messages, nullptr, arguments.touch);
  const FrameCounts frames = sum_over_pes(pe, growth(before, player.way().statistics()));
  errors = sum_over_pes(pe, errors + player.errors());
  const double one_way_us = player.one_way_us();
  if (pe.id() == 0) {
    const AggregatorOptions& options = player.way().options();
    Json record = make_record(make_case(pe, "zerocopy", options, arguments.bytes, arguments.messages * pe.size()),
                              seconds, errors == 0);
    record["mode"] = zerocopy_mode(arguments.way);
    record["way"] = arguments.way;
    record["memory"] = arguments.memory;
    record["buffers"] = arguments.buffers;
    record["touch"] = arguments.touch;
    record["one_way_us"] = to_json(spread_of({one_way_us}));
    add_frames(record, frames);
    record["options"] = options_record(options);
    record["options"]["topology"] = to_string(options.topology);
    report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

int measure_way(Pe& pe, const Arguments& arguments) {
  if (pe.size() % 2 != 0) {
    if (pe.id() == 0) {
      std::cerr << fmt::format("headway-zerocopy: {} {} not allowed; allowed is an even number, for it pairs them\n",
                               base::counted(pe.size(), "PE"), base::by_number(pe.size(), "is", "are"));
    }
    return exit_status::unusable_arguments;
  }
  if (arguments.way == "kept") return measure<Kept>(pe, arguments);
  if (arguments.way == "send") return measure<Send>(pe, arguments);
  if (arguments.way == "post") return measure<Post>(pe, arguments);
  if (arguments.way == "direct") return measure<Direct>(pe, arguments);
  return measure<Regular>(pe, arguments);
}

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  if (arguments.list_ways) {
    for (const std::string& way : zerocopy_ways) std::puts(way.c_str());
    return 0;
  }
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure_way(pe, arguments); });
}
