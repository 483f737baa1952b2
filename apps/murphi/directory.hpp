// SPDX-License-Identifier: BSD-3-Clause
/// A directory protocol after DASH (Lenoski and others, 1992), of one line: a home with memory and the directory, and
/// clusters with one cache each. Owners answer requests for the home; sharers acknowledge invalidations to the writer.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model.hpp"

namespace headway::murphi {

template <std::size_t clusters>
class Directory {
 public:
  enum Cache : std::uint32_t { invalid, shared, exclusive };
  enum Waiting : std::uint32_t { nothing, read_reply, exclusive_reply, acknowledgements };
  enum Request : std::uint32_t { no_request, read, read_exclusive };
  enum Reply : std::uint32_t { no_reply, refused, data_shared, data_exclusive };
  enum Transfer : std::uint32_t { no_transfer, sharing_write_back, dirty_transfer };
  enum Kept : std::uint32_t { uncached, at_sharers, dirty };

  /// A channel holds one message. Clusters and values are 1, 2, ...; 0 is none.
  struct Cluster {
    std::uint32_t cache : 2, value : 2;
    std::uint32_t waiting : 2, is_outdated : 1;  // an invalidation came before the reply to a read
    std::uint32_t needed : 3, acknowledged : 3;  // invalidations
    std::uint32_t request : 2;                   // to the home
    std::uint32_t written_back : 2;              // to the home: the value
    std::uint32_t unused : 15;
    std::uint32_t transfer : 2, transfer_to : 3, transfer_value : 2;  // to the home, from the owner
    std::uint32_t forwarded : 2, forwarded_of : 3;                    // from the home
    std::uint32_t invalidated_by : 3;                                 // from the home
    std::uint32_t reply : 2, reply_value : 2, reply_needs : 3;        // from the home or the owner
    std::uint32_t unused_too : 10;
  };
  struct Home {
    std::uint32_t kept : 2, owner : 3;
    std::uint32_t sharers : 7;  // bit i: cluster i + 1
    std::uint32_t memory : 2, written : 2;
    std::uint32_t unused : 16;
  };
  struct State {
    std::array<Cluster, clusters> of;
    Home home;
  };
  static_assert(clusters >= 2 && clusters <= 7);

  /// With the bug, an invalidation that comes before the reply to a read is forgotten.
  explicit Directory(bool bug) : bug_(bug) {}

  template <class F>
  void for_each_initial(F f) const {
    State state{};
    state.home.memory = 1;
    state.home.written = 1;
    f(state);
  }

  template <class F>
  void for_each_successor(const State& state, F f) const {
    for (std::size_t i = 0; i < clusters; ++i) {
      const Cluster& cluster = state.of[i];
      const auto fire = [&](Kind kind, auto change) {
        State next = state;
        change(next, next.of[i], next.home);
        f(Rule(i * kinds + kind), next);
      };
      of_processor(cluster, fire);
      of_home(state, i, fire);
      of_cluster(state, i, fire);
    }
  }

  const char* violated(const State& state) const {
    std::size_t valid = 0, owners = 0;
    for (std::size_t i = 0; i < clusters; ++i) {
      const Cluster& cluster = state.of[i];
      valid += cluster.cache != invalid;
      owners += cluster.cache == exclusive;
      if (cluster.cache != invalid && cluster.value != state.home.written) return "a cache has old data";
      if (cluster.written_back != 0 && (state.home.kept != dirty || state.home.owner != i + 1))
        return "a cluster writes back a line of another";
    }
    if (owners > 0 && valid > 1) return "a cache has a copy beside an exclusive one";
    if (state.home.kept != dirty && state.home.memory != state.home.written) return "memory has old data";
    return nullptr;
  }

