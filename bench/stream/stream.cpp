// SPDX-License-Identifier: BSD-3-Clause
/// Pairs of PEs: each sends m messages of n bytes to its partner at once; the time until all are handled on both.
#include <message/measure.hpp>
#include <message/pattern.hpp>

namespace headway::bench {
namespace {

template <class Kind>
class Stream : public PlainPattern<Kind> {
 public:
  Stream(Pe& pe, const Arguments& arguments) : PlainPattern<Kind>(pe, arguments), one_by_one_(arguments.one_by_one) {}

  std::vector<std::size_t> sources() const { return {this->partner()}; }
  template <class Take>
  void on(Take take) {
    this->handle_by([take, partner = this->partner()](typename Kind::Received received) { take(partner, received); });
  }
  void send(std::uint64_t messages) {
    const std::size_t partner = this->partner();
    if (!one_by_one_) return this->send_all_to(partner, messages);
    for (std::uint64_t i = 0; i < messages; ++i) this->send_to(partner, i);
  }

 private:
  bool one_by_one_;
};

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  return main_of<Stream>(argc, argv,
                         {.bench = "stream",
                          .help = "Messages of one size between pairs of PEs, both ways at once; verified.",
                          .bytes = 8,
                          .pairs = true,
                          .ranges = true,
                          .messages_help = "messages that each PE sends"});
}
