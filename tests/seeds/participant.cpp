// SPDX-License-Identifier: BSD-3-Clause
#include "participant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <headway/aggregate/defaults.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/am/engine.hpp>
#include <headway/collective/allreduce.hpp>

namespace seeds {
namespace {

constexpr std::size_t words_max = 300;
using Words = std::array<std::uint64_t, words_max>;

/// A PE's contribution to an allreduce, and its expected result.
template <std::size_t n>
std::array<std::uint64_t, n> words_of(const Round& round, std::size_t pe) {
  std::array<std::uint64_t, n> words{};
  for (std::size_t i = 0; i < n; ++i) words[i] = mix(round.number << 32 | pe, i);
  return words;
}

template <std::size_t n>
std::array<std::uint64_t, n> add(std::array<std::uint64_t, n> a, const std::array<std::uint64_t, n>& b) {
  for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
  return a;
}

template <std::size_t n>
bool allreduce_is_right(Pe& pe, const Round& round) {
  const auto result = headway::allreduce(pe, words_of<n>(round, pe.id()), add<n>);
  std::array<std::uint64_t, n> expected{};
  for (std::size_t i = 0; i < pe.size(); ++i) expected = add<n>(expected, words_of<n>(round, i));
  return result == expected;
}

/// A quarter of the budget, and one frame more for each number of hops that may be left.
std::size_t target_bytes_max(const Program& program, const headway::transport::Endpoint& endpoint) {
  const std::size_t pes_per_process = endpoint.host_map().pes_per_process;
  std::size_t hops_max = 1, frame_max = std::max(program.budget_bytes / 16, headway::base::buffer_bytes_min);
  auto add = [&](const headway::AggregatorOptions& options) {
    const headway::AggregatorOptions effective = headway::aggregate::resolve(
        {.buffer_bytes = options.buffer_bytes, .topology = options.topology}, {.pes = program.pes,
                                                                               .pes_per_process = pes_per_process,
                                                                               .hosts = endpoint.host_map().host_firsts,
                                                                               .budget_bytes = program.budget_bytes,
                                                                               .costs = endpoint.costs()});
    const auto extents = headway::aggregate::route_extents(program.pes, effective.topology, pes_per_process,
                                                           endpoint.host_map().host_firsts);
    frame_max = std::max(frame_max, effective.buffer_bytes);
    hops_max = std::max(hops_max, extents.size());
  };
  add({});  // the PE's aggregator of calls
  for (const Episode& episode : program.episodes) {
    for (const ChannelPlan& plan : episode.channels) add(plan.options);
  }
  for (const MemoryPlan& plan : program.memories) add(plan.options);
  return program.budget_bytes / 4 + hops_max * std::bit_ceil(frame_max);
}

}  // namespace

Participant::Participant(Pe& pe, const Program& program, const Expectation& expectation, Ledger& ledger)
    : pe_(pe),
      program_(program),
      expectation_(expectation),
      ledger_(ledger),
      random_(mix(program.seed, 0xbe00 + pe.id())),
      target_bytes_max_(target_bytes_max(program, pe.engine().endpoint())),
      teams_(pe, program.teams),
      memories_(pe, program),
      begun_(program.rounds.size()) {
  set_receiver(pe, this);
}

Participant::~Participant() { set_receiver(pe_, nullptr); }

template <class... T>
void Participant::violated(const char* format, const T&... values) const {
  throw Violation(fmt::format(fmt::runtime(format), values...));
}

template <class... T>
void Participant::note(const char* format, const T&... values) const {
  if (!ledger_.talks) return;
  fmt::print("PE {} {}\n", pe_.id().value, fmt::format(fmt::runtime(format), values...));
}

std::uint64_t Participant::run() {
  for (const Episode& episode : program_.episodes) {
    make_channels(episode);
    for (const Round& round : episode.rounds) run_round(round);
    lines_.clear();
    ++episode_;
  }
  left_.clear();
  return digest_;
}

/// PEs are at different places meanwhile: messages arrive for aggregators that do not exist yet, or have no handler.
/// Aggregators of calls always have one, and it may send on through all the others.
void Participant::make_channels(const Episode& episode) {
  const bool may_wait = std::ranges::none_of(episode.channels, [](const ChannelPlan& plan) {
    return plan.kind == Kind::calls || plan.kind == Kind::default_calls || plan.kind == Kind::fixed_calls;
  });
  lines_.resize(episode.channels.size());
  for (std::size_t number = 0; number < lines_.size(); ++number) {
    if (episode.channels[number].first_round != 0) continue;
    if (may_wait) pass_time(20);
    make_channel(episode, number);
  }
  if (may_wait) pass_time(20);
  for (Line& line : lines_) {
    if (line.channel) line.channel->listen();
  }
}

void Participant::make_channel(const Episode& episode, std::size_t number) {
  Line& line = lines_[number];
  line.channel = seeds::make_channel(pe_, episode.channels[number], number, *this);
  line.sent.resize(2 * pe_.size() * (1 + epochs_max * episode.rounds.size()));
  line.handled.resize(line.sent.size());
}

/// Closes channels after their last round, by its number in the episode: half are destroyed at once, the others later.
void Participant::leave_channels(const Episode& episode, std::size_t round) {
  for (std::size_t number = 0; number < lines_.size(); ++number) {
    const bool is_last = round + 1 == episode.rounds.size() || episode.channels[number].last_round == round;
    std::unique_ptr<Channel>& channel = lines_[number].channel;
    if (!is_last || !channel) continue;
    if (random_.one_in(2))
      channel.reset();
    else
      left_.push_back(std::move(channel));
  }
}

void Participant::pass_time(std::size_t calls_max) {
  if (!random_.one_in(4)) return;
  for (std::size_t calls = random_.size(0, calls_max); calls > 0; --calls) pe_.progress();
}

// --- rounds

void Participant::run_round(const Round& round) {
  note("begins round {}", round.number);
  chores_done_ = 0;
  send_roots(round);
  do_all_else(round);
  ledger_.has_sent(round.number);
  end_round(round);
}

void Participant::send_roots(const Round& round) {
  for_each_part(round, program_.roots(round, pe_.id()), [&](unsigned level, std::size_t first, std::size_t end) {
    if (level > open_.size()) begin_epoch(round);
    if (level < open_.size()) end_epoch(round);
    send_roots(round, level, first, end);
  });
}

void Participant::send_roots(const Round& round, unsigned level, std::size_t first, std::size_t end) {
  std::optional<headway::DeferHandlers> guard;
  for (std::size_t i = first; i < end; ++i) {
    if (now_and_then(round.defer_every)) {
      if (guard) {
        deferring_ = false;
        guard.reset();
      } else {
        guard.emplace(pe_);
        deferring_ = true;
      }
    }
    send(program_.root(round, pe_.id(), i, level), false, now_and_then(round.try_every));
    if (now_and_then(round.progress_every)) pe_.progress();
    if (now_and_then(round.flush_every)) {
      if (const auto& channel = lines_[random_.below(lines_.size())].channel) channel->flush();
    }
    if (level == 0 && !deferring_ && random_.one_in(4)) do_something_else(round);
  }
  deferring_ = false;
}

// --- besides messages

/// One of what this round has besides messages. Each PE has an order of its own.
void Participant::do_something_else(const Round& round) {
  switch (random_.below(4)) {
    case 0: do_chore(round); return;
    case 1: destroy_something(round); return;
    case 2: teams_.take_one(random_, round.phase); return;
    default: memories_.take_one(round, random_);
  }
}

bool Participant::do_chore(const Round& round) {
  if (chores_done_ == round.chores.size()) return false;
  const Chore& chore = round.chores[chores_done_++];
  switch (chore.what) {
    case Chore::What::destroy_array: memories_.destroy_array(chore.index); break;
    case Chore::What::make_memory: memories_.make(chore.index); break;
    case Chore::What::make_channel:
      make_channel(program_.episodes[episode_], chore.index);
      lines_[chore.index].channel->listen();
  }
  return true;
}

bool Participant::destroy_something(const Round& round) {
  if (left_.empty()) return memories_.destroy_one(round);
  std::swap(left_[random_.below(left_.size())], left_.back());
  left_.pop_back();
  return true;
}

/// All of it, but for what may be destroyed in a later round.
void Participant::do_all_else(const Round& round) {
  for (bool any = true; any;) {
    any = do_chore(round);
    any |= teams_.take_one(random_, round.phase);
    any |= memories_.take_one(round, random_);
    if (any) pass_time(20);
  }
}

void Participant::begin_epoch(const Round& round) {
  auto epoch = std::make_unique<headway::Epoch>(pe_);
  open_.push_back({&round, unsigned(open_.size() + 1), std::move(epoch)});
  begun_[round.number] = std::max(begun_[round.number], open_.back().level);
  note("begins epoch {} of round {}", open_.back().level, round.number);
}

void Participant::end_epoch(const Round& round) {
  OpenEpoch open = std::move(open_.back());
  open_.pop_back();
  note("ends epoch {} of round {}", open.level, round.number);
  ledger_.ends_epoch(round.number, open.level);
  switch (round.epochs[open.level - 1]) {
    case EpochEnd::wait: return epoch_is_done(round, open.level, open.epoch->wait());
    case EpochEnd::close: open.epoch->close(); break;
    case EpochEnd::then:
      ++continuations_left_;
      open.epoch->then([this, &round, level = open.level](std::uint64_t handled) {
        enter_handler();
        epoch_is_done(round, level, handled);
        --continuations_left_;
        in_handler_ = false;
      });
      break;
    case EpochEnd::destroy: return;
  }
  ended_.push_back(std::move(open));
}

void Participant::epoch_is_done(const Round& round, unsigned level, std::uint64_t handled) {
  note("finds epoch {} of round {} done", level, round.number);
  ledger_.finds_epoch_done(round.number, level);
  const std::uint64_t messages = expectation_.epochs[round.number][level];
  if (handled != messages) violated("an epoch counts {} messages, but {} were handled", handled, messages);
}

/// All that were ended are done.
void Participant::check_epochs() {
  for (const OpenEpoch& ended : ended_) {
    if (!ended.epoch->done()) violated("an epoch is not done behind quiesce()");
    epoch_is_done(*ended.round, ended.level, ended.epoch->handled());
  }
  if (continuations_left_ != 0) violated("{} continuations have not run behind quiesce()", continuations_left_);
  ended_.clear();
}

void Participant::end_round(const Round& round) {
  if (round.waits_for_messages) wait_for_messages(round);
  if (round.barrier) {
    ledger_.enters_barrier(round.number);
    headway::barrier(pe_);
    ledger_.leaves_barrier(round.number);
  }
  check_allreduce(round);
  if (round.quiesces) quiesce(round);
}

void Participant::wait_for_messages(const Round& round) {
  pe_.engine().wait_until([&] { return ledger_.is_settled(round.number); }, headway::report::Phase::collective);
}

void Participant::check_allreduce(const Round& round) {
  if (round.allreduce_words == 0) return;
  const bool right = round.allreduce_words == 1   ? allreduce_is_right<1>(pe_, round)
                     : round.allreduce_words == 5 ? allreduce_is_right<5>(pe_, round)
                                                  : allreduce_is_right<words_max>(pe_, round);
  if (!right) violated("allreduce() of {} words gave a wrong result", round.allreduce_words);
}

void Participant::quiesce(const Round& round) {
  note("enters quiesce() number {}", phase_);
  ledger_.enters_quiesce(phase_);
  const std::uint64_t handled = pe_.quiesce();
  note("leaves quiesce() number {}", phase_);
  ledger_.leaves_quiesce(phase_);
  const std::uint64_t messages = expectation_.phases[phase_].messages;
  if (program_.has_others(phase_) ? handled < messages : handled != messages) {
    violated("quiesce() returned {}, but {} messages were handled", handled, messages);
  }
  ledger_.counts_in_quiesce(phase_, handled);
  check_epochs();
  teams_.check_done();
  memories_.check(phase_);
  check_books(round);
  leave_channels(program_.episodes[round.episode],
                 round.number - program_.episodes[round.episode].rounds.front().number);
  ++phase_;
}

/// Nothing is on its way now.
void Participant::check_books(const Round& round) {
  const headway::am::FrameStore& store = pe_.engine().store();
  if (store.queued_frames() != 0) violated("{} frames wait behind quiesce()", store.queued_frames());
  if (store.spill_bytes() != 0) violated("{} bytes are spilled behind quiesce()", store.spill_bytes());
  const Episode& episode = program_.episodes[round.episode];
  for (std::size_t i = 0; i < lines_.size(); ++i) check_statistics(lines_[i], episode.channels[i]);
}

void Participant::check_statistics(const Line& line, const ChannelPlan& plan) {
  const auto statistics = line.channel ? line.channel->statistics() : std::nullopt;
  if (!statistics) return;
  const headway::AggregatorStatistics& s = *statistics;
  const char* name = name_of(plan.kind);
  if (s.messages != line.messages_sent) {
    violated("statistics of {} say that {} messages were sent, but {} were", name, s.messages, line.messages_sent);
  }
  if (s.handled != line.messages_handled) {
    violated("statistics of {} say that {} messages were handled, but {} were", name, s.handled, line.messages_handled);
  }
  if (const auto by_reason = s.flush_full + s.flush_timeout + s.flush_idle + s.flush_explicit; by_reason != s.frames) {
    violated("statistics of {} say that {} frames were posted, but give reasons for {}", name, s.frames, by_reason);
  }
  if (s.alone > s.messages) violated("statistics of {}: {} of {} messages went alone", name, s.alone, s.messages);
  if (s.flush_idle != 0 && !plan.options.flush_when_idle) violated("{} was flushed when idle", name);
  const bool has_timeout = plan.options.timeout != headway::no_timeout;
  if (s.flush_timeout != 0 && !has_timeout) violated("{} was flushed by timeout", name);

  if (s.peak_target_bytes > target_bytes_max_) {
    violated("{} bytes were on their way to one PE, {} are allowed", s.peak_target_bytes, target_bytes_max_);
  }
}

// --- messages

void Participant::send(const MessagePlan& planned, bool from_handler, bool try_first) {
  Line& line = lines_[planned.channel];
  const Round& round = *program_.rounds[planned.round];
  std::uint32_t& order = line.sent[pair(round, planned.level, planned.destination, from_handler)];
  const Header header{planned.id,
                      order++,
                      std::uint16_t(planned.source),
                      std::uint8_t(planned.round),
                      std::uint8_t(planned.hops),
                      std::uint8_t(planned.level),
                      from_handler,
                      {}};
  const Content content = content_of(planned.id, planned.bytes);
  note("sends {:016x} of {} bytes to PE {} through {}{}", planned.id, planned.bytes, planned.destination,
       planned.channel, from_handler ? " from a handler" : "");
  ++line.messages_sent;
  ledger_.sends(key_of(program_, planned));
  if (has_header(program_.channel(planned))) ledger_.sends_in_epoch(planned.round, planned.level);
  if (!try_first || !line.channel->try_send(planned.destination, header, content)) {
    line.channel->send(planned.destination, header, content);
  }
  check_shares();
}

std::size_t Participant::pair(const Round& round, unsigned level, std::size_t other, bool by_handler) const {
  const std::size_t first_round = program_.episodes[round.episode].rounds.front().number;
  const std::size_t scope = level == 0 ? 0 : 1 + (round.number - first_round) * epochs_max + (level - 1);
  return 2 * (scope * pe_.size() + other) + by_handler;
}

/// Frames with hops left may hold their share of the budget, and no more.
void Participant::check_shares() const {
  const headway::am::FrameStore& store = pe_.engine().store();
  for (std::uint8_t hops = 0; hops < 3; ++hops) {
    const std::uint64_t bytes = store.outstanding_bytes_with_hops(hops);
    if (bytes <= program_.budget_bytes * 2 / (2 + hops)) continue;
    violated("frames with {} hops left hold {} bytes of the budget", hops, bytes);
  }
}

void Participant::enter_handler() {
  if (in_handler_) violated("a handler runs inside another");
  if (deferring_) violated("a handler runs while handlers are deferred");
  in_handler_ = true;
}

Content Participant::arrives(std::size_t channel, std::optional<PeId> source, const Header& header) {
  enter_handler();
  if (header.round >= program_.rounds.size() || header.source >= pe_.size() || header.level > epochs_max ||
      channel >= lines_.size()) {
    violated("a message has arrived that nobody sent: from PE {}, of round {}", header.source, header.round);
  }
  const Round& round = *program_.rounds[header.round];
  const MessagePlan planned = program_.message(header.id, header.source, round, header.hops, header.level);
  if (round.episode != episode_ || planned.channel != channel || planned.destination != pe_.id()) {
    violated("a message of episode {} and channel {} for PE {} has arrived at channel {}", round.episode,
             planned.channel, planned.destination, channel);
  }
  if (source && *source != header.source) {
    violated("the handler was told that a message of PE {} is PE {}'s", header.source, source->value);
  }
  if (header.level > begun_[header.round]) violated("a message is handled in an epoch that has not begun here");
  if (round.phase != phase_) violated("a message of phase {} is handled in phase {}", round.phase, phase_);
  return content_of(planned.id, planned.bytes);
}

void Participant::arrived(std::size_t channel, const Header& header, bool unchanged) {
  const Round& round = *program_.rounds[header.round];
  const MessagePlan planned = program_.message(header.id, header.source, round, header.hops, header.level);
  if (!unchanged) violated("a message of {} bytes from PE {} is damaged", planned.bytes, planned.source);
  note("handles {:016x} of {} bytes from PE {} through {}", planned.id, planned.bytes, planned.source, channel);
  check_order(channel, header);
  digest_ += header.id;
  ++lines_[channel].messages_handled;
  for (unsigned i = 0; i < planned.children; ++i) send(program_.child(planned, i), true, false);
  ledger_.handles(header.id);
  ledger_.handles_in_epoch(header.round, header.level);
  in_handler_ = false;
}

void Participant::arrived_bare(std::size_t channel, std::optional<PeId> source, Content content) {
  enter_handler();
  if (source && *source >= pe_.size()) violated("a message has come from PE {}", source->value);
  note("handles {} bytes through {}", content.size(), channel);
  const std::uint64_t key = key_of_bare(episode_, channel, pe_.id(), content);
  digest_ += key;
  ++lines_[channel].messages_handled;
  ledger_.handles(key);
  in_handler_ = false;
}

void Participant::check_order(std::size_t channel, const Header& header) {
  const ChannelPlan& plan = program_.episodes[episode_].channels[channel];
  const Round& round = *program_.rounds[header.round];
  std::uint32_t& next = lines_[channel].handled[pair(round, header.level, header.source, header.sent_by_handler)];
  if (plan.options.ordered && header.order != next) {
    violated("message {} from PE {} through {} has come where {} was due", header.order, header.source,
             name_of(plan.kind), next);
  }
  ++next;
}

}  // namespace seeds
