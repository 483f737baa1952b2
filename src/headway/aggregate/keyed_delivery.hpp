// SPDX-License-Identifier: BSD-3-Clause
/// Delivery of messages with zero-copy content.
#pragma once

#include <cstddef>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/content_mover.hpp>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/keyed_message.hpp>
#include <headway/aggregate/posted.hpp>
#include <headway/base/format_error.hpp>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// A part of Receiver<Args...> with handlers of type Handlers, outside its loops.
template <class Receiver, class Handlers, class Format, class... Args>
struct KeyedDelivery {
  /// Delivers one message. Its content is read in place if this PE has it mapped, else copied, now or later.
  static Core::Result deliver(Receiver& self, const transport::Arrival& arrival) {
    const PeId source = arrival.header.source;
    KeyedMessage message = self.keyed_message(arrival, Receiver::key_header_bytes);
    constexpr bool is_view_at[] = {is_view<Args>...};
    if (message.header.argument >= sizeof...(Args) || !is_view_at[message.header.argument]) {
      self.refuse_frame(arrival, "the argument with zero-copy content, which must be a view,", message.header.argument,
                        "below", sizeof...(Args));
    }
    const rma::BufferKey& key = message.header.key;
    if (ContentMover::if_linked == nullptr)
      self.refuse_frame(arrival, "it has zero-copy content, which this program does not use");
    ContentMover& mover = ContentMover::if_linked(self.engine().pe());
    mover.check(key);
    if constexpr (posts) {
      auto& posted = static_cast<Handlers*>(self.handler_.get())->handler;
      with_content(message, nullptr, [&](const Args&... args) {
        message.content = reinterpret_cast<std::byte*>(
            posted.destination(self.engine().pe(), source, message.elements, args...).data());
      });
    } else {
      if (const std::byte* const mapped = mover.mapped(key)) {
        message.content = const_cast<std::byte*>(mapped);  // it is only read
        take(self, message, source);
        mover.tell_used(key, ContentMover::read_in_place);
        return Core::Result::done;
      }
      message.memory = self.reassembly().take(key.bytes);
      message.content = message.memory.at();
    }
    self.counters().further_copies.add(1, key.bytes);
    if (const auto ns = mover.fetch_now(key, message.content, posts)) {
      take(self, message, source);
      mover.tell_used(key, *ns);  // after the handler: it may have an answer to send
      return Core::Result::done;
    }
    // Many messages may wait: each takes its memory when its transfer starts.
    self.reassembly().give(std::move(message.memory));
    message.keep();
    const auto kept = std::make_shared<KeyedMessage>(std::move(message));
    const auto begin = [&, kept] {
      if constexpr (!posts) {
        kept->memory = self.reassembly().take(kept->header.key.bytes);
        kept->content = kept->memory.at();
      }
      return kept->content;
    };
    mover.fetch_later(kept->header.key, self.handler_, begin, [&self, kept, source] { take(self, *kept, source); });
    return Core::Result::done;
  }

 private:
  static constexpr bool posts = PostsTo<typename Handlers::Handler>::yes;

  static void take(Receiver& self, KeyedMessage& message, PeId source) {
    const std::byte* const content = message.content;
    ContentMover::if_linked(self.engine().pe())
        .require_unchanged(message.header.key, {content, message.header.key.bytes}, message.header.checksum);
    auto& handler = static_cast<Handlers*>(self.handler_.get())->handler;
    with_content(message, content, [&](const Args&... args) {
      if constexpr (posts)
        handler.arrived(self.engine().pe(), source, args...);
      else
        Call<typename Handlers::Handler, Args...>::run(handler, self.engine().pe(), source, args...);
    });
    self.reassembly().give(std::move(message.memory));
    self.count_handled(1);
  }

  /// Calls f(args...) with the message, and with `content` as the argument that its key names.
  template <class F>
  static void with_content(KeyedMessage& message, const std::byte* content, F f) {
    typename Format::Scratch scratch;
    Format::apply(message.at, message.bytes, scratch, [&](const Args&... args) {
      std::size_t i = 0;
      const auto filled = [&]<class Arg>(const Arg& arg) -> decltype(auto) {
        [[maybe_unused]] const bool is_keyed = i++ == message.header.argument;
        if constexpr (is_view<Arg>) {
          using Element = typename ViewElement<Arg>::Type;
          if (!is_keyed) return Arg(arg);
          if (message.header.key.bytes % sizeof(Element) != 0)
            refuse_content(message.header.key.bytes, sizeof(Element));
          message.elements = message.header.key.bytes / sizeof(Element);
          return content == nullptr ? Arg() : Arg(reinterpret_cast<const Element*>(content), message.elements);
        } else {
          return (arg);
        }
      };
      // in this order
      const std::tuple<decltype(filled(args))...> all{filled(args)...};
      std::apply(f, all);
    });
  }
};

}  // namespace headway::aggregate
