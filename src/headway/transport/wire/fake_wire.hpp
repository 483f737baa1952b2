// SPDX-License-Identifier: BSD-3-Clause
/// For tests: a wire between Ports of this process, with delays from a seed.
#pragma once

#include <headway/transport/wire/wire.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <headway/base/random.hpp>
#include <memory>
#include <mutex>
#include <vector>

struct headway_wire;

namespace headway::wire {

/// A sent message may stay in the sender's memory for a while. Messages of different senders overtake each other, and
/// so do the two channels. The wire keeps its promises, and checks those of the Ports: broken().
class FakeNetwork {
 public:
  FakeNetwork(std::size_t processes, std::uint64_t seed);
  ~FakeNetwork();

  headway_wire* end(std::size_t process) { return ends_[process].get(); }
  static const headway_wire_functions& functions();

  /// Sends a message that no Port has sent.
  void inject(std::size_t from, std::size_t to, std::vector<std::byte> message);
  /// While false, no message arrives at that process.
  void let_arrive(std::size_t process, bool yes) { blocked_[process] = !yes; }
  const char* broken() const { return broken_; }
  std::uint64_t messages() const { return messages_; }

  struct Message {
    std::vector<std::byte> bytes;
    const std::byte* in_place;  // the sender's memory until the message departs; then nullptr
    std::size_t length;
    std::uint64_t cookie;
  };
  struct Receive {
    std::byte* memory;
    std::size_t bytes;
    std::uint64_t cookie;
    std::uint32_t source;
  };
  std::deque<Message>& queue(std::size_t from, std::size_t to, std::size_t channel) {
    return queues_[(from * ends_.size() + to) * 2 + channel];
  }
  void depart(Message& message) {
    message.bytes.assign(message.in_place, message.in_place + message.length);
    message.in_place = nullptr;
  }
  void set_broken(const char* what) { broken_ = what; }

  std::mutex mutex;
  Random random;

 private:
  friend struct ::headway_wire;
  std::vector<std::unique_ptr<headway_wire>> ends_;
  std::vector<std::deque<Message>> queues_;  // by sender, receiver, channel
  std::vector<char> blocked_;
  const char* broken_ = nullptr;
  std::uint64_t messages_ = 0;
};

}  // namespace headway::wire

struct headway_wire {
  headway::wire::FakeNetwork* network;
  std::uint32_t process;
  std::deque<headway::wire::FakeNetwork::Receive> frames, large;
  std::vector<std::uint64_t> sent_to;
  bool settling = false;

  int send(std::uint32_t target, std::uint32_t channel, const void* message, std::size_t bytes, std::uint64_t cookie) {
    auto& net = *network;
    ++sent_to[target];
    ++net.messages_;
    auto& queue = net.queue(process, target, channel);
    queue.push_back({{}, static_cast<const std::byte*>(message), bytes, cookie});
    if (net.random.one_in(2)) return 0;
    net.depart(queue.back());
    return 1;
  }

  int progress(headway_wire_event* events, int events_max) {
    auto& net = *network;
    int count = 0;
    for (std::size_t i = 0; i < net.queues_.size() / net.ends_.size() && count < events_max; ++i) {
      for (auto& message : net.queues_[process * net.ends_.size() * 2 + i]) {
        if (message.in_place == nullptr || count == events_max || !net.random.one_in(3)) continue;
        net.depart(message);
        events[count++] = {headway_wire_sent, 0, 0, 0, message.cookie, 0};
      }
    }
    if (net.blocked_[process]) return count;
    for (std::size_t looks = 2 * net.ends_.size(); looks > 0 && count < events_max; --looks) {
      count += take(net.random.below(net.ends_.size()), net.random.below(2), events[count]);
    }
    return count;
  }

  int take(std::size_t from, std::size_t channel, headway_wire_event& event) {
    auto& net = *network;
    auto& queue = net.queue(from, process, channel);
    if (queue.empty() || queue.front().in_place != nullptr) return 0;
    auto& receives = channel == headway_wire_large ? large : frames;
    auto receive = receives.begin();
    while (receive != receives.end() && channel == headway_wire_large && receive->source != from) ++receive;
    if (receive == receives.end()) return 0;
    const auto& bytes = queue.front().bytes;
    if (bytes.size() > receive->bytes || (channel == headway_wire_large && bytes.size() != receive->bytes)) {
      net.set_broken("a message does not fit the memory given for it");
      return 0;
    }
    std::ranges::copy(bytes, static_cast<std::byte*>(receive->memory));
    event = {headway_wire_arrived, std::uint32_t(from), std::uint32_t(channel), 0, receive->cookie, bytes.size()};
    receives.erase(receive);
    queue.pop_front();
    return 1;
  }

  int settle(std::uint64_t* arriving) {
    settling = true;
    *arriving = 0;
    for (const auto& end : network->ends_) {
      if (!end->settling) return 0;
      *arriving += end->sent_to[process];
    }
    return 1;
  }
};

namespace headway::wire {

inline FakeNetwork::FakeNetwork(std::size_t processes, std::uint64_t seed)
    : random(seed), queues_(processes * processes * 2), blocked_(processes) {
  for (std::size_t p = 0; p < processes; ++p) {
    ends_.push_back(std::make_unique<headway_wire>());
    ends_.back()->network = this;
    ends_.back()->process = std::uint32_t(p);
    ends_.back()->sent_to.resize(processes);
  }
}
inline FakeNetwork::~FakeNetwork() = default;

inline void FakeNetwork::inject(std::size_t from, std::size_t to, std::vector<std::byte> message) {
  const std::size_t length = message.size();
  queue(from, to, headway_wire_frames).push_back({std::move(message), nullptr, length, 0});
}

inline const headway_wire_functions& FakeNetwork::functions() {
  static const headway_wire_functions all = {
      .version = HEADWAY_WIRE_VERSION,
      .bytes = sizeof(headway_wire_functions),
      .name = "fake",
      .needs_meeting = 0,
      .start = nullptr,
      .exchange = nullptr,
      .send =
          [](headway_wire* w, std::uint32_t target, std::uint32_t channel, const void* m, std::size_t n,
             std::uint64_t c) {
            const std::lock_guard lock(w->network->mutex);
            return w->send(target, channel, m, n, c);
          },
      .receive =
          [](headway_wire* w, std::uint32_t channel, std::uint32_t source, void* m, std::size_t n, std::uint64_t c) {
            const std::lock_guard lock(w->network->mutex);
            (channel == headway_wire_large ? w->large : w->frames)
                .push_back({static_cast<std::byte*>(m), n, c, source});
            return 0;
          },
      .progress =
          [](headway_wire* w, headway_wire_event* events, int events_max) {
            const std::lock_guard lock(w->network->mutex);
            return w->progress(events, events_max);
          },
      .settle =
          [](headway_wire* w, std::uint64_t* arriving) {
            const std::lock_guard lock(w->network->mutex);
            return w->settle(arriving);
          },
      .leave =
          [](headway_wire* w) {
            const std::lock_guard lock(w->network->mutex);
            w->frames.clear();
            return 0;
          },
      .abort = nullptr,
      .failure = [](headway_wire*) { return ""; },
      .lost = nullptr,
      .wait = nullptr,
      .expose = nullptr,
      .withdraw = nullptr,
      .reach = nullptr,
      .forget = nullptr,
      .get = nullptr,
      .eager_bytes = nullptr};
  return all;
}

}  // namespace headway::wire