  std::string rule_name(Rule rule) const {
    static constexpr std::array<const char*, kinds> names = {"stores 1",
                                                             "stores 2",
                                                             "requests a copy",
                                                             "requests an exclusive copy",
                                                             "writes back",
                                                             "drops its copy",
                                                             "is served a copy",
                                                             "is served an exclusive copy",
                                                             "has its data written back",
                                                             "has its transfer noted",
                                                             "answers for the home",
                                                             "is invalidated",
                                                             "takes its reply",
                                                             "has all acknowledgements"};
    return fmt::format("cluster {} {}", rule / kinds + 1, names[rule % kinds]);
  }

  std::string describe(const State& state) const {
    std::string text;
    for (const Cluster& cluster : state.of) {
      text += fmt::format("{}{}{}", "ISE"[cluster.cache], unsigned(cluster.value), " rxa"[cluster.waiting]);
      if (cluster.reply != 0) text += fmt::format(" <{}{}", " nsx"[cluster.reply], unsigned(cluster.reply_value));
      if (cluster.invalidated_by != 0) text += fmt::format(" inv by {}", unsigned(cluster.invalidated_by));
      text += " | ";
    }
    return text + fmt::format("home {}{}, owner {}, written {}", "USD"[state.home.kept], unsigned(state.home.memory),
                              unsigned(state.home.owner), unsigned(state.home.written));
  }

 private:
  enum Kind : std::uint16_t {
    store_1,
    store_2,
    request_shared,
    request_exclusive,
    write_back,
    drop,
    serve_read,
    serve_exclusive,
    take_write_back,
    take_transfer,
    answer_forwarded,
    take_invalidation,
    take_reply,
    complete,
    kinds
  };

  template <class Fire>
  void of_processor(const Cluster& cluster, Fire fire) const {
    if (cluster.cache == exclusive) {
      fire(store_1, [](State&, Cluster& self, Home& home) { self.value = 1, home.written = 1; });
      fire(store_2, [](State&, Cluster& self, Home& home) { self.value = 2, home.written = 2; });
      if (cluster.written_back == 0) {
        fire(write_back, [](State&, Cluster& self, Home&) {
          self.written_back = self.value;
          self.cache = invalid, self.value = 0;
        });
      }
      return;
    }
    if (cluster.waiting != nothing) return;
    if (cluster.cache == invalid) {
      fire(request_shared, [](State&, Cluster& self, Home&) { self.request = read, self.waiting = read_reply; });
    } else {
      fire(drop, [](State&, Cluster& self, Home&) { self.cache = invalid, self.value = 0; });
    }
    fire(request_exclusive,
         [](State&, Cluster& self, Home&) { self.request = read_exclusive, self.waiting = exclusive_reply; });
  }

  template <class Fire>
  void of_home(const State& state, std::size_t i, Fire fire) const {
    const Cluster& cluster = state.of[i];
    const std::uint32_t me = std::uint32_t(i + 1) & 7;
    if (cluster.request != no_request && can_serve(state, i)) {
      fire(cluster.request == read ? serve_read : serve_exclusive, [me](State& next, Cluster& self, Home& dir) {
        const bool only_reads = self.request == read;
        if (dir.kept == dirty && dir.owner == me) {
          self.reply = refused;
        } else if (dir.kept == dirty) {
          Cluster& owner = next.of[dir.owner - 1u];
          owner.forwarded = self.request, owner.forwarded_of = me & 7;
        } else {
          self.reply = only_reads ? data_shared : data_exclusive;
          self.reply_value = dir.memory;
          if (only_reads)
            dir.kept = at_sharers, dir.sharers = (dir.sharers | 1u << (me - 1)) & 127;
          else
            invalidate_others(next, self, dir, me);
        }
        self.request = no_request;
      });
    }
    if (cluster.written_back != 0) {
      fire(take_write_back, [](State&, Cluster& self, Home& dir) {
        dir.memory = self.written_back;
        dir.kept = uncached, dir.owner = 0;
        self.written_back = 0;
      });
    }
    if (cluster.transfer != no_transfer) {
      fire(take_transfer, [me](State& next, Cluster& self, Home& dir) {
        if (self.transfer == sharing_write_back) {
          dir.kept = at_sharers, dir.owner = 0;
          dir.memory = self.transfer_value;
          dir.sharers = (1u << (me - 1) | 1u << (self.transfer_to - 1)) & 127;
        } else {
          dir.owner = self.transfer_to;
          Cluster& owner = next.of[self.transfer_to - 1u];
          owner.acknowledged = (owner.acknowledged + 1) & 7;
        }
        self.transfer = no_transfer, self.transfer_to = 0, self.transfer_value = 0;
      });
    }
  }

