// SPDX-License-Identifier: BSD-3-Clause
/// headway.Aggregator.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "run.hpp"
#include "sinks.hpp"

namespace headway::python {

std::unique_ptr<Channel> make_channel(Pe& pe, const AggregatorOptions& options, std::size_t bytes, Sink& sink) {
  ChannelMaker make = small_channel(bytes);
  if (make == nullptr) make = large_channel(bytes);
  if (make != nullptr) return make(pe, options, bytes, sink);
  return std::make_unique<VariableChannel>(pe, options, bytes, sink);
}

namespace {

/// An aggregator with its handler.
class Exchange final : public Resource {
 public:
  Exchange(const AggregatorOptions& options, std::size_t bytes, std::unique_ptr<Sink> sink)
      : bytes_(bytes), sink_(std::move(sink)), channel_(make_channel(Run::get().pe(), options, bytes, *sink_)) {}

  void send(const Bytes& destinations, unsigned destination_bytes, const Bytes& items) {
    const std::size_t count = items.size() / bytes_;
    Destinations to{destinations.data(), destination_bytes, destinations.size() == destination_bytes && count != 1};
    const Waiting waiting;
    channel_->send(to, data_of(items), count);
  }
  /// Sends items: each field lies in an array of its own.
  void send_columns(const Bytes& destinations, unsigned destination_bytes, const std::vector<Bytes>& columns,
                    const std::vector<std::size_t>& widths, std::size_t count) {
    constexpr std::size_t block_max = 512;
    const bool all = destinations.size() == destination_bytes && count != 1;
    std::vector<std::byte> rows(block_max * bytes_);
    std::vector<const std::byte*> at;
    for (const Bytes& column : columns) at.push_back(data_of(column));
    const auto* to = reinterpret_cast<const std::byte*>(destinations.data());
    const Waiting waiting;
    for (std::size_t first = 0; first < count; first += block_max) {
      const std::size_t block = std::min(block_max, count - first);
      std::size_t offset = 0;
      for (std::size_t c = 0; c < columns.size(); offset += widths[c], ++c)
        at[c] = interleave(at[c], widths[c], rows.data() + offset, block);
      channel_->send({to, destination_bytes, all}, rows.data(), block);
      if (!all) to += block * destination_bytes;
    }
  }
  void flush() { channel_->flush(); }
  nb::object take() {
    auto* const appended = dynamic_cast<AppendSink*>(sink_.get());
    if (appended == nullptr) throw UsageError("take() is for the handler headway.append");
    return appended->take_all();
  }
  nb::dict statistics() const {
    const AggregatorStatistics statistics = channel_->statistics();
    nb::dict result;
    result["messages"] = statistics.messages;
    result["handled"] = statistics.handled;
    result["frames"] = statistics.frames;
    result["payload_bytes"] = statistics.payload_bytes;
    result["wire_bytes"] = statistics.wire_bytes;
    return result;
  }

 private:
  template <std::size_t width>
  const std::byte* interleave_fixed(const std::byte* from, std::byte* to, std::size_t count) const {
    for (; count > 0; --count, from += width, to += bytes_) std::memcpy(to, from, width);
    return from;
  }
  const std::byte* interleave(const std::byte* from, std::size_t width, std::byte* to, std::size_t count) const {
    switch (width) {
      case 1: return interleave_fixed<1>(from, to, count);
      case 2: return interleave_fixed<2>(from, to, count);
      case 4: return interleave_fixed<4>(from, to, count);
      case 8: return interleave_fixed<8>(from, to, count);
      default: break;
    }
    for (; count > 0; --count, from += width, to += bytes_) std::memcpy(to, from, width);
    return from;
  }

  std::size_t bytes_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Channel> channel_;
};

AggregatorOptions options_of(const std::string& name, bool ordered, std::size_t buffer_bytes) {
  AggregatorOptions options;
  options.name = name;
  options.ordered = ordered;
  if (buffer_bytes != 0) options.buffer_bytes = buffer_bytes;
  return options;
}

Handle<Exchange> make(const std::string& name, bool ordered, std::size_t buffer_bytes, std::size_t bytes,
                      std::unique_ptr<Sink> sink) {
  return Run::get().keep(std::make_unique<Exchange>(options_of(name, ordered, buffer_bytes), bytes, std::move(sink)));
}

/// Messages of any length, one by one.
class Messages final : public Resource {
 public:
  Messages(const std::string& name, std::unique_ptr<Sink> sink)
      : sink_(std::move(sink)), aggregator_(Run::get().pe(), {.name = name}) {
    aggregator_.on(
        [to = sink_.get()](std::span<const std::byte> message) { to->take(message.data(), 1, message.size()); });
  }
  void send(std::size_t destination, const Bytes& message) {
    const Waiting waiting;
    aggregator_.send(destination, std::span<const std::byte>(data_of(message), message.size()));
  }

 private:
  std::unique_ptr<Sink> sink_;
  Aggregator<std::span<const std::byte>> aggregator_;
};

using MessagesHandle = Handle<Messages>;
using ExchangeHandle = Handle<Exchange>;

}  // namespace

void add_channels(nb::module_& module) {
  nb::class_<ExchangeHandle>(module, "Exchange")
      .def("send",
           [](ExchangeHandle& h, const Bytes& to, unsigned width, const Bytes& items) { h->send(to, width, items); })
      .def("send_columns", [](ExchangeHandle& h, const Bytes& to, unsigned width, const std::vector<Bytes>& columns,
                              const std::vector<std::size_t>& widths,
                              std::size_t count) { h->send_columns(to, width, columns, widths, count); })
      .def("flush", [](ExchangeHandle& h) { h->flush(); })
      .def("take", [](ExchangeHandle& h) { return h->take(); })
      .def("statistics", [](ExchangeHandle& h) { return h->statistics(); });
  module.def("exchange_to_function", [](const std::string& name, bool ordered, std::size_t buffer_bytes,
                                        std::size_t bytes, nb::object function) {
    return make(name, ordered, buffer_bytes, bytes, make_python_sink(std::move(function)));
  });
  nb::class_<MessagesHandle>(module, "BytesChannel")
      .def("send", [](MessagesHandle& h, std::size_t to, const Bytes& message) { h->send(to, message); });
  module.def("bytes_to_function", [](const std::string& name, nb::object function) {
    return Run::get().keep(std::make_unique<Messages>(name, make_python_sink(std::move(function))));
  });
  module.def("exchange_append", [](const std::string& name, bool ordered, std::size_t buffer_bytes, std::size_t bytes) {
    return make(name, ordered, buffer_bytes, bytes, std::make_unique<AppendSink>(bytes));
  });
  module.def("exchange_update", [](const std::string& name, bool ordered, std::size_t buffer_bytes, std::size_t bytes,
                                   const std::string& operation, char kind, WritableBytes target) {
    return make(name, ordered, buffer_bytes, bytes,
                make_update_sink(operation, kind, bytes - sizeof(std::int64_t), std::move(target)));
  });
}

}  // namespace headway::python
