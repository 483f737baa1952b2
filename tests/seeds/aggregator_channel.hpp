// SPDX-License-Identifier: BSD-3-Clause
/// A channel that is an aggregator.
#pragma once

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <optional>
#include <type_traits>

#include "channel.hpp"

namespace seeds {

/// How a handler gets an argument of that type.
template <class Arg>
using Parameter = std::conditional_t<headway::aggregate::is_view<Arg>, Arg, const Arg&>;

/// A message has arrived.
template <class Codec, class... Args>
void hand_over(Receiver& receiver, std::size_t channel, std::optional<PeId> source, const Args&... args) {
  if constexpr (requires { Codec::header_of(args...); }) {
    const Header& header = Codec::header_of(args...);
    const Content expected = receiver.arrives(channel, source, header);
    receiver.arrived(channel, header, Codec::holds(expected, args...));
  } else {
    receiver.arrived_bare(channel, source, Codec::content_of(args...));
  }
}

template <class Codec, class... Args>
class AggregatorChannel final : public Channel {
 public:
  AggregatorChannel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver)
      : number_(number), takes_source_(plan.takes_source), receiver_(receiver), aggregator_(pe, plan.options) {}

  void listen() override {
    if (takes_source_) {
      aggregator_.on([this](Pe&, PeId source, Parameter<Args>... args) { take(source, args...); });
    } else {
      aggregator_.on([this](Parameter<Args>... args) { take(std::nullopt, args...); });
    }
  }
  void send(std::size_t destination, const Header& header, Content content) override {
    Codec::send(header, content, [&](const Args&... args) { aggregator_.send(destination, args...); });
  }
  bool try_send(std::size_t destination, const Header& header, Content content) override {
    return Codec::send(header, content,
                       [&](const Args&... args) { return aggregator_.try_send(destination, args...); });
  }
  void flush() override { aggregator_.flush(); }
  std::optional<headway::AggregatorStatistics> statistics() const override { return aggregator_.statistics(); }

 private:
  void take(std::optional<PeId> source, Parameter<Args>... args) {
    hand_over<Codec>(receiver_, number_, source, args...);
  }

  std::size_t number_;
  bool takes_source_;
  Receiver& receiver_;
  headway::Aggregator<Args...> aggregator_;
};

}  // namespace seeds