  template <class Fire>
  void of_cluster(const State& state, std::size_t i, Fire fire) const {
    const Cluster& cluster = state.of[i];
    if (cluster.forwarded != no_request && state.of[cluster.forwarded_of - 1u].reply == no_reply &&
        (cluster.cache != exclusive || cluster.transfer == no_transfer)) {
      fire(answer_forwarded, [](State& next, Cluster& self, Home&) {
        Cluster& client = next.of[self.forwarded_of - 1u];
        if (self.cache != exclusive) {
          client.reply = refused;
        } else if (self.forwarded == read) {
          client.reply = data_shared, client.reply_value = self.value;
          self.transfer = sharing_write_back, self.transfer_value = self.value;
          self.cache = shared;
        } else {
          client.reply = data_exclusive, client.reply_value = self.value, client.reply_needs = 1;
          self.transfer = dirty_transfer;
          self.cache = invalid, self.value = 0;
        }
        if (self.transfer != no_transfer && self.transfer_to == 0) self.transfer_to = self.forwarded_of;
        self.forwarded = no_request, self.forwarded_of = 0;
      });
    }
    if (cluster.invalidated_by != 0) {
      fire(take_invalidation, [this](State& next, Cluster& self, Home&) {
        Cluster& writer = next.of[self.invalidated_by - 1u];
        writer.acknowledged = (writer.acknowledged + 1) & 7;
        if (self.cache == shared) self.cache = invalid, self.value = 0;
        if (self.waiting == read_reply && !bug_) self.is_outdated = 1;
        self.invalidated_by = 0;
      });
    }
    if (cluster.reply != no_reply) {
      fire(take_reply, [](State&, Cluster& self, Home&) {
        self.waiting = nothing;
        if (self.reply == data_shared && !self.is_outdated) self.cache = shared, self.value = self.reply_value;
        if (self.reply == data_exclusive) {
          self.waiting = acknowledgements;
          self.cache = invalid, self.value = self.reply_value;
          self.needed = self.reply_needs;
        }
        self.is_outdated = 0;
        self.reply = no_reply, self.reply_value = 0, self.reply_needs = 0;
      });
    }
    if (cluster.waiting == acknowledgements && cluster.acknowledged == cluster.needed) {
      fire(complete, [](State&, Cluster& self, Home&) {
        self.cache = exclusive;
        self.waiting = nothing;
        self.needed = 0, self.acknowledged = 0;
      });
    }
  }

  /// Whether the channels that the home needs for the request are empty.
  bool can_serve(const State& state, std::size_t i) const {
    const Home& home = state.home;
    if (home.kept == dirty && home.owner != i + 1) return state.of[home.owner - 1u].forwarded == no_request;
    if (state.of[i].request == read_exclusive && home.kept == at_sharers) {
      for (std::size_t other = 0; other < clusters; ++other) {
        if (other != i && (home.sharers >> other & 1) != 0 && state.of[other].invalidated_by != 0) return false;
      }
    }
    return true;
  }

  static void invalidate_others(State& next, Cluster& self, Home& dir, std::uint32_t me) {
    for (std::size_t other = 0; other < clusters; ++other) {
      if (other + 1 == me || (dir.sharers >> other & 1) == 0) continue;
      next.of[other].invalidated_by = me & 7;
      self.reply_needs = (self.reply_needs + 1) & 7;
    }
    dir.kept = dirty, dir.owner = me & 7, dir.sharers = 0;
  }

  bool bug_;
};

}  // namespace headway::murphi
