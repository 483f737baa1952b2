// SPDX-License-Identifier: BSD-3-Clause
/// Pairs of PEs: one message to the partner and back, again and again; half the time of a round trip.
#include <message/laps.hpp>
#include <message/measure.hpp>
#include <message/pattern.hpp>

namespace headway::bench {
namespace {

/// Answers up to this size are sent by the handler; larger ones by the main program, which waits for room where a
/// handler would have its message copied aside.
constexpr std::size_t answered_in_handler_bytes_max = std::size_t(64) << 10;

template <class Kind>
class PingPong : public PlainPattern<Kind> {
 public:
  PingPong(Pe& pe, const Arguments& arguments)
      : PlainPattern<Kind>(pe, arguments), in_handler_(arguments.bytes <= answered_in_handler_bytes_max) {}

  std::vector<std::size_t> sources() const { return {this->partner()}; }
  template <class Take>
  void on(Take take) {
    this->handle_by([take, this](typename Kind::Received received) {
      take(this->partner(), received);
      ++came_;
      if (laps_.due(came_)) laps_.mark(this->pe().engine().now());
      if (in_handler_ && sent_ < trips_) hit();
    });
  }
  void start() {
    came_ = sent_ = trips_ = 0;
    laps_ = {};
  }
  void send(std::uint64_t trips) {
    trips_ = trips;
    laps_ = {trips, this->pe().engine().now()};
    if (in_handler_) {
      if (begins()) hit();
      wait_until(this->pe(), [&] { return came_ == trips_; });
      return;
    }
    for (std::uint64_t trip = 0; trip < trips; ++trip) {
      if (begins()) hit();
      wait_until(this->pe(), [&] { return came_ > trip; });
      if (!begins()) hit();
    }
  }

  /// Collective. The mean over pairs.
  Json further_fields(Pe& pe) const {
    const double in_all = allreduce(pe, begins() ? laps_.one_way_us() : 0, [](double a, double b) { return a + b; });
    const std::size_t pairs = pe.size() / 2;
    return {{"one_way_us", to_json(spread_of({in_all / double(pairs)}))}};
  }

 private:
  bool begins() const { return this->pe().id() % 2 == 0; }
  void hit() { this->send_to(this->partner(), sent_++); }

  bool in_handler_;
  std::uint64_t trips_ = 0, sent_ = 0, came_ = 0;
  Laps laps_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  return main_of<PingPong>(argc, argv,
                           {.bench = "pingpong",
                            .help = "One message to the partner and back, between pairs of PEs; verified.",
                            .bytes = 8,
                            .pairs = true,
                            .messages_help = "round trips of each pair"});
}
