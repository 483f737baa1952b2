// SPDX-License-Identifier: BSD-3-Clause
#include "channel.hpp"

#include <array>
#include <headway/headway.hpp>

#include "aggregator_channel.hpp"

namespace seeds {
namespace {

constexpr std::size_t pes_max = 256;
std::array<Receiver*, pes_max> receivers{};  // by PE

/// Runs on the receiver.
void take_call(Pe& pe, PeId source, std::uint32_t channel, const Header& header, Content content) {
  Receiver& receiver = receiver_of(pe);
  const Content expected = receiver.arrives(channel, source, header);
  receiver.arrived(channel, header, codecs::same(expected, content));
}

/// Calls through an aggregator of their own, or the PE's.
class CallChannel final : public Channel {
 public:
  CallChannel(Pe& pe, const ChannelPlan& plan, std::size_t number)
      : pe_(pe), plain_(plan.takes_source), number_(std::uint32_t(number)) {
    if (plan.kind == Kind::calls) calls_.emplace(pe, plan.options);
  }

  void listen() override {}
  void send(std::size_t destination, const Header& header, Content content) override {
    if (!calls_) {
      headway::rpc_ff(pe_, destination, &take_call, number_, header, content);
    } else if (plain_) {
      calls_->rpc_ff(destination, &take_call, number_, header, content);
    } else {
      calls_->rpc_ff(
          destination,
          [](Pe& pe, PeId source, const std::string& text, const Header& h, std::uint32_t number) {
            take_call(pe, source, number, h, std::as_bytes(std::span(text)));
          },
          codecs::text_of(content), header, number_);
    }
  }
  bool try_send(std::size_t, const Header&, Content) override { return false; }
  void flush() override {
    if (calls_) calls_->flush();
  }
  std::optional<headway::AggregatorStatistics> statistics() const override {
    return calls_ ? std::optional(calls_->statistics()) : std::nullopt;
  }

 private:
  Pe& pe_;
  bool plain_;
  std::uint32_t number_;
  std::optional<headway::CallAggregator> calls_;
};

/// Calls that name an object, and wait for it where it does not exist yet.
class ObjectCallChannel final : public Channel {
 public:
  ObjectCallChannel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver)
      : pe_(pe), itself_{&receiver, number} {
    if (plan.kind == Kind::object_calls) calls_.emplace(pe, plan.options);
  }

  void listen() override { object_.emplace(pe_, itself_); }
  void send(std::size_t destination, const Header& header, Content content) override {
    const auto take = [](Pe&, PeId source, Object& object, const Header& h, Content arrived) {
      const Content expected = object.receiver->arrives(object.number, source, h);
      object.receiver->arrived(object.number, h, codecs::same(expected, arrived));
    };
    headway::CallAggregator& calls = calls_ ? *calls_ : headway::call::default_calls(pe_);
    calls.rpc_ff(destination, take, *object_, header, content);
  }
  bool try_send(std::size_t, const Header&, Content) override { return false; }
  void flush() override {
    if (calls_) calls_->flush();
  }
  std::optional<headway::AggregatorStatistics> statistics() const override {
    return calls_ ? std::optional(calls_->statistics()) : std::nullopt;
  }

 private:
  struct Object {
    Receiver* receiver;
    std::size_t number;
  };
  Pe& pe_;
  Object itself_;
  std::optional<headway::CallAggregator> calls_;
  std::optional<headway::DistObject<Object>> object_;
};

template <class Codec, class... Args>
std::unique_ptr<Channel> make(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver) {
  return std::make_unique<AggregatorChannel<Codec, Args...>>(pe, plan, number, receiver);
}

}  // namespace

std::unique_ptr<Channel> make_channel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver) {
  using namespace codecs;
  switch (plan.kind) {
    case Kind::nothing: return make<OfNothing, Nothing>(pe, plan, number, receiver);
    case Kind::byte: return make<OfByte, std::uint8_t>(pe, plan, number, receiver);
    case Kind::header: return make<OfHeader, Header>(pe, plan, number, receiver);
    case Kind::block_24: return make<OfBlock<Block<24>>, Block<24>>(pe, plan, number, receiver);
    case Kind::block_200: return make<OfBlock<Block<200>>, Block<200>>(pe, plan, number, receiver);
    case Kind::block_1000: return make<OfBlock<Block<1000>>, Block<1000>>(pe, plan, number, receiver);
    case Kind::wide: return make<OfBlock<Wide>, Wide>(pe, plan, number, receiver);
    case Kind::pair: return make<OfPair, std::uint8_t, Header>(pe, plan, number, receiver);
    case Kind::bare: return make<OfBare, Content>(pe, plan, number, receiver);
    case Kind::span: return make<OfSpan, Header, Content>(pe, plan, number, receiver);
    case Kind::text: return make<OfText, std::string_view, Header>(pe, plan, number, receiver);
    case Kind::views: return make<OfViews, OfViews::Words, Header, std::string_view>(pe, plan, number, receiver);
    case Kind::strings: return make<OfStrings, Header, OfStrings::Strings>(pe, plan, number, receiver);
    case Kind::map: return make<OfMap, OfMap::Map, Header>(pe, plan, number, receiver);
    case Kind::record: return make<OfRecord, Record>(pe, plan, number, receiver);
    case Kind::calls:
    case Kind::default_calls: return std::make_unique<CallChannel>(pe, plan, number);
    case Kind::fixed:
    case Kind::fixed_calls: return make_fixed_channel(pe, plan, number, receiver);
    case Kind::object_calls:
    case Kind::default_object_calls: return std::make_unique<ObjectCallChannel>(pe, plan, number, receiver);
  }
  return nullptr;
}

void set_receiver(Pe& pe, Receiver* receiver) { receivers[pe.id()] = receiver; }
Receiver& receiver_of(Pe& pe) { return *receivers[pe.id()]; }

}  // namespace seeds
