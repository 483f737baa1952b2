// SPDX-License-Identifier: BSD-3-Clause
// Messages of fixed size: an aggregator for each form of them, and calls with each as their arguments.
#include <array>
#include <headway/call/calls.hpp>
#include <utility>

#include "aggregator_channel.hpp"
#include "fixed_forms.hpp"

namespace seeds {
namespace {

template <class... Parts>
class FixedCallChannel final : public Channel {
 public:
  using Codec = codecs::OfFixed<Parts...>;

  FixedCallChannel(Pe& pe, const ChannelPlan& plan, std::size_t number)
      : number_(std::uint32_t(number)), calls_(pe, plan.options) {}

  void listen() override {}
  void send(std::size_t destination, const Header& header, Content content) override {
    Codec::send(header, content,
                [&](const Parts&... parts) { calls_.rpc_ff(destination, &FixedCallChannel::take, number_, parts...); });
  }
  bool try_send(std::size_t, const Header&, Content) override { return false; }
  void flush() override { calls_.flush(); }
  std::optional<headway::AggregatorStatistics> statistics() const override { return calls_.statistics(); }

 private:
  /// Runs on the receiver.
  static void take(Pe& pe, PeId source, std::uint32_t number, const Parts&... parts) {
    hand_over<Codec>(receiver_of(pe), number, source, parts...);
  }

  std::uint32_t number_;
  headway::CallAggregator calls_;
};

template <class Form>
struct Makes;
template <class... Parts>
struct Makes<FixedForm<Parts...>> {
  static std::unique_ptr<Channel> make(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver) {
    if (plan.kind == Kind::fixed_calls) return std::make_unique<FixedCallChannel<Parts...>>(pe, plan, number);
    return std::make_unique<AggregatorChannel<codecs::OfFixed<Parts...>, Parts...>>(pe, plan, number, receiver);
  }
};

template <std::size_t... i>
constexpr auto all_makes(std::index_sequence<i...>) {
  return std::array{&Makes<std::tuple_element_t<i, FixedForms>>::make...};
}

}  // namespace

std::unique_ptr<Channel> make_fixed_channel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver) {
  static constexpr auto makes = all_makes(std::make_index_sequence<fixed_forms>());
  return makes[plan.form](pe, plan, number, receiver);
}

}  // namespace seeds
