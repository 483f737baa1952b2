/// As stream, with a cumulative acknowledgement per 100 messages received, for which nobody waits.
#include <message/acknowledgements.hpp>
#include <message/measure.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Staggered {
 public:
  Staggered(Pe& pe, const Arguments& arguments)
      : partner_(pe.id() ^ 1),
        kind_(arguments.bytes, pe.id()),
        sender_(pe, arguments.aggregator),
        acknowledgements_(pe, arguments.aggregator) {}

  std::vector<std::size_t> sources() const { return {partner_}; }
  template <class Take>
  void on(Take take) {
    sender_.on([take, this, partner = partner_](typename Kind::Received received) {
      take(partner, received);
      acknowledgements_.count(partner);
    });
  }
  void start() { acknowledgements_.start(); }
  void send(std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) kind_.send(sender_, partner_, i);
  }
  std::uint64_t errors(std::uint64_t messages) const { return acknowledgements_.errors(messages, 1); }
  std::vector<AggregatorStatistics> statistics() const {
    return {sender_.statistics(), acknowledgements_.statistics()};
  }
  const AggregatorOptions& options() const { return sender_.options(); }

 private:
  std::size_t partner_;
  Kind kind_;
  typename Kind::Sender sender_;
  Acknowledgements acknowledgements_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  const About about = {.bench = "staggered",
                       .help = "As headway-stream, with an acknowledgement per 100 messages; verified.",
                       .bytes = 8,
                       .pairs = true,
                       .messages_help = "messages that each PE sends"};
  if (const auto status = parse(argc, argv, about, arguments)) return *status;
  return run_pattern<Staggered>(argc, argv, arguments);
}
