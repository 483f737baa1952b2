// SPDX-License-Identifier: BSD-3-Clause
#include "ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <support/checksum.hpp>

namespace seeds {

std::uint64_t key_of_bare(std::size_t episode, std::size_t channel, std::size_t destination, Content content) {
  return headway::testing::checksum(content, episode << 32 | channel << 16 | destination);
}

std::uint64_t key_of(const Program& program, const MessagePlan& planned) {
  if (has_header(program.channel(planned))) return planned.id;
  return key_of_bare(program.rounds[planned.round]->episode, planned.channel, planned.destination,
                     content_of(planned.id, planned.bytes));
}

namespace {

/// Memory for a message that finds no room and so opens a buffer, or two, or goes in parts. Serialized strings may be
/// several times as long as their content.
std::uint64_t spill_bytes_of(const Program& program, const MessagePlan& planned) {
  const std::size_t buffer = std::min(program.channel(planned).options.buffer_bytes, program.budget_bytes / 2);
  return 2 * std::max(buffer, headway::base::buffer_bytes_min) + 8 * (planned.bytes + 128);
}

/// The same for messages that the library sends by itself, of all PEs. A word of a memory, or a value of a collective
/// for, or from, each member, may be a message.
std::uint64_t spill_bytes_of_others(const Program& program) {
  std::uint64_t messages = 0, bytes = 0;
  for (const auto& line : program.teams.lines) {
    for (const auto& action : line.actions) {
      if (action.what != headway::testing::TeamAction::What::call) continue;
      const std::size_t members = line.size(program.pes);
      messages += 8 * members;
      bytes += 16 * members * sizeof(std::uint64_t) * (action.step.count + 32);
    }
  }
  for (const MemoryPlan& plan : program.memories) messages += 8 * (plan.elements + 1) * program.pes;
  return messages * program.budget_bytes + bytes;
}

class SerialRun {
 public:
  explicit SerialRun(const Program& program) : program_(program) {
    expectation_.phases.resize(program.phases);
    for (auto& phase : expectation_.phases) phase.spill_bytes.resize(program.pes);
    expectation_.epochs.resize(program.rounds.size());
    expectation_.digests.resize(program.pes);
  }

  Expectation run() {
    for (const Round* round : program_.rounds) {
      for (std::size_t pe = 0; pe < program_.pes; ++pe) {
        const std::size_t roots = program_.roots(*round, pe);
        for_each_part(*round, roots, [&](unsigned level, std::size_t first, std::size_t end) {
          for (std::size_t i = first; i < end; ++i) handle(program_.root(*round, pe, i, level));
        });
      }
    }
    for (const auto& phase : expectation_.phases) {
      for (const std::uint64_t bytes : phase.spill_bytes) {
        expectation_.spill_bytes_max = std::max(expectation_.spill_bytes_max, bytes);
      }
    }
    expectation_.spill_bytes_max += spill_bytes_of_others(program_);
    return std::move(expectation_);
  }

 private:
  void handle(const MessagePlan& planned) {
    auto& phase = expectation_.phases[program_.rounds[planned.round]->phase];
    ++phase.messages;
    for (unsigned level = 0; level <= planned.level; ++level) ++expectation_.epochs[planned.round][level];
    phase.spill_bytes[planned.source] += spill_bytes_of(program_, planned);
    expectation_.digests[planned.destination] += key_of(program_, planned);
    for (unsigned i = 0; i < planned.children; ++i) handle(program_.child(planned, i));
  }

  const Program& program_;
  Expectation expectation_;
};

}  // namespace

Expectation expect(const Program& program) { return SerialRun(program).run(); }

Oracle::Oracle(const Program& program)
    : program_(program),
      rounds_(program.rounds.size()),
      quiescing_(program.phases),
      quiesced_(program.phases),
      counted_(program.phases) {}

void Oracle::sends(std::uint64_t key) {
  ++unhandled_[key];
  ++unhandled_messages_;
  ++messages_;
}

void Oracle::handles(std::uint64_t key) {
  const auto found = unhandled_.find(key);
  if (found == unhandled_.end()) {
    throw Violation("a message was handled that nobody had sent, or not so often");
  }
  if (--found->second == 0) unhandled_.erase(found);
  --unhandled_messages_;
  settle();
}

void Oracle::has_sent(std::size_t round) {
  ++rounds_[round].sent;
  settle();
}

/// Called whenever a message may have been the last.
void Oracle::settle() {
  if (unhandled_messages_ != 0) return;
  for (RoundState& round : rounds_) round.settled |= round.sent == program_.pes;
}

void Oracle::leaves_quiesce(std::size_t phase) {
  if (quiesced_[phase]++ != 0) return;
  if (quiescing_[phase] != program_.pes) {
    throw Violation(fmt::format("quiesce() has returned though only {} PEs have called it", quiescing_[phase]));
  }
  if (unhandled_messages_ != 0) {
    throw Violation(
        fmt::format("quiesce() has returned too early: {} messages are not handled yet", unhandled_messages_));
  }
}

void Oracle::counts_in_quiesce(std::size_t phase, std::uint64_t messages) {
  if (!counted_[phase]) counted_[phase] = messages;
  if (*counted_[phase] == messages) return;
  throw Violation(fmt::format("quiesce() has returned {} on one PE and {} on another", *counted_[phase], messages));
}

void Oracle::finds_epoch_done(std::size_t round, unsigned level) {
  const RoundState& state = rounds_[round];
  if (state.ended[level] != program_.pes) {
    throw Violation(fmt::format("an epoch is done though only {} PEs have ended it", state.ended[level]));
  }
  for (unsigned l = level; l <= epochs_max; ++l) {
    if (state.unhandled[l] == 0) continue;
    throw Violation(fmt::format("an epoch is done too early: {} messages are not handled yet", state.unhandled[l]));
  }
}

void Oracle::leaves_barrier(std::size_t round) {
  if (rounds_[round].in_barrier == program_.pes) return;
  throw Violation(fmt::format("barrier() has returned though only {} PEs have called it", rounds_[round].in_barrier));
}

}  // namespace seeds
