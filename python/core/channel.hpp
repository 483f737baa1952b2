// SPDX-License-Identifier: BSD-3-Clause
/// An aggregator for items of a size that the program states at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace headway::python {

/// Takes arrived items: `count` of them, `stride` bytes apart, valid until it returns.
struct Sink {
  virtual ~Sink() = default;
  virtual void take(const std::byte* items, std::size_t count, std::size_t stride) = 0;
};

/// A destination for each item, or one for all where `all` says so.
struct Destinations {
  const void* at;
  unsigned bytes;  // of each: 4 or 8
  bool all = false;
};

class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(Destinations to, const std::byte* items, std::size_t count) = 0;
  virtual void flush() = 0;
  virtual AggregatorStatistics statistics() const = 0;
};

template <std::size_t bytes>
using WordOf = std::conditional_t<
    bytes % 8 == 0, std::uint64_t,
    std::conditional_t<bytes % 4 == 0, std::uint32_t, std::conditional_t<bytes % 2 == 0, std::uint16_t, std::uint8_t>>>;

template <std::size_t bytes>
struct Item {
  std::array<WordOf<bytes>, bytes / sizeof(WordOf<bytes>)> words;
};

/// Items of up to `room` bytes in messages of that size.
template <std::size_t room>
class FixedChannel final : public Channel {
 public:
  FixedChannel(Pe& pe, const AggregatorOptions& options, std::size_t bytes, Sink& sink)
      : aggregator_(pe, options), bytes_(bytes) {
    aggregator_.on_rows([&sink](std::span<const Item<room>> row) {
      sink.take(reinterpret_cast<const std::byte*>(row.data()), row.size(), room);
    });
  }

  void send(Destinations to, const std::byte* items, std::size_t count) override {
    if (bytes_ == room)
      send_sized<true>(to, items, count);
    else
      send_sized<false>(to, items, count);
  }
  void flush() override { aggregator_.flush(); }
  AggregatorStatistics statistics() const override { return aggregator_.statistics(); }

 private:
  template <bool whole>
  void send_sized(Destinations to, const std::byte* items, std::size_t count) {
    if (to.bytes == 8)
      send_to<whole, std::uint64_t>(to, items, count);
    else
      send_to<whole, std::uint32_t>(to, items, count);
  }
  template <bool whole, class Destination>
  void send_to(Destinations to, const std::byte* items, std::size_t count) {
    const auto* destination = static_cast<const Destination*>(to.at);
    const std::size_t step = to.all ? 0 : 1, bytes = bytes_;
    aggregator_.send_n(count, [=]() mutable {
      std::pair<std::size_t, Item<room>> message;
      message.first = std::size_t(*destination);
      destination += step;
      if constexpr (whole) {
        std::memcpy(&message.second, items, room);
        items += room;
      } else {
        message.second = {};
        std::memcpy(&message.second, items, bytes);
        items += bytes;
      }
      return message;
    });
  }

  Aggregator<Item<room>> aggregator_;
  std::size_t bytes_;
};

/// Items of any size, which arrive one by one.
class VariableChannel final : public Channel {
 public:
  VariableChannel(Pe& pe, const AggregatorOptions& options, std::size_t bytes, Sink& sink)
      : aggregator_(pe, options), bytes_(bytes) {
    aggregator_.on([&sink](std::span<const std::byte> item) { sink.take(item.data(), 1, item.size()); });
  }
  void send(Destinations to, const std::byte* items, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i, items += bytes_) {
      const std::size_t at = to.all ? 0 : i;
      const std::size_t destination = to.bytes == 8 ? std::size_t(static_cast<const std::uint64_t*>(to.at)[at])
                                                    : static_cast<const std::uint32_t*>(to.at)[at];
      aggregator_.send(destination, std::span<const std::byte>(items, bytes_));
    }
  }
  void flush() override { aggregator_.flush(); }
  AggregatorStatistics statistics() const override { return aggregator_.statistics(); }

 private:
  Aggregator<std::span<const std::byte>> aggregator_;
  std::size_t bytes_;
};

using ChannelMaker = std::unique_ptr<Channel> (*)(Pe&, const AggregatorOptions&, std::size_t bytes, Sink&);

template <std::size_t room>
std::unique_ptr<Channel> make_fixed(Pe& pe, const AggregatorOptions& options, std::size_t bytes, Sink& sink) {
  return std::make_unique<FixedChannel<room>>(pe, options, bytes, sink);
}

/// For items of `bytes`: the smallest fixed size with room for them, or the variable one.
std::unique_ptr<Channel> make_channel(Pe& pe, const AggregatorOptions& options, std::size_t bytes, Sink& sink);
/// Two sources share the sizes, so that two compilers work at a time. nullptr beyond their sizes.
ChannelMaker small_channel(std::size_t bytes);
ChannelMaker large_channel(std::size_t bytes);

}  // namespace headway::python
