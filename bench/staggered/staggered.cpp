// SPDX-License-Identifier: BSD-3-Clause
/// As stream, with a cumulative acknowledgement per 100 messages received. Senders do not wait for it.
#include <message/measure.hpp>
#include <message/pattern.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Staggered : public AcknowledgedPattern<Kind> {
 public:
  Staggered(Pe& pe, const Arguments& arguments) : AcknowledgedPattern<Kind>(pe, arguments) {}

  std::vector<std::size_t> sources() const { return {this->partner()}; }
  template <class Take>
  void on(Take take) {
    this->handle_by(
        [take, partner = this->partner(), told = &this->acknowledgements()](typename Kind::Received received) {
          take(partner, received);
          told->count(partner);
        });
  }
  void send(std::uint64_t messages) {
    const std::size_t partner = this->partner();
    for (std::uint64_t i = 0; i < messages; ++i) this->send_to(partner, i);
  }
  std::uint64_t errors(std::uint64_t messages) const { return this->acknowledgements().errors(messages, 1); }
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  return main_of<Staggered>(argc, argv,
                            {.bench = "staggered",
                             .help = "As headway-stream, with an acknowledgement per 100 messages; verified.",
                             .bytes = 8,
                             .pairs = true,
                             .acknowledged = true,
                             .messages_help = "messages that each PE sends"});
}
