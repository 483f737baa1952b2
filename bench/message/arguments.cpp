// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <iostream>
#include <message/type.hpp>
#include <options.hpp>

namespace headway::bench {

std::optional<int> parse(int argc, char** argv, const About& about, Arguments& arguments) {
  arguments.bench = about.bench;
  arguments.bytes = about.bytes;
  arguments.pairs = about.pairs;
  CLI::App app(about.help, fmt::format("headway-{}", about.bench));
  add_value(
      app, "--bytes",
      [&](const std::string& text) { arguments.bytes = parse_count("--bytes", text, 0, message_bytes_max); }, "N",
      fmt::format("bytes of a message [{}]", about.bytes));
  add_value(
      app, "--messages",
      [&](const std::string& text) { arguments.messages = parse_count("--messages", text, 1, 1ull << 40); }, "M",
      fmt::format("{} [by size, at most {}]", about.messages_help, default_messages(about.bench, 1)));
  if (about.acknowledged) {
    add_value(
        app, "--window",
        [&](const std::string& text) { arguments.window = parse_count("--window", text, 1, 1ull << 40); }, "N",
        fmt::format("messages of each PE that are acknowledged together [{}]", arguments.window));
  }
  add_value(
      app, "--type", [&](const std::string& text) { arguments.type = parse_choice("--type", text, message_types); },
      "TYPE", message_types_help);
  app.add_flag_callback(
      "--variable", [&] { arguments.type = "bytes"; }, "the same as --type bytes");
  if (about.ranges) {
    app.add_flag("--one-by-one", arguments.one_by_one, "a send() for each message instead of a send_range() for all");
  }
  add_aggregator_options(app, arguments.aggregator);
  add_value(
      app, "--json", [&](const std::string& text) { arguments.json = text; }, "FILE",
      "write the record to FILE, or - for standard output");
  if (const auto status = parse_command_line(app, argc, argv)) return status;
  if (arguments.messages == 0) arguments.messages = default_messages(about.bench, arguments.bytes);
  try {
    check_type(arguments.type, arguments.bytes, arguments.aggregator.threshold, arguments.aggregator.cutoff);
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", app.get_name(), error.what());
    return exit_status::unusable_arguments;
  }
  arguments.type = type_or_default(arguments.type, arguments.bytes);
  return std::nullopt;
}

bool are_enough(Pe& pe, const Arguments& arguments) {
  const bool enough = arguments.pairs ? pe.size() % 2 == 0 : pe.size() > 1;
  if (!enough && pe.id() == 0) {
    std::cerr << fmt::format("headway-{}: {} {} not allowed; allowed {}\n", arguments.bench,
                             base::counted(pe.size(), "PE"), base::by_number(pe.size(), "is", "are"),
                             arguments.pairs ? "is an even number, for it pairs them" : "are 2 or more");
  }
  return enough;
}

}  // namespace headway::bench
