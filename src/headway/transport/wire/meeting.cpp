// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/transport/wire/meeting.hpp>
#include <headway/transport/wire/sockets.hpp>

namespace headway::wire {
namespace {

constexpr auto patience = std::chrono::seconds(2);  // to reach the place, which listens before it starts processes
constexpr std::uint64_t message_bytes_max = 1 << 20;

enum class Kind : std::uint64_t { hello, exchange, abort, leave };
struct Header {
  Kind kind;
  std::uint64_t bytes;  // of the content, which follows
};
struct Hello {
  std::uint64_t token;
  std::uint64_t process;
};

bool send_message(int socket, Kind kind, const void* data, std::size_t bytes) {
  const Header header{kind, bytes};
  return write_all(socket, &header, sizeof header) && write_all(socket, data, bytes);
}

template <class Number>
bool parse_number(const std::string& text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

// --- Invitation

std::string Invitation::text() const { return fmt::format("{}:{}:{:x}:{}:{}", host, port, token, process, processes); }

Invitation Invitation::parse(const std::string& text) {
  std::vector<std::string> parts;
  std::string rest = text;
  for (int i = 0; i < 4; ++i) {  // from the end: an address may have colons
    const auto colon = rest.rfind(':');
    if (colon == rest.npos) break;
    parts.insert(parts.begin(), rest.substr(colon + 1));
    rest.resize(colon);
  }
  Invitation invitation{.host = rest};
  if (parts.size() != 4 || rest.empty() || !parse_number(parts[0], invitation.port) ||
      !parse_number(parts[1], invitation.token, 16) || !parse_number(parts[2], invitation.process) ||
      !parse_number(parts[3], invitation.processes) || invitation.process >= invitation.processes) {
    throw SettingError(fmt::format(
        "HEADWAY_MEETING={}: allowed is HOST:PORT:TOKEN:PROCESS:PROCESSES, as `headway run` sets it", text));
  }
  return invitation;
}

// --- Meeting

Meeting::Meeting(const Invitation& invitation) : invitation_(invitation) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while ((socket_ = connect_to(invitation.host, invitation.port)) < 0) {
    if (std::chrono::steady_clock::now() > until) {
      throw SystemError(fmt::format(
          "process {} cannot reach {} port {}, where the processes of this run meet, within {} s; `headway run "
          "--address` names another address",
          invitation.process, invitation.host, invitation.port, patience.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  notice_loss(socket_);
  const Hello hello{invitation.token, invitation.process};
  if (!send_message(socket_, Kind::hello, &hello, sizeof hello)) base::throw_errno("send of the meeting");
  watcher_ = std::thread([this] { watch(); });
}

Meeting::~Meeting() {
  leaving_ = true;
  if (socket_ >= 0) send_message(socket_, Kind::leave, nullptr, 0);
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);  // wakes the watcher
  if (watcher_.joinable()) watcher_.join();
  if (socket_ >= 0) close(socket_);
}

/// Between exchanges, only the end of the connection makes the socket readable.
void Meeting::watch() {
  constexpr int poll_ms = 100;
  while (!leaving_) {
    pollfd one{socket_, POLLRDHUP, 0};
    if (poll(&one, 1, poll_ms) <= 0 || exchanging_ || leaving_) {
      if (one.revents != 0 && !leaving_) std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
      continue;
    }
    if ((one.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0 && error != ECONNRESET &&
        error != EPIPE) {  // a closed connection is reported by the process that closed it
      fmt::print(stderr, "headway: process {}: {}, where this run was started, can no longer be reached: {}\n",
                 invitation_.process, invitation_.host, std::strerror(error));
    }
    _exit(exit_status::failed);
  }
}

bool Meeting::exchange(const void* mine, std::size_t bytes, void* all) {
  exchanging_ = true;
  Header answer{};
  const bool done = send_message(socket_, Kind::exchange, mine, bytes) && read_all(socket_, &answer, sizeof answer) &&
                    answer.bytes == bytes * invitation_.processes && read_all(socket_, all, answer.bytes);
  exchanging_ = false;
  return done;
}

void Meeting::abort(int status) {
  const std::int64_t wide = status;
  send_message(socket_, Kind::abort, &wide, sizeof wide);
}

// --- MeetingPlace

MeetingPlace::MeetingPlace(std::uint32_t processes, bool open)
    : processes_(processes),
      token_(make_token()),
      listener_(listen_anywhere(open, int(processes))),
      port_(port_of(listener_)),
      states_(processes, State::awaited),
      contributions_(processes),
      has_contributed_(processes) {}

MeetingPlace::~MeetingPlace() { forget(); }

void MeetingPlace::forget() {
  for (const Guest& guest : guests_) close(guest.socket);
  guests_.clear();
  if (listener_ >= 0) close(listener_);
  listener_ = -1;
}

Invitation MeetingPlace::invitation(const std::string& host, std::uint32_t process) const {
  return {host, port_, token_, process, processes_};
}

bool MeetingPlace::serve(int ms_max) {
  std::vector<pollfd> all{{listener_, POLLIN, 0}};
  for (const Guest& guest : guests_) all.push_back({guest.socket, POLLIN, 0});
  if (poll(all.data(), all.size(), ms_max) <= 0) return false;
  for (std::size_t i = 1; i < all.size(); ++i) {
    Guest& guest = guests_[i - 1];
    if (all[i].revents == 0 || receive(guest)) continue;
    close(guest.socket);
    guest.socket = -1;
  }
  std::erase_if(guests_, [](const Guest& guest) { return guest.socket < 0; });
  if (all[0].revents != 0) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) notice_loss(socket);
    if (socket >= 0) guests_.push_back({.socket = socket, .process = -1, .left = false, .received = {}});
  }
  return true;
}

/// False if the guest has ended its connection, or is no process of this run.
bool MeetingPlace::receive(Guest& guest) {
  std::byte buffer[4096];
  const ssize_t got = recv(guest.socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) {
    if (guest.process < 0 || guest.left) return false;
    State& state = states_[std::size_t(guest.process)];
    if (state == State::here && got < 0) lost_.push_back({std::size_t(guest.process), std::strerror(errno)});
    if (state == State::here) state = got < 0 ? State::lost : State::gone;
    return false;
  }
  guest.received.insert(guest.received.end(), buffer, buffer + got);
  Header header;
  while (guest.received.size() >= sizeof header) {
    std::memcpy(&header, guest.received.data(), sizeof header);
    if (header.bytes > message_bytes_max) return false;
    if (guest.received.size() < sizeof header + header.bytes) return true;
    const std::byte* const content = guest.received.data() + sizeof header;
    if (guest.process < 0) {
      Hello hello;
      if (header.kind != Kind::hello || header.bytes != sizeof hello) return false;
      std::memcpy(&hello, content, sizeof hello);
      if (hello.token != token_ || hello.process >= processes_) return false;
      guest.process = std::int64_t(hello.process);
      arrived_ += states_[hello.process] == State::awaited;  // a program may call run() several times
      states_[hello.process] = State::here;
    } else if (header.kind == Kind::exchange) {
      contributions_[std::size_t(guest.process)].assign(content, content + header.bytes);
      has_contributed_[std::size_t(guest.process)] = true;
    } else if (header.kind == Kind::abort && header.bytes == sizeof(std::int64_t)) {
      std::int64_t status;
      std::memcpy(&status, content, sizeof status);
      if (aborted_ < 0) aborted_ = int(status);
      states_[std::size_t(guest.process)] = State::left;
      guest.left = true;
    } else if (header.kind == Kind::leave && header.bytes == 0) {
      states_[std::size_t(guest.process)] = State::left;
      guest.left = true;
    } else {
      return false;
    }
    guest.received.erase(guest.received.begin(), guest.received.begin() + std::ptrdiff_t(sizeof header + header.bytes));
    send_exchange();
  }
  return true;
}

void MeetingPlace::send_exchange() {
  if (!std::ranges::all_of(has_contributed_, [](bool said) { return said; })) return;
  std::vector<std::byte> all;
  for (const auto& said : contributions_) all.insert(all.end(), said.begin(), said.end());
  for (const Guest& guest : guests_) {
    if (guest.process >= 0) send_message(guest.socket, Kind::exchange, all.data(), all.size());
  }
  has_contributed_.assign(processes_, false);
}

}  // namespace headway::wire
