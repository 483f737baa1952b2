// SPDX-License-Identifier: BSD-3-Clause
/// headway-peer-ucx: zerocopy's work between two processes on UCX's tagged messages, as UCX is when told nothing.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <string>

#include "ucx_endpoint.hpp"
#include "zerocopy.hpp"

namespace headway::peers {
namespace {

struct Arguments {
  ZerocopyWork work{std::size_t(64) << 10, 0, false, false};
  std::string json;  // a file, "-", or empty for a line on standard output
};

/// Tagged messages of one size.
class UcxWire {
 public:
  UcxWire(const Line& line, std::size_t bytes) : ucx_(line, UCP_FEATURE_TAG), bytes_(bytes) {}

  void send(const std::byte* from) {
    const ucp_request_param_t param{};
    ucx_.wait(ucp_tag_send_nbx(ucx_.endpoint(), from, bytes_, 0, &param));
  }
  void receive(std::byte* to) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    ucx_.wait(ucp_tag_recv_nbx(ucx_.worker(), to, bytes_, 0, ~ucp_tag_t(0), &param));
  }
  /// By messages, which connects both as well.
  void meet() {
    std::byte mine{1}, theirs{0};
    ucp_request_param_t param{};
    const ucs_status_ptr_t sent = ucp_tag_send_nbx(ucx_.endpoint(), &mine, sizeof mine, 1, &param);
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    ucx_.wait(ucp_tag_recv_nbx(ucx_.worker(), &theirs, sizeof theirs, 1, ~ucp_tag_t(0), &param));
    ucx_.wait(sent);
  }

 private:
  UcxEndpoint ucx_;
  std::size_t bytes_;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("zerocopy's work between two processes on UCX's tagged messages.", "headway-peer-ucx");
  app.add_count("--bytes", "N", "bytes of a message [65536]", arguments.work.bytes, 8, bench::peer_bytes_max);
  app.add_count("--messages", "M", "round trips [by size]", arguments.work.messages, 1, 1ull << 40);
  app.add_value("--buffers", "NAME", bench::buffer_kinds_help, [&](const std::string& t) {
    arguments.work.fresh = bench::parse_choice("--buffers", t, bench::buffer_kinds) == "fresh";
  });
  app.add_flag("--touch", "the receiver adds up the words of each message", arguments.work.touch);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&work = arguments.work] {
    if (work.messages == 0) work.messages = bench::default_messages("zerocopy", work.bytes);
  });
}

ZerocopyResult play(const Line& line, const ZerocopyWork& work, std::size_t me) {
  ZerocopyResult result;
  {
    UcxWire wire(line, work.bytes);
    result = play_zerocopy(wire, work, me);
    wire.meet();
    line.put(me);  // neither closes before both are done
    line.get<std::size_t>();
  }
  return result;
}

/// The process with the record plays with one that it forks.
int run(const Arguments& arguments) {
  ZerocopyResult mine, theirs;
  const bool ended_well = run_two(
      "headway-peer-ucx",
      [&](const Line& line) {
        mine = play(line, arguments.work, 0);
        theirs = line.get<ZerocopyResult>();
      },
      [&](const Line& line) { line.put(play(line, arguments.work, 1)); });
  const std::uint64_t errors = mine.errors + theirs.errors;
  bench::Json record =
      bench::make_record({"zerocopy", "peer:ucx", "ucx", 2, 2, 1, arguments.work.bytes, 2 * arguments.work.messages},
                         std::max(mine.seconds, theirs.seconds), errors == 0 && ended_well);
  record["options"] = bench::Json::object();
  add_zerocopy_fields(record, arguments.work, mine.one_way_us);
  const bool verified = record["verified"];
  if (!arguments.json.empty()) {
    bench::write_json(arguments.json, record);
  } else {
    std::cout << fmt::format("zerocopy ucx: 2 processes, {}, {}\n", bench::speed_of(record),
                             verified ? "verified" : "WRONG")
              << std::flush;
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::peers

int main(int argc, char** argv) {
  headway::peers::Arguments arguments;
  if (const auto status = headway::peers::parse(argc, argv, arguments)) return *status;
  try {
    return headway::peers::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "headway-peer-ucx: " << error.what() << '\n';
    return 1;
  }
}
