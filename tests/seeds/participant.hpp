// SPDX-License-Identifier: BSD-3-Clause
/// One PE's part of a random program.
#pragma once

#include <headway/am/epoch.hpp>
#include <headway/am/pe.hpp>
#include <memory>
#include <support/team_player.hpp>
#include <vector>

#include "channel.hpp"
#include "ledger.hpp"
#include "memories.hpp"

namespace seeds {

class Participant final : private Receiver {
 public:
  Participant(Pe& pe, const Program& program, const Expectation& expectation, Ledger& ledger);
  ~Participant() override;

  /// Throws Violation. Returns the sum of the keys of all messages that it has handled.
  std::uint64_t run();

 private:
  using Counts = std::vector<std::uint32_t>;
  /// What this PE keeps of a channel.
  struct Line {
    std::unique_ptr<Channel> channel;
    Counts sent, handled;  // in order, by pair()
    std::uint64_t messages_sent = 0, messages_handled = 0;
  };
  /// One that was begun and is not destroyed.
  struct OpenEpoch {
    const Round* round;
    unsigned level;
    std::unique_ptr<headway::Epoch> epoch;
  };

  void make_channels(const Episode& episode);
  void make_channel(const Episode& episode, std::size_t number);
  void leave_channels(const Episode& episode, std::size_t round);
  void run_round(const Round& round);
  void do_something_else(const Round& round);
  bool do_chore(const Round& round);
  bool destroy_something(const Round& round);
  void do_all_else(const Round& round);
  void send_roots(const Round& round);
  void send_roots(const Round& round, unsigned level, std::size_t first, std::size_t end);
  void begin_epoch(const Round& round);
  void end_epoch(const Round& round);
  void epoch_is_done(const Round& round, unsigned level, std::uint64_t handled);
  void check_epochs();
  void end_round(const Round& round);
  void wait_for_messages(const Round& round);
  void check_allreduce(const Round& round);
  void quiesce(const Round& round);
  void check_books(const Round& round);
  void check_statistics(const Line& line, const ChannelPlan& plan);

  void send(const MessagePlan& planned, bool from_handler, bool try_first);
  void check_shares() const;
  /// Messages of one source and destination that have an order among one another.
  std::size_t pair(const Round& round, unsigned level, std::size_t other, bool by_handler) const;
  void pass_time(std::size_t calls_max);
  bool now_and_then(unsigned every) { return every != 0 && random_.one_in(every); }

  Content arrives(std::size_t channel, std::optional<PeId> source, const Header& header) override;
  void arrived(std::size_t channel, const Header& header, bool unchanged) override;
  void arrived_bare(std::size_t channel, std::optional<PeId> source, Content content) override;
  void check_order(std::size_t channel, const Header& header);
  void enter_handler();
  template <class... T>
  [[noreturn]] void violated(const char* format, const T&... values) const;
  /// An event, for people.
  template <class... T>
  void note(const char* format, const T&... values) const;

  Pe& pe_;
  const Program& program_;
  const Expectation& expectation_;
  Ledger& ledger_;
  Random random_;  // for what changes nothing but the time
  std::size_t target_bytes_max_;
  std::vector<Line> lines_;
  std::vector<std::unique_ptr<Channel>> left_;  // all their messages are handled: this PE destroys them at any time
  std::size_t chores_done_ = 0;                 // of the round
  headway::testing::TeamPlayer teams_;
  Memories memories_;
  std::vector<OpenEpoch> open_, ended_;  // the innermost last; in this phase
  std::vector<unsigned> begun_;          // epochs, by round
  std::size_t continuations_left_ = 0;
  std::size_t episode_ = 0, phase_ = 0;
  std::uint64_t digest_ = 0;
  bool in_handler_ = false, deferring_ = false;
};

}  // namespace seeds
