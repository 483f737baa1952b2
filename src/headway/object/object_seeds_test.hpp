// SPDX-License-Identifier: BSD-3-Clause
/// The elements of object_seeds_test.cpp, their messages, and the ledger that all PEs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/object/object.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headway::object_seeds {

[[noreturn]] inline void wrong(const std::string& what) { throw std::logic_error(what); }
inline void check(bool right, const char* what) {
  if (!right) wrong(what);
}

/// A message. Its number determines its content and the messages that it causes.
struct Message {
  std::uint64_t id;
  std::uint32_t depth;  // generations of messages that may follow

  Random random(std::uint64_t what) const { return Random(id * 8 + what); }
  std::size_t target(std::size_t elements) const { return random(0).below(elements); }
  std::size_t values() const { return random(1).one_in(60) ? random(1).between(3'000, 12'000) : random(1).size(0, 60); }
  std::uint64_t kind() const { return id % 5; }
  std::vector<Message> children() const {
    std::vector<Message> children(depth == 0 ? 0 : random(2).below(3));
    for (std::size_t i = 0; i < children.size(); ++i) {
      children[i] = {Random(id + i + 1).next() ^ (std::uint64_t(i) << 60), depth - 1};
    }
    return children;
  }
};

/// The handled messages of all PEs, which share the memory of this process.
struct Ledger {
  std::unordered_map<std::uint64_t, unsigned> handled;
  std::uint64_t sums = 0, sums_of_all = 0, answers = 0;
  std::vector<std::vector<std::uint64_t>> heard;  // by every element, after each phase
  std::vector<std::uint64_t> heard_by;            // messages counted in `heard`
  std::uint64_t moves_one_in = 2;                 // one message in this many makes its element move
  std::uint64_t moved = 0;
};
inline Ledger* ledger = nullptr;

class Cell : public Element<Cell, Index<1>> {
 public:
  Cell() = default;
  explicit Cell(std::uint64_t factor) : own_(factor * here()) {}

  void take(std::uint64_t id, std::uint32_t depth, std::span<const std::uint32_t> values) {
    handle({id, depth}, values);
  }
  void take_shared(std::uint64_t id, std::uint32_t depth, std::span<const std::uint32_t> values) {
    handle({id, depth}, values);
  }
  void take_other(std::uint64_t id, std::uint32_t depth, const std::vector<std::uint32_t>& values) {
    handle({id, depth}, values);
  }
  std::uint64_t ask(std::uint64_t id, std::uint32_t depth, std::span<const std::uint32_t> values) {
    handle({id, depth}, values);
    return id + here();
  }
  /// Waits for the answer of another element before it counts as handled.
  Task<> ponder(std::uint64_t id, std::uint32_t depth, std::vector<std::uint32_t> values) {
    may_move(id);
    const std::size_t other = (here() + id) % all().size();
    const std::uint64_t answer = co_await all()[int(other)].rpc<&Cell::plus_own>(id);
    check(answer == id + other * 3, "another element answered");
    handle({id, depth}, values);
  }
  std::uint64_t plus_own(std::uint64_t value) {
    may_move(value);
    return value + own_;
  }
  std::uint64_t own() const { return own_; }

  void shout(std::uint64_t id) {
    heard_.push_back(id);
    may_move(id + here());
  }
  void member_shout(std::uint64_t id) {
    member_heard_ += id;
    may_move(id + here());
  }
  void give(std::uint64_t round) {
    may_move(round + here());
    contribute(std::uint64_t(here()), std::plus<>(), to<&Cell::sum>(all()[int(round % all().size())]));
    contribute(std::uint64_t(1), std::plus<>(), to<&Cell::sum_of_all>(all()));
  }
  void sum(std::uint64_t value) {
    check(value == all().size() * (all().size() - 1) / 2, "a sum is wrong");
    ++ledger->sums;
  }
  void sum_of_all(std::uint64_t value) {
    check(value == all().size(), "a count of elements is wrong");
    ++ledger->sums_of_all;
  }

  // Steps of a trigger, and steps that a coroutine awaits.
  void kick(int first, int limit) { send_ghosts(first, limit); }
  void ghost(int step, int limit) {
    check(step == steps_, "a message of another step is let in");
    limit_ = limit;
    may_move(std::uint64_t(step) * 77 + here());
  }
  std::size_t neighbours() const { return 2; }
  void relax(int step) {
    check(step == steps_++, "a step comes twice, or not at all");
    if (steps_ < limit_) send_ghosts(steps_, limit_);
    may_move(std::uint64_t(step) * 99 + here());
  }
  void token(int step, std::uint64_t from) {
    check(step == walk_ && (from == beside(1) || from == beside(-1)), "a token of another step");
    ++tokens_;
  }
  Task<> walk(int first, int limit) {
    for (int step = first; step < limit; ++step) {
      for (const int side : {-1, 1}) all()[int(beside(side))].send<&Cell::token>(step, here());
      may_move(std::uint64_t(step) * 55 + here());
      const std::uint64_t before = tokens_;
      walk_ = step;
      co_await when<&Cell::token>(step, 2);
      check(tokens_ == before + 2, "when() goes on too early or too late");
    }
    walked_ = limit;
  }

