// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the peers on UCX: two processes, a socket between them, and an endpoint each to the other.
#pragma once

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <headway/base/error.hpp>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::peers {

/// A socket to the other process, for data that no measurement counts. Throws SystemError, also where the other is
/// gone.
class Line {
 public:
  Line(int socket, std::string program) : socket_(socket), program_(std::move(program)) {}
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
  /// Whether the other has put something that this process has not got yet. Ends this process where the other one has
  /// ended: a loop that waits for news would wait for ever.
  bool has_news() const {
    std::byte next;
    const ssize_t got = ::recv(socket_, &next, sizeof next, MSG_PEEK | MSG_DONTWAIT);
    if (got != 0) return got > 0;
    std::cerr << program_ << ": the other process has ended\n";
    ::_exit(1);
  }
  void put(const void* from, std::size_t bytes) const {
    if (::send(socket_, from, bytes, MSG_NOSIGNAL) != ssize_t(bytes)) base::throw_errno("send");
  }
  void get(void* to, std::size_t bytes) const {
    const ssize_t got = ::recv(socket_, to, bytes, MSG_WAITALL);
    if (got >= 0 && std::size_t(got) < bytes) throw std::runtime_error("the other process has ended");
    if (got < 0) base::throw_errno("recv");
  }

 private:
  int socket_;
  std::string program_;
};

inline void check(const char* call, ucs_status_t status) {
  if (status != UCS_OK) throw std::runtime_error(fmt::format("{}: {}", call, ucs_status_string(status)));
}

/// A context with one worker and an endpoint to the other process's, as UCX is when told nothing.
class UcxEndpoint {
 public:
  UcxEndpoint(const Line& line, std::uint64_t features) : line_(line) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
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
  ~UcxEndpoint() {
    const ucp_request_param_t param{};
    wait(ucp_ep_close_nbx(endpoint_, &param));
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  ucp_context_h context() const { return context_; }
  ucp_worker_h worker() const { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }

  /// Until the request is done, which is freed.
  void wait(ucs_status_ptr_t request) {
    if (request == nullptr) return;  // done at once
    check("a request", UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK);
    ucs_status_t status;
    constexpr std::uint32_t looks = 1 << 20;
    for (std::uint32_t look = 1; (status = ucp_request_check_status(request)) == UCS_INPROGRESS; ++look) {
      ucp_worker_progress(worker_);
      if (look % looks == 0) (void)line_.has_news();
    }
    ucp_request_free(request);
    check("a request", status);
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

  const Line& line_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

/// Two processes: this one is 0, and forks 1, which does not outlive it. They call `first(line)` and `second(line)`.
/// Returns whether the second ended well.
template <class First, class Second>
bool run_two(const std::string& program, First first, Second second) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) base::throw_errno("socketpair");
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) base::throw_errno("fork");
  const Line line(sockets[child == 0 ? 1 : 0], program);
  ::close(sockets[child == 0 ? 0 : 1]);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    second(line);
    ::_exit(0);
  }
  first(line);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace headway::peers
