/// Pairs of PEs: each sends m messages of n bytes to its partner at once; the time until all are handled on both.
/// Sizes that the compiler knows (8, 16, 32, 104, 1000) are sent as fixed-size messages, others as spans of bytes.
#include <fmt/format.h>

#include <headway/headway.hpp>
#include <iostream>
#include <message/message.hpp>
#include <options.hpp>

namespace headway::stream {
namespace {

struct Arguments {
  std::size_t bytes = 8;
  std::uint64_t messages = 1'000'000;  // of each PE
  bool variable = false;
  AggregatorOptions aggregator;
  std::string json;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("Messages of one size between pairs of PEs, both ways at once; verified.", "headway-stream");
  bench::add_value(
      app, "--bytes",
      [&](const std::string& text) { arguments.bytes = bench::parse_count("--bytes", text, 0, 1ull << 30); }, "N",
      "bytes of a message [8]");
  bench::add_value(
      app, "--messages",
      [&](const std::string& text) { arguments.messages = bench::parse_count("--messages", text, 1, 1ull << 40); }, "M",
      "messages that each PE sends [1000000]");
  app.add_flag("--variable", arguments.variable, "send as variable-size messages also where the size is fixed");
  bench::add_aggregator_options(app, arguments.aggregator);
  bench::add_value(
      app, "--json", [&](const std::string& text) { arguments.json = text; }, "FILE",
      "write the record to FILE, or - for standard output");
  if (const auto status = bench::parse_command_line(app, argc, argv)) return status;
  const AggregatorOptions& options = arguments.aggregator;
  const bool variable = arguments.variable || !bench::is_fixed_size(arguments.bytes);
  if (variable && options.threshold >= 0 && options.cutoff >= 0 && options.threshold + options.cutoff > 1) {
    std::cerr << fmt::format(
        "headway-stream: --threshold {} and --cutoff {} are not allowed together; for messages of variable size their "
        "sum "
        "is at most 1\n",
        options.threshold, options.cutoff);
    return exit_status::unusable_arguments;
  }
  return std::nullopt;
}

/// Messages of type Fixed<n>.
template <class Message>
struct FixedTraffic {
  using Sender = Aggregator<Message>;
  using Received = const Message&;
  Message message{};

  FixedTraffic(std::size_t /*bytes*/, std::size_t me) { bench::fill_pattern(std::as_writable_bytes(std::span(message)), me); }
  void send(Sender& sender, std::size_t partner, std::uint64_t index) {
    bench::stamp(message, index);
    sender.send(partner, message);
  }
  static void add(bench::Sum& sum, Received received) { bench::add(sum, received); }
  static std::span<const std::byte> bytes_of(Received received) { return std::as_bytes(std::span(received)); }
};

/// Messages that are spans of bytes.
struct VariableTraffic {
  using Sender = Aggregator<std::span<const std::byte>>;
  using Received = std::span<const std::byte>;
  std::vector<std::byte> message;

  VariableTraffic(std::size_t bytes, std::size_t me) : message(bytes) { bench::fill_pattern(message, me); }
  void send(Sender& sender, std::size_t partner, std::uint64_t index) {
    bench::stamp(message.data(), message.size(), index);
    sender.send(partner, std::span<const std::byte>(message));
  }
  static void add(bench::Sum& sum, Received received) { bench::add(sum, received.data(), received.size()); }
  static std::span<const std::byte> bytes_of(Received received) { return received; }
};

template <class Traffic>
int measure(Pe& pe, const Arguments& arguments) {
  using Received = typename Traffic::Received;
  const std::size_t me = pe.id(), partner = me ^ 1;
  Traffic traffic(arguments.bytes, me);
  const auto pass = [&](typename Traffic::Sender& sender, std::uint64_t messages) {
    pe.quiesce();
    const std::int64_t begin = pe.engine().now();
    for (std::uint64_t i = 0; i < messages; ++i) traffic.send(sender, partner, i);
    pe.quiesce();
    return double(pe.engine().now() - begin) * 1e-9;
  };

  // Every byte of some messages; then all of them, timed, by their sums.
  const std::uint64_t some = std::min<std::uint64_t>(arguments.messages, 1 << 16);
  std::uint64_t errors = 0;
  {
    bench::Checker checker(arguments.bytes, some, partner);
    typename Traffic::Sender checked(pe, arguments.aggregator);
    checked.on([&](Received received) {
      const std::span<const std::byte> bytes = Traffic::bytes_of(received);
      checker(bytes.data(), bytes.size());
    });
    pass(checked, some);
    errors += checker.errors();
  }
  bench::Sum sum;
  typename Traffic::Sender timed(pe, arguments.aggregator);
  timed.on([&sum](Received received) { Traffic::add(sum, received); });
  pass(timed, some);  // warms its frames
  sum = {};
  const AggregatorStatistics before = timed.statistics();
  const double seconds = bench::max_over_pes(pe, pass(timed, arguments.messages));
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, timed.statistics()));
  errors += sum != bench::expected_sum(arguments.messages, arguments.bytes);
  errors = bench::sum_over_pes(pe, errors);

  if (me == 0) {
    const AggregatorOptions& effective = timed.options();
    bench::Json record =
        bench::make_record(bench::make_case(pe, "stream", effective, arguments.bytes, arguments.messages * pe.size()),
                           seconds, errors == 0);
    bench::add_frames(record, frames);
    record["options"] = bench::options_record(effective);
    record["options"]["variable"] = std::is_same_v<Traffic, VariableTraffic>;
    bench::report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

int measure(Pe& pe, const Arguments& arguments) {
  int status = 0;
  const bool fixed = !arguments.variable && bench::with_fixed_size<1000>(arguments.bytes, [&]<class Message>(std::type_identity<Message>) {
    status = measure<FixedTraffic<Message>>(pe, arguments);
  });
  return fixed ? status : measure<VariableTraffic>(pe, arguments);
}

}  // namespace
}  // namespace headway::stream

int main(int argc, char** argv) {
  using namespace headway::stream;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    if (pe.size() % 2 != 0) {
      if (pe.id() == 0) {
        std::cerr << fmt::format("headway-stream: {} PEs cannot be paired; allowed is an even number\n", pe.size());
      }
      return headway::exit_status::unusable_arguments;
    }
    return measure(pe, arguments);
  });
}
