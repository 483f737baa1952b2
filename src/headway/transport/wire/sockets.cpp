// SPDX-License-Identifier: BSD-3-Clause
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <headway/base/error.hpp>
#include <headway/transport/wire/sockets.hpp>
#include <random>

namespace headway::wire {

bool write_all(int socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= std::size_t(written);
  }
  return true;
}

bool read_all(int socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= std::size_t(got);
  }
  return true;
}

void notice_loss(int socket) {
  // The system probes an idle connection each second and checks TCP_USER_TIMEOUT with each probe: the third ends it.
  const int on = 1, seconds = 1, probes = 3;
  const unsigned unanswered_ms = 2500;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

int connect_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  int connected = -1;
  for (const addrinfo* one = found; one != nullptr && connected < 0; one = one->ai_next) {
    const int candidate = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (candidate < 0) continue;
    // Without an answer the system would try for minutes.
    const timeval limit{4, 0}, none{0, 0};
    setsockopt(candidate, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(candidate, one->ai_addr, one->ai_addrlen) != 0) {
      close(candidate);
      continue;
    }
    setsockopt(candidate, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    connected = candidate;
  }
  freeaddrinfo(found);
  return connected;
}

int listen_anywhere(bool open, int backlog) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) base::throw_errno("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(open ? INADDR_ANY : INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, backlog) != 0) {
    close(listener);
    base::throw_errno("bind");
  }
  return listener;
}

std::uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) base::throw_errno("getsockname");
  return ntohs(address.sin_port);
}

std::uint64_t make_token() {
  std::random_device device;
  return std::uint64_t(device()) << 32 | device();
}

}  // namespace headway::wire
