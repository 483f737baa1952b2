// SPDX-License-Identifier: BSD-3-Clause
/// Channels: send and receive a program's messages of one kind, whatever their type.
#pragma once

#include <headway/aggregate/options.hpp>
#include <headway/am/pe.hpp>
#include <memory>
#include <optional>

#include "message.hpp"

namespace seeds {

using headway::Pe;
using headway::PeId;

/// The receiver of a PE's messages.
class Receiver {
 public:
  virtual ~Receiver() = default;

  /// A message has arrived with this header. Returns the content it must have.
  virtual Content arrives(std::size_t channel, std::optional<PeId> source, const Header& header) = 0;
  /// And whether it does.
  virtual void arrived(std::size_t channel, const Header& header, bool unchanged) = 0;
  /// One without a header.
  virtual void arrived_bare(std::size_t channel, std::optional<PeId> source, Content content) = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;

  /// Sets the handler; before the first send().
  virtual void listen() = 0;
  virtual void send(std::size_t destination, const Header& header, Content content) = 0;
  /// False where it refuses, or has no such thing.
  virtual bool try_send(std::size_t destination, const Header& header, Content content) = 0;
  virtual void flush() = 0;
  /// Unless they count others' messages, too.
  virtual std::optional<headway::AggregatorStatistics> statistics() const = 0;
};

/// Collective, as making an aggregator is.
std::unique_ptr<Channel> make_channel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver);

/// Of messages of fixed size, in the plan's form.
std::unique_ptr<Channel> make_fixed_channel(Pe& pe, const ChannelPlan& plan, std::size_t number, Receiver& receiver);

/// Calls find their receiver by its PE: all of a process, set by each PE for itself.
void set_receiver(Pe& pe, Receiver* receiver);
Receiver& receiver_of(Pe& pe);

}  // namespace seeds
