/// Pairs of PEs: each sends m messages of n bytes to its partner at once; the time until all are handled on both.
#include <message/measure.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Stream {
 public:
  Stream(Pe& pe, const Arguments& arguments)
      : partner_(pe.id() ^ 1), kind_(arguments.bytes, pe.id()), sender_(pe, arguments.aggregator) {}

  std::vector<std::size_t> sources() const { return {partner_}; }
  template <class Take>
  void on(Take take) {
    sender_.on([take, partner = partner_](typename Kind::Received received) { take(partner, received); });
  }
  void start() {}
  void send(std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) kind_.send(sender_, partner_, i);
  }
  std::uint64_t errors(std::uint64_t /*messages*/) const { return 0; }
  std::vector<AggregatorStatistics> statistics() const { return {sender_.statistics()}; }
  const AggregatorOptions& options() const { return sender_.options(); }

 private:
  std::size_t partner_;
  Kind kind_;
  typename Kind::Sender sender_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  const About about = {.bench = "stream",
                       .help = "Messages of one size between pairs of PEs, both ways at once; verified.",
                       .bytes = 8,
                       .pairs = true,
                       .messages_help = "messages that each PE sends"};
  if (const auto status = parse(argc, argv, about, arguments)) return *status;
  return run_pattern<Stream>(argc, argv, arguments);
}
