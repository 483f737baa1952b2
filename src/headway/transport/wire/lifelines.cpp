// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/wire/lifelines.hpp>
#include <headway/transport/wire/sockets.hpp>

namespace headway::wire {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t answer_patience_ns = 2 * second;  // of one address of the parent
constexpr std::size_t rounds_max = 3;                    // over all of them
// A process that ends without a goodbye, or its launcher, reports the reason, mostly sooner than this.
constexpr std::int64_t end_patience_ns = 3 * second / 2;
constexpr int poll_ms = 250;
constexpr std::size_t no_process = std::size_t(-1);

/// The host's addresses in its networks; the loopback address if it has no other.
void find_addresses(LifelineAddress& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const bool loopback : {false, true}) {
    for (const ifaddrs* one = all; one != nullptr && address.numbers < LifelineAddress::numbers_max;
         one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
      if (((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
      const auto* number = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      char* const text = address.number[address.numbers];
      if (inet_ntop(AF_INET, &number->sin_addr, text, sizeof address.number[0]) != nullptr) ++address.numbers;
    }
    if (address.numbers > 0) break;
  }
  freeifaddrs(all);
}

}  // namespace

/// Both ends begin with a greeting, the child first. The token detects a process of another run or host behind the same
/// address.
struct Lifelines::Packet {
  enum Kind : std::uint32_t { greeting, goodbye, end };
  std::uint64_t token;
  std::uint32_t kind;
  std::uint32_t process;  // the sender
  std::int64_t status;    // end
};

struct Lifelines::Line {
  enum class State { connecting, greeting, held, ended };
  int socket = -1;
  State state = State::connecting;
  bool to_parent = false;
  std::size_t process = no_process;  // at the other end; `no_process`: not known, or reported
  std::int64_t since = 0;            // begin of the state
  char received[sizeof(Packet)] = {};
  std::size_t received_bytes = 0;
};

Lifelines::Lifelines(std::size_t process, bool expects_children) : process_(process) {
  if (!expects_children) return;
  listener_ = listen_anywhere(true, SOMAXCONN);
  address_.token = make_token();
  address_.port = port_of(listener_);
  find_addresses(address_);
}

Lifelines::~Lifelines() {
  leaving_ = true;
  const std::uint64_t one = 1;
  if (wake_ >= 0 && write(wake_, &one, sizeof one) < 0) {
  }  // the watcher wakes after poll_ms
  if (watcher_.joinable()) watcher_.join();
  for (Line& line : lines_) {
    // The parent may have read the greeting, with its answer in flight.
    if (line.state == Line::State::held || (line.state == Line::State::greeting && line.to_parent))
      send_packet(line, Packet::goodbye, 0);
    if (line.socket >= 0) close(line.socket);
  }
  for (const int descriptor : {listener_, wake_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void Lifelines::hold(std::size_t parent, const LifelineAddress& parent_address,
                     const std::vector<std::size_t>& children, std::function<void(const Loss&)> lost) {
  parent_ = parent;
  parent_address_ = parent_address;
  children_ = children;
  lost_ = std::move(lost);
  if (parent_address_.port == 0 && children_.empty()) return;
  wake_ = eventfd(0, EFD_CLOEXEC);
  try_parent(base::monotonic_ns());
  watcher_ = std::thread([this] { watch(); });
}

void Lifelines::tell_end(int status) {
  const std::scoped_lock lock(mutex_);
  for (Line& line : lines_) {
    if (line.state == Line::State::held) send_packet(line, Packet::end, status);
  }
}

void Lifelines::send_packet(Line& line, std::uint32_t kind, int status) const {
  const std::uint64_t token = line.to_parent ? parent_address_.token : address_.token;
  const Packet packet{token, kind, std::uint32_t(process_), status};
  // A full connection means that the other end does not read; its loss is noticed otherwise.
  if (send(line.socket, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

void Lifelines::watch() {
  std::vector<pollfd> polled;
  std::vector<Line*> lines;
  while (!leaving_) {
    polled.assign({{wake_, POLLIN, 0}, {listener_, POLLIN, 0}});
    lines.clear();
    for (Line& line : lines_) {  // only this thread adds and removes lines
      if (line.socket < 0) continue;
      polled.push_back({line.socket, short(line.state == Line::State::connecting ? POLLOUT : POLLIN), 0});
      lines.push_back(&line);
    }
    poll(polled.data(), polled.size(), poll_ms);
    if (leaving_) return;
    std::vector<Loss> losses;
    {
      const std::scoped_lock lock(mutex_);
      const std::int64_t now = base::monotonic_ns();
      for (std::size_t i = 0; i < lines.size(); ++i) check_line(*lines[i], polled[2 + i].revents, now);
      if ((polled[1].revents & POLLIN) != 0) accept_one(now);
      for (Line& line : lines_) {
        if (line.state != Line::State::ended || now - line.since < end_patience_ns || line.process == no_process)
          continue;
        losses_.push_back({Event::ended, line.process, "", 0});
        line.process = no_process;
      }
      lines_.remove_if([](const Line& line) { return line.state == Line::State::ended && line.process == no_process; });
      losses.swap(losses_);
    }
    for (const Loss& loss : losses) lost_(loss);
  }
}

void Lifelines::check_line(Line& line, short events, std::int64_t now) {
  if (line.state == Line::State::connecting && events != 0) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(line.socket, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return end_line(line, error, now);
    return greet(line, now);
  }
  if (events != 0) receive(line, now);
  const bool waits = line.state == Line::State::connecting || line.state == Line::State::greeting;
  if (waits && now - line.since > answer_patience_ns) end_line(line, ETIMEDOUT, now);
}

void Lifelines::accept_one(std::int64_t now) {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  notice_loss(socket);
  Line& line = lines_.emplace_back();
  line.socket = socket;
  line.state = Line::State::greeting;
  line.since = now;
}

/// Connects to the next address of the parent. Makes no line if none is left.
void Lifelines::try_parent(std::int64_t now) {
  for (; parent_address_.port != 0 && tries_ < rounds_max * parent_address_.numbers;) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(parent_address_.port);
    const bool known =
        inet_pton(AF_INET, parent_address_.number[tries_++ % parent_address_.numbers], &address.sin_addr) == 1;
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return;
    notice_loss(socket);
    if (!known ||
        (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno != EINPROGRESS)) {
      close(socket);
      continue;
    }
    Line& line = lines_.emplace_back();
    line.socket = socket;
    line.to_parent = true;
    line.since = now;
    return;
  }
}

void Lifelines::greet(Line& line, std::int64_t now) {
  send_packet(line, Packet::greeting, 0);
  line.state = Line::State::greeting;
  line.since = now;
}

void Lifelines::receive(Line& line, std::int64_t now) {
  for (;;) {
    const ssize_t got = recv(line.socket, line.received + line.received_bytes, sizeof(Packet) - line.received_bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end_line(line, got < 0 ? errno : 0, now);
    line.received_bytes += std::size_t(got);
    if (line.received_bytes < sizeof(Packet)) continue;
    Packet packet;
    std::memcpy(&packet, line.received, sizeof packet);
    line.received_bytes = 0;
    take(line, packet, now);
    if (line.socket < 0) return;
  }
}

void Lifelines::take(Line& line, const Packet& packet, std::int64_t now) {
  const bool is_ours = packet.token == (line.to_parent ? parent_address_.token : address_.token);
  if (line.state == Line::State::greeting) {
    const bool expected =
        line.to_parent ? packet.process == parent_ : std::ranges::find(children_, packet.process) != children_.end();
    if (!is_ours || !expected || packet.kind != Packet::greeting) return end_line(line, EPROTO, now);
    line.process = packet.process;
    if (!line.to_parent) send_packet(line, Packet::greeting, 0);
    line.state = Line::State::held;
    return;
  }
  if (!is_ours) return;
  if (packet.kind == Packet::end) losses_.push_back({Event::told, line.process, "", int(packet.status)});
  // Goodbye and end are the last packets of a line.
  close(line.socket);
  line.socket = -1;
  line.state = Line::State::ended;
  line.process = no_process;
}

/// Ends the line. `error` is 0 if the other end has closed it.
void Lifelines::end_line(Line& line, int error, std::int64_t now) {
  const bool was_held = line.state == Line::State::held;
  close(line.socket);
  line.socket = -1;
  line.state = Line::State::ended;
  line.since = now;
  if (!was_held) {
    line.process = no_process;
    if (line.to_parent) try_parent(now);
    return;
  }
  if (error == 0 || error == ECONNRESET || error == EPIPE) return;  // reported after end_patience_ns
  losses_.push_back({Event::unreachable, line.process, std::strerror(error), 0});
  line.process = no_process;
}

}  // namespace headway::wire
