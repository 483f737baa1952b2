// SPDX-License-Identifier: BSD-3-Clause
/// The runtime's part of an element: requests to move, counts, and messages of later steps.
#pragma once

#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/am/scope.hpp>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headway {

template <class T>
class Collection;

namespace object {

class CollectionBase;

/// A message that waits in its element until its step is the current one.
struct DelayedMessage {
  std::uint32_t method;  // index among the methods with steps
  am::ScopeId scope;     // in which the message was sent
  std::int64_t step;
  std::uint64_t bytes;               // of the arguments
  std::vector<std::uint64_t> words;  // the arguments, in the format of a message

  template <class Archive>
  void serialize(Archive& archive) {
    archive(method, scope, step, bytes, words);
  }
};

/// Counts the messages of one trigger, or of one method that a coroutine awaits, step by step.
struct StepCounter {
  std::int64_t step = 0;       // the current step
  std::uint64_t expected = 0;  // messages of the current step
  std::uint64_t handled = 0;   // messages of the current step, <= expected
  bool open = false;           // `expected` is set, and messages of the current step are handled
  std::vector<DelayedMessage> delayed;
  std::optional<Promise<>> waiter;  // of a coroutine; an element with a living coroutine does not move

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, expected, handled, open, delayed);
  }
};

/// State that few elements have.
struct RareState {
  std::vector<StepCounter> counters;
  std::unordered_map<std::uint64_t, std::uint32_t> contributions;  // to reductions over sections, by section number

  template <class Archive>
  void serialize(Archive& archive) {
    archive(counters, contributions);
  }
};

/// Values of ElementState::target that are no PE: the element does not move; it is to be erased.
inline constexpr std::uint32_t no_target = ~std::uint32_t(0), erase_target = no_target - 1;
/// Value of ElementState::reductions: the element was inserted after the last done_inserting().
inline constexpr std::uint32_t not_counted = ~std::uint32_t(0);
/// Matches no element's number: a collection has fewer elements.
inline constexpr std::uint32_t no_number = ~std::uint32_t(0);

struct ElementState {
  CollectionBase* collection = nullptr;
  std::uint32_t number = no_number;  // in a dense collection: the address while target == no_target
  std::uint32_t target = no_target;  // the PE to move to, or erase_target
  std::uint32_t position = 0;        // among the elements of this PE
  std::uint32_t coroutines = 0;      // of the element's methods, alive
  std::uint32_t broadcasts = 0;      // number of the next broadcast that the element runs
  std::uint32_t reductions = 0;      // contributions so far
  double load_s = 0;                 // time in its methods since the last balance
  std::unique_ptr<RareState> rare;
};

/// An element of any class. The collection moves it to other PEs and destroys it.
class ElementBase {
 public:
  ElementBase(const ElementBase&) = delete;
  ElementBase& operator=(const ElementBase&) = delete;

 protected:
  ElementBase() = default;
  ~ElementBase() = default;

  ElementState state_;

 private:
  friend class CollectionBase;
  template <class Address, class Homes>
  friend class Directory;
};

}  // namespace object

}  // namespace headway
