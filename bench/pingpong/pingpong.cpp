/// Pairs of PEs: one message to the partner and back, again and again; half the time of a round trip.
#include <message/measure.hpp>

namespace headway::bench {
namespace {

/// Answers up to this size are sent by the handler; larger ones by the main program, which waits for room where a
/// handler would have its message copied aside.
constexpr std::size_t answered_in_handler_bytes_max = 64 * 1024;

template <class Kind>
class PingPong {
 public:
  PingPong(Pe& pe, const Arguments& arguments)
      : pe_(&pe),
        partner_(pe.id() ^ 1),
        in_handler_(arguments.bytes <= answered_in_handler_bytes_max),
        kind_(arguments.bytes, pe.id()),
        sender_(pe, arguments.aggregator) {}

  std::vector<std::size_t> sources() const { return {partner_}; }
  template <class Take>
  void on(Take take) {
    sender_.on([take, this](typename Kind::Received received) {
      take(partner_, received);
      ++came_;
      if (came_ == mark_at_) mark();
      if (in_handler_ && sent_ < trips_) hit();
    });
  }
  void start() {
    came_ = sent_ = trips_ = 0;
    marks_ns_.clear();
  }
  void send(std::uint64_t trips) {
    trips_ = trips;
    part_ = std::max<std::uint64_t>(1, trips / parts_max);
    mark();
    if (in_handler_) {
      if (begins()) hit();
      wait_until(*pe_, [&] { return came_ == trips_; });
      return;
    }
    for (std::uint64_t trip = 0; trip < trips; ++trip) {
      if (begins()) hit();
      wait_until(*pe_, [&] { return came_ > trip; });
      if (!begins()) hit();
    }
  }
  std::uint64_t errors(std::uint64_t /*messages*/) const { return 0; }
  std::vector<AggregatorStatistics> statistics() const { return {sender_.statistics()}; }
  const AggregatorOptions& options() const { return sender_.options(); }

  /// Collective. The median over the parts of the run, the mean over pairs.
  Json further_fields(Pe& pe) const {
    double one_way_us = 0;
    if (begins()) {
      std::vector<double> parts;
      for (std::size_t i = 1; i < marks_ns_.size(); ++i) {
        parts.push_back(double(marks_ns_[i] - marks_ns_[i - 1]) * 1e-3 / 2 / double(part_));
      }
      one_way_us = spread_of(std::move(parts)).median;
    }
    const double in_all = allreduce(pe, one_way_us, [](double a, double b) { return a + b; });
    return {{"one_way_us", to_json(spread_of({in_all / double(pe.size() / 2)}))}};
  }

 private:
  static constexpr std::uint64_t parts_max = 20;

  bool begins() const { return pe_->id() % 2 == 0; }
  void hit() { kind_.send(sender_, partner_, sent_++); }
  void mark() {
    marks_ns_.push_back(pe_->engine().now());
    mark_at_ = came_ + part_;
  }

  Pe* pe_;
  std::size_t partner_;
  bool in_handler_;
  Kind kind_;
  typename Kind::Sender sender_;
  std::uint64_t trips_ = 0, sent_ = 0, came_ = 0;
  std::uint64_t part_ = 1, mark_at_ = 0;  // the time is taken every so many round trips; next when so many came
  std::vector<std::int64_t> marks_ns_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  const About about = {.bench = "pingpong",
                       .help = "One message to the partner and back, between pairs of PEs; verified.",
                       .bytes = 8,
                       .pairs = true,
                       .messages_help = "round trips of each pair"};
  if (const auto status = parse(argc, argv, about, arguments)) return *status;
  return run_pattern<PingPong>(argc, argv, arguments);
}
