// SPDX-License-Identifier: BSD-3-Clause
/// German's cache coherence protocol with data, as published by Chou, Mannava and Park (FMCAD 2004): a directory,
/// caches, and for each cache a channel of requests, one of grants and invalidations, and one of acknowledgements.
/// There are two values of data. Memory has the first one in the only initial state.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model.hpp"

namespace headway::murphi {

template <std::size_t nodes>
class German {
 public:
  enum Cache : std::uint16_t { invalid, shared, exclusive };
  enum Request : std::uint16_t { no_request, wants_shared, wants_exclusive };
  enum Reply : std::uint16_t { no_reply, invalidate, grant_shared, grant_exclusive };

  /// Data are 1 and 2; 0 where there are none.
  struct Node {
    std::uint16_t cache : 2, data : 2;
    std::uint16_t request : 2;
    std::uint16_t reply : 2, reply_data : 2;
    std::uint16_t acknowledges : 1, acknowledged_data : 2;
    std::uint16_t to_invalidate : 1, is_sharer : 1;  // the directory's sets
    std::uint16_t unused : 1;
  };
  struct Directory {
    std::uint16_t current : 2;  // the request that is served
    std::uint16_t client : 4;   // the node that sent it, plus 1; 0: none
    std::uint16_t exclusive_granted : 1;
    std::uint16_t memory : 2, written : 2;  // the content, and the value written last by any node
    std::uint16_t unused : 5;
  };
  struct State {
    std::array<Node, nodes> of;
    Directory directory;
  };
  static_assert(nodes >= 1 && nodes <= 15);

  /// With the bug, the directory grants exclusive access while others share.
  explicit German(bool bug) : bug_(bug) {}

  template <class F>
  void for_each_initial(F f) const {
    State state{};
    state.directory.memory = 1;
    state.directory.written = 1;
    f(state);
  }

  template <class F>
  void for_each_successor(const State& state, F f) const {
    const Directory& home = state.directory;
    bool any_sharer = false;
    for (const Node& node : state.of) any_sharer |= node.is_sharer;
    for (std::size_t i = 0; i < nodes; ++i) {
      const Node& node = state.of[i];
      const auto fire = [&](Kind kind, auto change) {
        State next = state;
        change(next, next.of[i], next.directory);
        f(Rule(i * kinds + kind), next);
      };
      if (node.cache == exclusive) {
        fire(store_1, [](State&, Node& self, Directory& dir) { self.data = 1, dir.written = 1; });
        fire(store_2, [](State&, Node& self, Directory& dir) { self.data = 2, dir.written = 2; });
      }
      if (node.request == no_request) {
        if (node.cache == invalid) {
          fire(request_shared, [](State&, Node& self, Directory&) { self.request = wants_shared; });
        }
        if (node.cache != exclusive) {
          fire(request_exclusive, [](State&, Node& self, Directory&) { self.request = wants_exclusive; });
        }
      } else if (home.current == no_request) {
        fire(serve, [i](State& next, Node& self, Directory& dir) {
          dir.current = self.request;
          dir.client = std::uint16_t(i + 1) & 15;
          self.request = no_request;
          for (Node& other : next.of) other.to_invalidate = other.is_sharer;
        });
      }
      if (node.reply == no_reply && node.to_invalidate &&
          (home.current == wants_exclusive || (home.current == wants_shared && home.exclusive_granted))) {
        fire(send_invalidate, [](State&, Node& self, Directory&) { self.reply = invalidate, self.to_invalidate = 0; });
      }
      if (node.reply == invalidate && !node.acknowledges) {
        fire(acknowledge, [](State&, Node& self, Directory&) {
          self.reply = no_reply;
          self.acknowledges = 1;
          if (self.cache == exclusive) self.acknowledged_data = self.data;
          self.cache = invalid;
          self.data = 0;
        });
      }
      if (node.acknowledges && home.current != no_request) {
        fire(take_acknowledgement, [](State&, Node& self, Directory& dir) {
          self.acknowledges = 0;
          self.is_sharer = 0;
          if (dir.exclusive_granted) dir.exclusive_granted = 0, dir.memory = self.acknowledged_data;
          self.acknowledged_data = 0;
        });
      }
      if (home.client == i + 1 && node.reply == no_reply && !home.exclusive_granted) {
        if (home.current == wants_shared) {
          fire(send_shared, [](State&, Node& self, Directory& dir) { grant(self, dir, grant_shared); });
        }
        if (home.current == wants_exclusive && (bug_ || !any_sharer)) {
          fire(send_exclusive, [](State&, Node& self, Directory& dir) {
            grant(self, dir, grant_exclusive);
            dir.exclusive_granted = 1;
          });
        }
      }
      if (node.reply == grant_shared || node.reply == grant_exclusive) {
        fire(take_grant, [](State&, Node& self, Directory&) {
          self.cache = self.reply == grant_shared ? shared : exclusive;
          self.data = self.reply_data;
          self.reply = no_reply;
          self.reply_data = 0;
        });
      }
    }
  }

  const char* violated(const State& state) const {
    std::size_t valid = 0, owners = 0;
    for (const Node& node : state.of) {
      valid += node.cache != invalid;
      owners += node.cache == exclusive;
      if (node.cache != invalid && node.data != state.directory.written) return "a cache has old data";
    }
    if (owners > 0 && valid > 1) return "a cache has a copy beside an exclusive one";
    if (!state.directory.exclusive_granted && state.directory.memory != state.directory.written) {
      return "memory has old data";
    }
    return nullptr;
  }

  std::string rule_name(Rule rule) const {
    static constexpr std::array<const char*, kinds> names = {"stores 1",
                                                             "stores 2",
                                                             "requests a shared copy",
                                                             "requests an exclusive copy",
                                                             "is served",
                                                             "is invalidated",
                                                             "acknowledges",
                                                             "has its acknowledgement taken",
                                                             "is granted shared",
                                                             "is granted exclusive",
                                                             "takes its grant"};
    return fmt::format("node {} {}", rule / kinds, names[rule % kinds]);
  }

  std::string describe(const State& state) const {
    std::string text;
    for (const Node& node : state.of) {
      text += fmt::format("{}{}{} ", "ISE"[node.cache], unsigned(node.data),
                          node.request == 0   ? ""
                          : node.request == 1 ? " wants S"
                                              : " wants E");
      if (node.reply != no_reply) text += fmt::format("<{}{} ", " isx"[node.reply], unsigned(node.reply_data));
      if (node.acknowledges) text += fmt::format(">a{} ", unsigned(node.acknowledged_data));
      text += "| ";
    }
    const Directory& home = state.directory;
    return text + fmt::format("memory {}, written {}, serves {}{}", unsigned(home.memory), unsigned(home.written),
                              home.current == no_request ? "none" : fmt::format("{}", home.client - 1),
                              home.exclusive_granted ? ", exclusive" : "");
  }

 private:
  enum Kind : std::uint16_t {
    store_1,
    store_2,
    request_shared,
    request_exclusive,
    serve,
    send_invalidate,
    acknowledge,
    take_acknowledgement,
    send_shared,
    send_exclusive,
    take_grant,
    kinds
  };

  static void grant(Node& self, Directory& dir, Reply reply) {
    self.reply = reply & 3;
    self.reply_data = dir.memory;
    self.is_sharer = 1;
    dir.current = no_request;
    dir.client = 0;
  }

  bool bug_;
};

}  // namespace headway::murphi
