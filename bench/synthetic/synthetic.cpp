/// As staggered, from every PE to every other: 100 messages to each, and on only when all of them are acknowledged. In
/// all m P (P - 1) messages.
#include <message/acknowledgements.hpp>
#include <message/measure.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Synthetic {
 public:
  Synthetic(Pe& pe, const Arguments& arguments)
      : pe_(&pe),
        kind_(arguments.bytes, pe.id()),
        sender_(pe, arguments.aggregator),
        acknowledgements_(pe, arguments.aggregator) {
    // Each begins with the next, so that not all send to the same one at once.
    for (std::size_t step = 1; step < pe.size(); ++step) others_.push_back((pe.id() + step) % pe.size());
  }

  const std::vector<std::size_t>& sources() const { return others_; }
  template <class Take>
  void on(Take take) {
    sender_.on([take, this](PeId source, typename Kind::Received received) {
      take(source, received);
      acknowledgements_.count(source);
    });
  }
  void start() { acknowledgements_.start(); }
  void send(std::uint64_t messages) {
    for (std::uint64_t index = 0; index < messages;) {
      const std::uint64_t end = std::min(messages, index + acknowledged_messages);
      for (; index < end; ++index) {
        for (const std::size_t other : others_) kind_.send(sender_, other, index);
      }
      const std::uint64_t expected = end / acknowledged_messages * acknowledged_messages * others_.size();
      wait_until(*pe_, [&] { return acknowledgements_.confirmed() == expected; });
    }
  }
  std::uint64_t errors(std::uint64_t messages) const { return acknowledgements_.errors(messages, others_.size()); }
  std::vector<AggregatorStatistics> statistics() const {
    return {sender_.statistics(), acknowledgements_.statistics()};
  }
  const AggregatorOptions& options() const { return sender_.options(); }

 private:
  Pe* pe_;
  std::vector<std::size_t> others_;
  Kind kind_;
  typename Kind::Sender sender_;
  Acknowledgements acknowledgements_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  const About about = {
      .bench = "synthetic",
      .help = "Messages among all PEs, each of which waits for 100 from everybody to be acknowledged; verified.",
      .bytes = 100,
      .pairs = false,
      .messages_help = "messages that each PE sends to each other"};
  if (const auto status = parse(argc, argv, about, arguments)) return *status;
  return run_pattern<Synthetic>(argc, argv, arguments);
}
