// SPDX-License-Identifier: BSD-3-Clause
// Counts the instructions of messages to each of many PEs on a route: a square of PEs, all in this thread. Each sends
// some messages of 8 bytes to every other PE, first to those beyond its row, and to those in its row after the messages
// that it forwards to them have arrived. Run it with N rounds and with 2N under `valgrind --tool=callgrind` and
// subtract; routes.cmake does.
//
//   headway-routes 1d|2d SIDE MESSAGES ROUNDS      prints a checksum of the handled messages, their number, and frames
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <headway/headway.hpp>
#include <headway/transport/local/local.hpp>
#include <memory>
#include <string_view>
#include <vector>

namespace {

using headway::Aggregator;
using namespace headway::literals;

class Member {
 public:
  Member(headway::local::Segment& segment, std::size_t id, headway::Topology topology)
      : endpoint_(headway::local::make_endpoint(segment, id)),
        engine_(*endpoint_, {.budget_bytes = 4_MiB, .spill_bytes = 4_MiB}),
        words_(
            engine_.pe(),
            {.buffer_bytes = 4_KiB, .timeout = headway::no_timeout, .topology = topology, .flush_when_idle = false}) {
    words_.on([this](std::uint64_t word) { sum_ += word; });
  }

  void send(std::size_t to, std::size_t messages) {
    const std::size_t id = engine_.id();
    for (std::size_t i = 0; i < messages; ++i) words_.send(to, id + to + i);
  }
  void flush() { words_.flush(); }
  bool progress() { return engine_.progress(); }

  std::uint64_t sum() const { return sum_; }
  headway::AggregatorStatistics statistics() const { return words_.statistics(); }

 private:
  std::unique_ptr<headway::transport::Endpoint> endpoint_;
  headway::am::Engine engine_;
  Aggregator<std::uint64_t> words_;
  std::uint64_t sum_ = 0;
};

class Square {
 public:
  Square(std::size_t side, headway::Topology topology) : side_(side), segment_(side * side, side * side, 1, 4_MiB) {
    for (std::size_t id = 0; id < side * side; ++id) {
      members_.push_back(std::make_unique<Member>(segment_, id, topology));
    }
  }

  void round(std::size_t per_pair) {
    const std::size_t pes = members_.size();
    for (std::size_t id = 0; id < pes; ++id) {
      for (std::size_t to = 0; to < pes; ++to) {
        if (to / side_ != id / side_) members_[id]->send(to, per_pair);
      }
      members_[id]->flush();
    }
    settle();
    for (std::size_t id = 0; id < pes; ++id) {
      const std::size_t row = id / side_ * side_;
      for (std::size_t to = row; to < row + side_; ++to) {
        if (to != id) members_[id]->send(to, per_pair);
      }
      members_[id]->flush();
    }
    settle();
  }

  void print() const {
    std::uint64_t sum = 0, handled = 0, frames = 0;
    for (const auto& member : members_) {
      sum += member->sum();
      handled += member->statistics().handled;
      frames += member->statistics().frames;
    }
    std::printf("%llu %llu %llu\n", static_cast<unsigned long long>(sum), static_cast<unsigned long long>(handled),
                static_cast<unsigned long long>(frames));
  }

 private:
  /// Until all that was sent has come.
  void settle() {
    for (bool any = true; any;) {
      any = false;
      for (const auto& member : members_) any |= member->progress();
    }
  }

  std::size_t side_;
  headway::local::Segment segment_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view name = argc == 5 ? argv[1] : "";
  if (name != "1d" && name != "2d") {
    std::fprintf(stderr, "usage: headway-routes 1d|2d SIDE MESSAGES ROUNDS\n");
    return 2;
  }
  Square square(std::strtoull(argv[2], nullptr, 10), headway::grid(name == "1d" ? 1 : 2));
  const std::size_t per_pair = std::strtoull(argv[3], nullptr, 10), rounds = std::strtoull(argv[4], nullptr, 10);
  for (std::size_t i = 0; i < rounds; ++i) square.round(per_pair);
  square.print();
} catch (const std::exception& error) {
  std::fprintf(stderr, "headway-routes: %s\n", error.what());
  return 1;
}
