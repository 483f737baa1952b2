/// headway-peer-ucx: zerocopy's work between two processes on UCX's tagged messages, as UCX is when told nothing.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "zerocopy.hpp"

namespace headway::peers {
namespace {

struct Arguments {
  ZerocopyWork work{64 * 1024, 0, false, false};
  std::string json;  // a file, "-", or empty for a line on standard output
};

/// A socket to the other process, for what is not measured. Throws SystemError, also where the other is gone.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}
  template <class Value>
  void put(const Value& value) const {
    put(&value, sizeof value);
  }
  template <class Value>
  Value get() const {
    Value value;
    get(&value, sizeof value);
    return value;
  }
  /// Ends this process where the other one has: what waits for that would wait for ever.
  void require_other() const {
    std::byte next;
    if (::recv(socket_, &next, sizeof next, MSG_PEEK | MSG_DONTWAIT) != 0) return;
    std::cerr << "headway-peer-ucx: the other process has ended\n";
    ::_exit(1);
  }
  void put(const void* from, std::size_t bytes) const {
    if (::send(socket_, from, bytes, MSG_NOSIGNAL) != ssize_t(bytes)) throw_errno("send");
  }
  void get(void* to, std::size_t bytes) const {
    const ssize_t got = ::recv(socket_, to, bytes, MSG_WAITALL);
    if (got >= 0 && std::size_t(got) < bytes) throw std::runtime_error("the other process has ended");
    if (got < 0) throw_errno("recv");
  }

 private:
  int socket_;
};

void check(const char* call, ucs_status_t status) {
  if (status != UCS_OK) throw std::runtime_error(fmt::format("{}: {}", call, ucs_status_string(status)));
}

/// A context with one worker and an endpoint to the other process's.
class UcxWire {
 public:
  UcxWire(const Line& line, std::size_t bytes) : line_(line), bytes_(bytes) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_config_t* config = nullptr;
    check("ucp_config_read", ucp_config_read(nullptr, nullptr, &config));
    const ucs_status_t started = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    check("ucp_init", started);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    check("ucp_worker_create", ucp_worker_create(context_, &worker, &worker_));
    connect();
  }
  /// Collective: the other process is done as well.
  ~UcxWire() {
    ucp_request_param_t param{};
    wait(ucp_ep_close_nbx(endpoint_, &param));
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcxWire(const UcxWire&) = delete;
  UcxWire& operator=(const UcxWire&) = delete;

  void send(const std::byte* from) {
    ucp_request_param_t param{};
    wait(ucp_tag_send_nbx(endpoint_, from, bytes_, 0, &param));
  }
  void receive(std::byte* to) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    wait(ucp_tag_recv_nbx(worker_, to, bytes_, 0, ~ucp_tag_t(0), &param));
  }
  /// By messages, which connects both as well.
  void meet() {
    std::byte mine{1}, theirs{0};
    ucp_request_param_t param{};
    const ucs_status_ptr_t sent = ucp_tag_send_nbx(endpoint_, &mine, sizeof mine, 1, &param);
    param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    wait(ucp_tag_recv_nbx(worker_, &theirs, sizeof theirs, 1, ~ucp_tag_t(0), &param));
    wait(sent);
  }

 private:
  void connect() {
    ucp_address_t* mine = nullptr;
    std::size_t bytes = 0;
    check("ucp_worker_get_address", ucp_worker_get_address(worker_, &mine, &bytes));
    line_.put(bytes);
    line_.put(mine, bytes);
    ucp_worker_release_address(worker_, mine);
    std::vector<std::byte> theirs(line_.get<std::size_t>());
    line_.get(theirs.data(), theirs.size());
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(theirs.data());
    check("ucp_ep_create", ucp_ep_create(worker_, &params, &endpoint_));
  }
  void wait(ucs_status_ptr_t request) {
    if (request == nullptr) return;  // done at once
    check("a request", UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK);
    ucs_status_t status;
    constexpr std::uint32_t looks = 1 << 20;
    for (std::uint32_t look = 1; (status = ucp_request_check_status(request)) == UCS_INPROGRESS; ++look) {
      ucp_worker_progress(worker_);
      if (look % looks == 0) line_.require_other();
    }
    ucp_request_free(request);
    check("a request", status);
  }

  const Line& line_;
  std::size_t bytes_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("zerocopy's work between two processes on UCX's tagged messages.", "headway-peer-ucx");
  const auto add = [&](const char* name, const char* value, const char* help,
                       std::function<void(const std::string&)> store) {
    bench::add_value(app, name, std::move(store), value, help);
  };
  add("--bytes", "N", "bytes of a message [65536]", [&](const std::string& t) {
    arguments.work.bytes = bench::parse_count("--bytes", t, 8, bench::peer_bytes_max);
  });
  add("--messages", "M", "round trips [by size]",
      [&](const std::string& t) { arguments.work.messages = bench::parse_count("--messages", t, 1, 1ull << 40); });
  add("--buffers", "NAME", bench::buffer_kinds_help, [&](const std::string& t) {
    arguments.work.fresh = bench::parse_choice("--buffers", t, bench::buffer_kinds) == "fresh";
  });
  app.add_flag("--touch", arguments.work.touch, "the receiver adds up the words of each message");
  add("--json", "FILE", "write the record to FILE, or - for standard output",
      [&](const std::string& t) { arguments.json = t; });
  if (const auto status = bench::parse_command_line(app, argc, argv)) return status;
  ZerocopyWork& work = arguments.work;
  if (work.messages == 0) work.messages = bench::default_messages("zerocopy", work.bytes);
  return std::nullopt;
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

/// The process with the record plays with one that it forks, which does not outlive it.
int run(const Arguments& arguments) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) throw_errno("socketpair");
  const pid_t first = ::getpid(), second = ::fork();
  if (second < 0) throw_errno("fork");
  const Line line(sockets[second == 0 ? 1 : 0]);
  ::close(sockets[second == 0 ? 0 : 1]);
  if (second == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != first) ::_exit(1);
    line.put(play(line, arguments.work, 1));
    ::_exit(0);
  }
  const ZerocopyResult mine = play(line, arguments.work, 0);
  const auto theirs = line.get<ZerocopyResult>();
  int status = 0;
  ::waitpid(second, &status, 0);
  const std::uint64_t errors = mine.errors + theirs.errors;
  bench::Json record =
      bench::make_record({"zerocopy", "peer:ucx", "ucx", 2, 2, 1, arguments.work.bytes, 2 * arguments.work.messages},
                         std::max(mine.seconds, theirs.seconds), errors == 0 && status == 0);
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
