// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the patterns: messages of one Kind, and acknowledgements where a pattern wants them.
#pragma once

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <message/acknowledgements.hpp>
#include <message/arguments.hpp>
#include <utility>
#include <vector>

namespace headway::bench {

/// A pattern without acknowledgements. Collective to make.
template <class Kind>
class PlainPattern {
 public:
  void start() {}
  std::uint64_t errors(std::uint64_t /*messages*/) const { return 0; }
  std::vector<AggregatorStatistics> statistics() const { return {sender_.statistics()}; }
  const AggregatorOptions& options() const { return sender_.options(); }

 protected:
  PlainPattern(Pe& pe, const Arguments& arguments)
      : pe_(&pe), kind_(arguments.bytes, pe.id()), sender_(pe, arguments.aggregator) {}

  Pe& pe() const { return *pe_; }
  /// The even PE and the odd one after it are a pair.
  std::size_t partner() const { return pe_->id() ^ 1; }
  template <class Handler>
  void handle_by(Handler handler) {
    sender_.on(std::move(handler));
  }
  void send_all_to(std::size_t destination, std::uint64_t count) { kind_.send_all(sender_, destination, count); }
  void send_to(std::size_t destination, std::uint64_t index) { kind_.send(sender_, destination, index); }

 private:
  Pe* pe_;
  Kind kind_;
  typename Kind::Sender sender_;
};

/// Every window of messages is acknowledged. Collective to make.
template <class Kind>
class AcknowledgedPattern : public PlainPattern<Kind> {
 public:
  void start() { acknowledgements_.start(); }
  std::vector<AggregatorStatistics> statistics() const {
    return {PlainPattern<Kind>::statistics().front(), acknowledgements_.statistics()};
  }

 protected:
  AcknowledgedPattern(Pe& pe, const Arguments& arguments)
      : PlainPattern<Kind>(pe, arguments), acknowledgements_(pe, arguments.aggregator, arguments.window) {}

  Acknowledgements& acknowledgements() { return acknowledgements_; }
  const Acknowledgements& acknowledgements() const { return acknowledgements_; }

 private:
  Acknowledgements acknowledgements_;
};

}  // namespace headway::bench