  void arrived() {
    ++ledger->moved;
    check(own_ == here() * 3, "an element has come with another's state");
  }
  const std::vector<std::uint64_t>& heard() const { return heard_; }
  int steps() const { return steps_; }
  int walked() const { return walked_; }
  std::uint64_t member_heard() const { return member_heard_; }

  template <class A>
  void serialize(A& archive) {
    archive(own_, heard_, member_heard_, steps_, limit_, walk_, walked_, tokens_);
  }

  static constexpr auto aggregation =
      entries(entry<&Cell::take>{{.buffer_bytes = 2048}}, entry<&Cell::take_shared, &Cell::shout>{},
              entry<&Cell::ghost>{{.topology = grid(2)}});
  static constexpr auto triggers = headway::triggers(trigger<&Cell::relax, &Cell::ghost>(&Cell::neighbours));
  static constexpr auto awaited = headway::awaited<&Cell::token>;

  static void send(Collection<Cell>& cells, const Message& message) {
    const auto target = cells[int(message.target(cells.size()))];
    const std::vector<std::uint32_t> values(message.values(), std::uint32_t(message.id));
    switch (message.kind()) {
      case 0: return target.template send<&Cell::take>(message.id, message.depth, values);
      case 1: return target.template send<&Cell::take_shared>(message.id, message.depth, values);
      case 2: return target.template send<&Cell::take_other>(message.id, message.depth, values);
      case 3: return target.template send<&Cell::ponder>(message.id, message.depth, values);
      default: break;
    }
    target.template rpc<&Cell::ask>(message.id, message.depth, values)
        .then([id = message.id + message.target(cells.size())](std::uint64_t answer) {
          check(answer == id, "a call has another's answer");
          ++ledger->answers;
        });
  }

 private:
  std::uint64_t here() const { return std::uint64_t(index()[0]); }
  std::uint64_t beside(int side) const {
    return std::uint64_t(here() + all().size() + std::uint64_t(std::int64_t(side))) % all().size();
  }
  void send_ghosts(int step, int limit) {
    for (const int side : {-1, 1}) all()[int(beside(side))].send<&Cell::ghost>(step, limit);
  }
  void may_move(std::uint64_t what) {
    Random random(what * 31 + 7);
    if (random.one_in(ledger->moves_one_in)) migrate_to(random.below(pe().size()));
  }
  void handle(const Message& message, std::span<const std::uint32_t> values) {
    check(message.target(all().size()) == here(), "a message is at another element");
    check(values.size() == message.values() &&
              std::ranges::all_of(values, [&](auto v) { return v == std::uint32_t(message.id); }),
          "a message has another content");
    ++ledger->handled[message.id];
    may_move(message.id);
    for (const Message& child : message.children()) send(all(), child);
  }

  std::uint64_t own_ = 0;
  std::vector<std::uint64_t> heard_;
  std::uint64_t member_heard_ = 0;
  int steps_ = 0, limit_ = 0, walk_ = 0, walked_ = 0;
  std::uint64_t tokens_ = 0;
};

/// An element named by a text. The program inserts and erases it.
class Item : public Element<Item, Sparse<std::string>> {
 public:
  Item() = default;
  explicit Item(const std::string& text) : text_(text) {
    check(text == index(), "an item is made of another's argument");
  }
  void add(std::uint64_t value) {
    sum_ += value;
    may_move(value);
  }
  void add_typed(std::uint64_t value) { add(value); }
  void leave() { erase(); }
  void arrived() { check(text_ == index(), "an item has come with another's state"); }
  std::uint64_t sum() const { return sum_; }
  template <class A>
  void serialize(A& archive) {
    archive(text_, sum_);
  }
  static constexpr auto aggregation = entries(entry<&Item::add_typed>{});

 private:
  void may_move(std::uint64_t what) {
    Random random(what * 13 + 5);
    if (random.one_in(ledger->moves_one_in)) migrate_to(random.below(pe().size()));
  }
  std::string text_;
  std::uint64_t sum_ = 0;
};

}  // namespace headway::object_seeds
