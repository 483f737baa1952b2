// SPDX-License-Identifier: BSD-3-Clause
/// As staggered, from every PE to every other: 100 messages to each (--window), and on only when all of them are
/// acknowledged. In all m P (P - 1) messages.
#include <message/measure.hpp>
#include <message/pattern.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Synthetic : public AcknowledgedPattern<Kind> {
 public:
  Synthetic(Pe& pe, const Arguments& arguments) : AcknowledgedPattern<Kind>(pe, arguments), window_(arguments.window) {
    // Each begins with the next, so that not all send to the same one at once.
    for (std::size_t step = 1; step < pe.size(); ++step) others_.push_back((pe.id() + step) % pe.size());
  }

  const std::vector<std::size_t>& sources() const { return others_; }
  template <class Take>
  void on(Take take) {
    this->handle_by([take, told = &this->acknowledgements()](PeId source, typename Kind::Received received) {
      take(source, received);
      told->count(source);
    });
  }
  void send(std::uint64_t messages) {
    for (std::uint64_t index = 0; index < messages;) {
      const std::uint64_t end = std::min(messages, index + window_);
      for (; index < end; ++index) {
        for (const std::size_t other : others_) this->send_to(other, index);
      }
      const std::uint64_t expected = end / window_ * window_ * others_.size();
      wait_until(this->pe(), [&] { return this->acknowledgements().confirmed() == expected; });
    }
  }
  std::uint64_t errors(std::uint64_t messages) const {
    return this->acknowledgements().errors(messages, others_.size());
  }

 private:
  std::uint64_t window_;
  std::vector<std::size_t> others_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  return main_of<Synthetic>(
      argc, argv,
      {.bench = "synthetic",
       .help = "Messages among all PEs, each of which waits for 100 from everybody to be acknowledged; verified.",
       .bytes = 100,
       .pairs = false,
       .acknowledged = true,
       .messages_help = "messages that each PE sends to each other"});
}
