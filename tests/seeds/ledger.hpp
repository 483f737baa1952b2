// SPDX-License-Identifier: BSD-3-Clause
/// The books of a run: the messages sent and handled, and the required order of events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "message.hpp"
#include "program.hpp"

namespace seeds {

/// The library broke a promise.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The key of a message: its number, or its content where it has no number.
std::uint64_t key_of(const Program& program, const MessagePlan& planned);
std::uint64_t key_of_bare(std::size_t episode, std::size_t channel, std::size_t destination, Content content);

/// The expected results of a program, from a serial execution without the library.
struct Expectation {
  struct Phase {
    std::uint64_t messages = 0;
    std::vector<std::uint64_t> spill_bytes;  // by PE: its handlers' frames, were each message in one of its own
  };
  using ByLevel = std::array<std::uint64_t, epochs_max + 1>;
  std::vector<Phase> phases;
  std::vector<ByLevel> epochs;         // by round: messages in so many epochs, or more
  std::vector<std::uint64_t> digests;  // by PE: the sum of the keys of all that it handles
  std::uint64_t spill_bytes_max = 0;
};
Expectation expect(const Program& program);

/// What PEs tell of themselves. This one believes them.
class Ledger {
 public:
  Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  virtual ~Ledger() = default;

  bool talks = false;  // PEs print all that they do

  virtual void sends(std::uint64_t /*key*/) {}
  virtual void handles(std::uint64_t /*key*/) {}
  /// Messages that lie in epochs, and say so.
  virtual void sends_in_epoch(std::size_t /*round*/, unsigned /*level*/) {}
  virtual void handles_in_epoch(std::size_t /*round*/, unsigned /*level*/) {}
  /// The main program has sent its messages of a round.
  virtual void has_sent(std::size_t /*round*/) {}
  /// Whether every PE has, and all messages there were then have been handled.
  virtual bool is_settled(std::size_t /*round*/) const { return true; }
  virtual void enters_quiesce(std::size_t /*phase*/) {}
  virtual void leaves_quiesce(std::size_t /*phase*/) {}
  /// The count that it returned.
  virtual void counts_in_quiesce(std::size_t /*phase*/, std::uint64_t /*messages*/) {}
  /// An epoch, by how many it lies in, itself included.
  virtual void ends_epoch(std::size_t /*round*/, unsigned /*level*/) {}
  virtual void finds_epoch_done(std::size_t /*round*/, unsigned /*level*/) {}
  virtual void enters_barrier(std::size_t /*round*/) {}
  virtual void leaves_barrier(std::size_t /*round*/) {}
};

/// For PEs that share all memory and run one at a time: throws Violation for what may not be.
class Oracle final : public Ledger {
 public:
  explicit Oracle(const Program& program);

  void sends(std::uint64_t key) override;
  void handles(std::uint64_t key) override;
  void has_sent(std::size_t round) override;
  bool is_settled(std::size_t round) const override { return rounds_[round].settled; }
  void enters_quiesce(std::size_t phase) override { ++quiescing_[phase]; }
  void leaves_quiesce(std::size_t phase) override;
  void counts_in_quiesce(std::size_t phase, std::uint64_t messages) override;
  void sends_in_epoch(std::size_t round, unsigned level) override { ++rounds_[round].unhandled[level]; }
  void handles_in_epoch(std::size_t round, unsigned level) override { --rounds_[round].unhandled[level]; }
  void ends_epoch(std::size_t round, unsigned level) override { ++rounds_[round].ended[level]; }
  void finds_epoch_done(std::size_t round, unsigned level) override;
  void enters_barrier(std::size_t round) override { ++rounds_[round].in_barrier; }
  void leaves_barrier(std::size_t round) override;

  std::uint64_t messages() const { return messages_; }

 private:
  struct RoundState {
    std::size_t sent = 0, in_barrier = 0;
    bool settled = false;
    Expectation::ByLevel unhandled{}, ended{};  // messages, PEs; by level
  };
  void settle();

  const Program& program_;
  std::unordered_map<std::uint64_t, std::uint32_t> unhandled_;  // sent, by key: how many
  std::uint64_t unhandled_messages_ = 0, messages_ = 0;
  std::vector<RoundState> rounds_;
  std::vector<std::size_t> quiescing_, quiesced_;      // PEs, by phase
  std::vector<std::optional<std::uint64_t>> counted_;  // messages, by phase: the count of the first PE
};

}  // namespace seeds
