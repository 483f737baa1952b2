// SPDX-License-Identifier: BSD-3-Clause
/// The search of all states on all PEs (Stern and Dill, 1997): each state has an owner, given by its hash. The owner
/// stores it, and sends its successors to their owners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <support/work.hpp>
#include <vector>

#include "model.hpp"
#include "table.hpp"

namespace headway::murphi {

template <IsModel Model>
class Search {
 public:
  using State = typename Model::State;
  static constexpr std::size_t bytes = sizeof(State);
  struct Message {
    std::uint32_t parent;
    Rule rule;
    Packed<bytes> state;
  };
  struct Step {
    Packed<bytes> state;
    Link link;  // how it came about
  };

  /// Collective.
  Search(Pe& pe, const Model& model, const Limits& limits, const AggregatorOptions& options, const apps::Work& work)
      : pe_(pe), work_(work), model_(model), table_(limits), arrivals_(table_), messages_(pe, options) {
    messages_.on([this](PeId source, const Message& message) {
      if (checks_) return look_up(source, message);
      ++arrived_;
      arrivals_.push(hash_of(message.state), message.state,
                     {message.parent, std::uint16_t(std::size_t(source)), message.rule}, added());
    });
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Level by level, so that links lead to initial states in the fewest steps. Ends after the first level with a state
  /// that violates an invariant. Collective.
  void run_by_levels() {
    start();
    for (;;) {
      pe_.quiesce();
      arrivals_.drain(added());
      const std::uint64_t end = table_.size();  // before any message of the next level is handled
      const Sums sums = allreduce(pe_, Sums{sent_, arrived_, end - expanded_, violations_}, add);
      if (sums.found == 0) break;
      level_begins_.push_back(expanded_);
      violated_ = sums.violations != 0;
      if (violated_) break;
      while (expanded_ < end) expand_next();
    }
  }

  /// Expands states in any order, until each PE has been without work twice, with no message sent in between (Mattern's
  /// four counters). Collective.
  void run_freely() {
    start();
    Sums last{};
    for (;;) {
      work();
      auto wave = allreduce_async(pe_, Sums{sent_, arrived_, 0, violations_}, add);
      while (!wave.ready()) {
        pe_.engine().wait_until([&] { return wave.ready() || has_work(); }, report::Phase::future);
        work();
      }
      const Sums sums = wave.get();
      violated_ = sums.violations != 0;
      if (violated_ || (sums.sent == sums.arrived && sums == last)) break;
      last = sums;
    }
    pe_.quiesce();
    arrivals_.drain(added());
  }

  bool violated() const { return violated_; }
  std::uint64_t levels() const { return level_begins_.size(); }
  const StateTable<bytes>& table() const { return table_; }
  std::uint64_t rules() const { return rules_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t kept() const { return kept_; }  // of this PE's own successors and initial states: not sent
  std::uint64_t violations() const { return violations_; }
  const Aggregator<Message>& messages() const { return messages_; }

  /// Of the least state that violates an invariant, from an initial state on. Collective.
  std::vector<Step> counterexample() {
    struct Found {
      Packed<bytes> state;
      std::uint32_t pe, index;
      bool is_there;
    };
    Found found{{}, std::uint32_t(pe_.id()), 0, false};
    for (std::uint64_t i = 0; i < table_.size() && violations_ > 0; ++i) {
      const Packed<bytes>& state = table_.state(i);
      if (model_.violated(unpack<State>(state)) == nullptr) continue;
      if (!found.is_there || state < found.state) found.state = state, found.index = std::uint32_t(i);
      found.is_there = true;
    }
    found = allreduce(pe_, found, [](const Found& a, const Found& b) {
      return !b.is_there || (a.is_there && a.state < b.state) ? a : b;
    });
    std::vector<Step> steps;
    for (std::uint32_t owner = found.pe, index = found.index;;) {
      Step step{};
      if (pe_.id() == owner) step = {table_.state(index), table_.link(index)};
      step = broadcast(pe_, step, owner);
      steps.push_back(step);
      if (step.link.parent == Link::none) break;
      owner = step.link.pe, index = step.link.parent;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  /// Changes a bit of each of up to `count` states, to test the check.
  void spoil(std::uint64_t count) {
    for (std::uint64_t i = 0; i < std::min(count, table_.size()); ++i) table_.state(i)[0] ^= std::byte(1);
  }

  /// Returns the number of errors on this PE. Each state must be stored once, by its owner, and have come from where
  /// its link says; all successors of expanded states must be stored, by levels at most one level later. Collective.
  std::uint64_t check() {
    errors_ = 0;
    has_come_.assign(table_.size(), 0);
    checks_ = true;
    pe_.quiesce();  // from here on messages are looked up
    model_.for_each_initial([&](const State& state) {
      const std::uint64_t hash = hash_of(pack(state));
      if (owner_of(hash, pe_.size()) != pe_.id()) return;
      const std::uint32_t index = table_.find(hash, pack(state));
      if (index != Link::none && table_.link(index) == Link{} && level_of(index) == 0)
        ++has_come_[index];
      else
        ++errors_;
    });
    for (std::uint64_t i = 0; i < table_.size(); ++i) {
      const std::uint64_t hash = hash_of(table_.state(i));
      errors_ += owner_of(hash, pe_.size()) != pe_.id() || table_.find(hash, table_.state(i)) != i;
    }
    std::uint64_t next = 0;
    for (level_ = 0; level_ < std::max<std::uint64_t>(levels(), 1); ++level_) {
      const std::uint64_t end =
          level_ + 1 < levels() ? level_begins_[level_ + 1] : expanded_;  // of the last level none may be expanded
      for (; next < end; ++next) {
        model_.for_each_successor(unpack<State>(table_.state(next)), [&](Rule rule, const State& successor) {
          const Message message{std::uint32_t(next), rule, pack(successor)};
          const std::size_t owner = owner_of(hash_of(message.state), pe_.size());
          owner == pe_.id() ? look_up(owner, message) : messages_.send(owner, message);
        });
      }
      pe_.quiesce();
    }
    for (const std::uint8_t times : has_come_) errors_ += times != 1;
    return errors_;
  }

  /// Of a counterexample that is none, or not one of the shortest.
  std::uint64_t check(const std::vector<Step>& steps) const {
    std::uint64_t errors = levels() != 0 && steps.size() != levels();
    bool is_initial = false;
    model_.for_each_initial([&](const State& state) { is_initial |= pack(state) == steps.front().state; });
    errors += !is_initial;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      bool follows = false;
      model_.for_each_successor(unpack<State>(steps[i - 1].state), [&](Rule rule, const State& next) {
        follows |= rule == steps[i].link.rule && pack(next) == steps[i].state;
      });
      errors += !follows;
    }
    return errors + (model_.violated(unpack<State>(steps.back().state)) == nullptr);
  }

 private:
  /// Of all PEs.
  struct Sums {
    std::uint64_t sent, arrived, found, violations;
    bool operator==(const Sums&) const = default;
  };
  static constexpr auto add = [](const Sums& a, const Sums& b) {
    return Sums{a.sent + b.sent, a.arrived + b.arrived, a.found + b.found, a.violations + b.violations};
  };

  auto added() {
    return
        [this](std::uint64_t index) { violations_ += model_.violated(unpack<State>(table_.state(index))) != nullptr; };
  }

  /// Of a state of the level that is being checked.
  void look_up(std::size_t source, const Message& message) {
    const std::uint32_t index = table_.find(hash_of(message.state), message.state);
    if (index == Link::none || level_of(index) > level_ + 1) {
      ++errors_;
      return;
    }
    const Link from{message.parent, std::uint16_t(source), message.rule};
    if (table_.link(index) == from && (levels() == 0 || level_of(index) == level_ + 1)) ++has_come_[index];
  }

  void start() {
    model_.for_each_initial([&](const State& state) {
      const std::uint64_t hash = hash_of(pack(state));
      if (owner_of(hash, pe_.size()) != pe_.id()) return;
      ++kept_;
      arrivals_.push(hash, pack(state), {}, added());
    });
    arrivals_.drain(added());
  }

  void expand_next() {
    const auto parent = std::uint32_t(expanded_++);
    const std::uint64_t rules_before = rules_;
    model_.for_each_successor(unpack<State>(table_.state(parent)), [&](Rule rule, const State& next) {
      ++rules_;
      const Packed<bytes> state = pack(next);
      const std::uint64_t hash = hash_of(state);
      const std::size_t owner = owner_of(hash, pe_.size());
      if (owner == pe_.id()) {
        ++kept_;
        arrivals_.push(hash, state, {parent, std::uint16_t(owner), rule}, added());
      } else {
        ++sent_;
        messages_.send(owner, {parent, rule, state});
      }
    });
    work_.done(double(rules_ - rules_before));
    if (expanded_ % 64 == 0) pe_.engine().poll_some();  // keeps open buffers, which work() posts
  }

  bool has_work() const { return (expanded_ < table_.size() && violations_ == 0) || !arrivals_.empty(); }
  void work() {
    while (has_work()) {
      while (expanded_ < table_.size() && violations_ == 0) expand_next();
      arrivals_.drain(added());
    }
    messages_.flush();
  }

  /// 0 where the search was not by levels.
  std::uint32_t level_of(std::uint64_t index) const {
    const auto after = std::upper_bound(level_begins_.begin(), level_begins_.end(), index);
    return after == level_begins_.begin() ? 0 : std::uint32_t(after - level_begins_.begin() - 1);
  }

  Pe& pe_;
  apps::Work work_;  // a rule
  const Model& model_;
  StateTable<bytes> table_;
  Arrivals<bytes> arrivals_;
  Aggregator<Message> messages_;
  std::vector<std::uint64_t> level_begins_;  // this PE's first state of each level
  bool violated_ = false;                    // on any PE
  std::uint64_t expanded_ = 0;               // states, the first in the table
  std::uint64_t rules_ = 0, sent_ = 0, kept_ = 0, arrived_ = 0, violations_ = 0;
  // Of check().
  bool checks_ = false;
  std::uint64_t level_ = 0, errors_ = 0;
  std::vector<std::uint8_t> has_come_;  // along its link
};

}  // namespace headway::murphi
