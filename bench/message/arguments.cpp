// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <iostream>
#include <message/type.hpp>
#include <options.hpp>

namespace headway::bench {

std::optional<int> parse(int argc, char** argv, const About& about, Arguments& arguments) {
  arguments.bench = about.bench;
  arguments.bytes = about.bytes;
  arguments.pairs = about.pairs;
  CommandLine app(about.help, fmt::format("headway-{}", about.bench));
  app.add_count("--bytes", "N", fmt::format("bytes of a message [{}]", about.bytes), arguments.bytes, 0,
                message_bytes_max);
  app.add_count("--messages", "M",
                fmt::format("{} [by size, at most {}]", about.messages_help, default_messages(about.bench, 1)),
                arguments.messages, 1, 1ull << 40);
  if (about.acknowledged) {
    app.add_count("--window", "N",
                  fmt::format("messages of each PE that are acknowledged together [{}]", arguments.window),
                  arguments.window, 1, 1ull << 40);
  }
  app.add_choice("--type", "TYPE", message_types_help, arguments.type, message_types);
  app.add_flag("--variable", "the same as --type bytes", [&] { arguments.type = "bytes"; });
  if (about.ranges) {
    app.add_flag("--one-by-one", "a send() for each message instead of a send_range() for all", arguments.one_by_one);
  }
  add_aggregator_options(app, arguments.aggregator);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    if (arguments.messages == 0) arguments.messages = default_messages(about.bench, arguments.bytes);
    check_type(arguments.type, arguments.bytes, arguments.aggregator.threshold, arguments.aggregator.cutoff);
    arguments.type = type_or_default(arguments.type, arguments.bytes);
  });
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

int conclude(Pe& pe, const Arguments& arguments, const Pass& pass) {
  const FrameCounts frames = sum_over_pes(pe, growth(pass.before, pass.after));
  const std::uint64_t errors = sum_over_pes(pe, pass.errors), sent = sum_over_pes(pe, pass.messages);
  if (pe.id() == 0) {
    Json record = make_record(make_case(pe, arguments.bench.c_str(), pass.options, arguments.bytes, sent), pass.seconds,
                              errors == 0);
    record.update(pass.further);
    add_frames(record, frames);
    record["options"] = options_record(pass.options);
    record["options"]["type"] = arguments.type;
    record["options"]["variable"] = arguments.type != "fixed";
    if (arguments.window != Arguments{}.window) record["options"]["window"] = arguments.window;
    if (arguments.one_by_one) record["options"]["one_by_one"] = true;
    report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace headway::bench
