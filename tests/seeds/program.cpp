// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <span>
#include <utility>

#include "fixed_forms.hpp"

namespace seeds {
namespace {

using namespace std::chrono_literals;
using namespace headway::literals;

constexpr std::size_t kinds_at_first = std::size_t(Kind::object_calls) + 1;
constexpr std::size_t serialized_bytes_max = 8'000;  // what tests compare element by element stays small

std::size_t draw_pes(Random& random, std::size_t pes_max) {
  const std::uint64_t dice = random.below(20);
  const std::size_t pes = dice == 0   ? 1
                          : dice < 11 ? random.between(2, 5)
                          : dice < 17 ? random.between(6, 13)
                                      : random.between(14, 33);
  return std::min(pes, pes_max);
}

/// Options that are allowed, at any place of their ranges.
headway::AggregatorOptions draw_options(Random& random) {
  headway::AggregatorOptions options;
  options.topology = {unsigned(random.below(4))};
  if (random.one_in(30)) options.topology = {unsigned(random.between(4, 8))};
  if (!random.one_in(5)) options.buffer_bytes = random.size(256, 20'000);
  if (!random.one_in(3)) options.threshold = double(random.below(101)) / 100;
  if (!random.one_in(3)) options.cutoff = double(random.below(101)) / 100;
  if (options.threshold > 0 && options.cutoff > 0) options.cutoff *= 1 - options.threshold;
  constexpr std::chrono::nanoseconds timeouts[] = {
      headway::derived_timeout, headway::no_timeout, headway::no_timeout, 0ns, 1us, 100us, 10ms};
  options.timeout = timeouts[random.below(std::size(timeouts))];
  options.flush_when_idle = random.one_in(2);
  options.ordered = random.one_in(2);
  return options;
}

ChannelPlan draw_channel(Random& random) {
  ChannelPlan plan{Kind(random.below(kinds_at_first)), draw_options(random), random.one_in(2)};
  if (plan.kind == Kind::default_calls) plan.options = {};
  return plan;
}

/// Some PEs pretend to be threads of one process, and some aggregators care.
void draw_processes(Random random, Program& program) {
  constexpr headway::Scheme schemes[] = {headway::Scheme::wps, headway::Scheme::pp};
  if (random.one_in(2)) program.conditions.pes_per_process = random.between(2, 6);
  for (Episode& episode : program.episodes) {
    for (ChannelPlan& plan : episode.channels) {
      headway::Topology& topology = plan.options.topology;
      const headway::Scheme scheme = schemes[random.below(std::size(schemes))];
      const bool possible = topology.dimensions > 0 && topology.dimensions < headway::aggregate::dimensions_max;
      if (random.one_in(2) && possible && has_options(plan)) topology.scheme = scheme;
    }
  }
}

/// PEs pretend to be on several hosts, of different sizes, and some aggregators care.
void draw_hosts(Random random, Program& program) {
  if (!random.one_in(3)) return;
  for (std::size_t hosts = random.between(1, 4); hosts > 0; --hosts) {
    program.conditions.pes_per_host.push_back(random.between(1, 6));
  }
  for (Episode& episode : program.episodes) {
    for (ChannelPlan& plan : episode.channels) {
      headway::Topology topology = plan.options.topology;
      topology.scheme = random.one_in(2) ? headway::Scheme::whs : headway::Scheme::hh;
      const bool possible = headway::aggregate::is_allowed(topology) && has_options(plan);
      if (random.one_in(2) && possible) plan.options.topology = topology;
    }
  }
}

/// Whether messages in its buffers leave without a flush.
bool delivers_unaided(const ChannelPlan& plan) {
  return plan.options.flush_when_idle || plan.options.timeout != headway::no_timeout;
}

/// Messages that a round with these hops makes of one.
double messages_per_root(unsigned hops_max, unsigned branching) {
  const double growth = 1 + branching / 16.0;
  double sum = 0, generation = 1;
  for (unsigned hop = 0; hop <= hops_max; ++hop, generation *= growth) sum += generation;
  return std::max(1.0, sum / 2);  // hops are drawn uniformly
}

Round draw_round(Random& random, const Program& program, const Episode& episode, const ProgramLimits& limits) {
  Round round;
  for (std::size_t channel = 0; channel < episode.channels.size(); ++channel) {
    if (!random.one_in(3)) round.channels.push_back(channel);
  }
  if (round.channels.empty()) round.channels.push_back(random.below(episode.channels.size()));
  round.pattern = random.one_in(2) ? Pattern::uniform : Pattern(random.below(patterns));
  round.hot = random.below(program.pes);

  constexpr std::size_t sizes[] = {0, 16, 64, 64, 300, 300, 1'000, 4'000, 30'000};
  round.bytes_max = sizes[random.below(std::size(sizes))];
  round.hops_max = random.one_in(3) ? 0 : unsigned(random.between(1, 6));
  round.branching = random.one_in(2) ? 0 : unsigned(random.below(4));
  if (random.one_in(10)) {
    round.branching = 16;
    round.hops_max = std::min(round.hops_max, 4u);
  }
  std::size_t messages = random.size(1, random.one_in(10) ? limits.messages_max : limits.messages_max / 4);
  if (random.one_in(60)) {
    round.bytes_max = random.size(100'000, limits.bytes_max);
    round.hops_max = std::min(round.hops_max, 1u);
    messages = std::min<std::size_t>(messages, 10);
  }
  if (round.bytes_max >= 4'000) messages = std::min<std::size_t>(messages, 4'000'000 / round.bytes_max);
  const std::size_t senders = round.pattern == Pattern::one_to_all ? 1 : program.pes;
  round.roots_max =
      1 + std::size_t(double(messages) / messages_per_root(round.hops_max, round.branching) / double(senders));

  auto every = [&](std::uint64_t at_most) { return random.one_in(2) ? 0 : unsigned(random.size(1, at_most)); };
  round.progress_every = every(50);
  round.flush_every = every(50);
  round.defer_every = every(50);
  round.try_every = every(5);
  if (random.one_in(3)) {
    for (std::uint64_t epochs = random.between(1, epochs_max); epochs > 0; --epochs) {
      round.epochs.push_back(random.one_in(2) ? EpochEnd::wait : EpochEnd(random.below(epoch_ends)));
    }
  }
  round.waits_for_messages = random.one_in(3) && std::ranges::all_of(episode.channels, delivers_unaided);
  constexpr unsigned words[] = {1, 1, 1, 5, 300};
  if (random.one_in(3)) round.allreduce_words = words[random.below(std::size(words))];
  round.barrier = random.one_in(4);
  round.quiesces = random.one_in(2);
  return round;
}

Episode draw_episode(Random& random, const Program& program, const ProgramLimits& limits) {
  Episode episode;
  const std::size_t channels = random.between(1, 4);
  for (std::size_t c = 0; c < channels; ++c) episode.channels.push_back(draw_channel(random));
  const std::size_t rounds = random.between(1, 3);
  for (std::size_t r = 0; r < rounds; ++r) episode.rounds.push_back(draw_round(random, program, episode, limits));
  return episode;
}

/// Every PE sends more than its budget at once, over routes of several hops through buffers as large as may be: without
/// shares of the budget by hops left, forwarding ends in a deadlock.
Episode draw_flood(Random& random, const Program& program) {
  constexpr Kind flood_kinds[] = {Kind::block_1000, Kind::span, Kind::bare};
  Episode episode;
  for (std::uint64_t channels = random.between(1, 2); channels > 0; --channels) {
    ChannelPlan plan{flood_kinds[random.below(std::size(flood_kinds))], {}, random.one_in(2)};
    plan.options.topology = {unsigned(random.between(2, 3))};
    plan.options.flush_when_idle = random.one_in(2);
    plan.options.ordered = random.one_in(2);
    episode.channels.push_back(plan);
  }
  Round round;
  for (std::size_t channel = 0; channel < episode.channels.size(); ++channel) round.channels.push_back(channel);
  round.pattern = Pattern::in_turn;
  round.bytes_min = 500;
  round.bytes_max = 1'500;
  round.roots_min = program.budget_bytes / 500;
  round.roots_max = 2 * round.roots_min;
  round.hops_max = unsigned(random.below(2));
  episode.rounds.push_back(round);
  return episode;
}

/// Channels that are made and destroyed between rounds, behind a quiescence and while others send.
void draw_short_lived(Random random, Program& program) {
  if (random.one_in(2)) return;
  for (Episode& episode : program.episodes) {
    for (ChannelPlan& plan : episode.channels) {
      if (plan.kind != Kind::object_calls || random.one_in(2)) continue;
      plan.kind = Kind::default_object_calls;
      plan.options = {};
    }
    for (std::size_t next = 1; next < episode.rounds.size(); ++next) {
      if (!episode.rounds[next - 1].quiesces) continue;
      const std::span<Round> later = std::span(episode.rounds).subspan(next);
      ChannelPlan& ended = episode.channels[random.below(episode.channels.size())];
      const std::size_t number = std::size_t(&ended - episode.channels.data());
      const bool others = std::ranges::all_of(
          later, [&](const Round& round) { return round.channels != std::vector<std::size_t>{number}; });
      if (others && ended.last_round == to_the_last && ended.first_round < next && !random.one_in(3)) {
        ended.last_round = next - 1;
        for (Round& round : later) std::erase(round.channels, number);
      }
      if (random.one_in(3)) continue;
      ChannelPlan plan = draw_channel(random);
      if (random.one_in(5)) plan = {Kind::default_object_calls, {}, random.one_in(2)};
      plan.first_round = next;
      episode.rounds[next - 1].chores.push_back({Chore::What::make_channel, episode.channels.size()});
      for (Round& round : later) {
        if (!random.one_in(3)) round.channels.push_back(episode.channels.size());
      }
      episode.channels.push_back(plan);
    }
  }
}

/// Some channels have messages of fixed size, at most about 4 MB of them in a round.
void draw_fixed_forms(Random random, Program& program) {
  constexpr double bytes_max = 4e6, bytes_large = 20e3;
  if (!random.one_in(3)) return;
  for (Episode& episode : program.episodes) {
    for (ChannelPlan& plan : episode.channels) {
      const Kind kind = random.one_in(5) ? Kind::fixed_calls : Kind::fixed;
      const std::size_t form = random.below(fixed_forms);
      if (random.one_in(2) || !has_options(plan)) continue;
      plan.kind = kind;
      plan.form = form;
    }
    for (Round& round : episode.rounds) {
      double bytes = 0;
      for (const std::size_t channel : round.channels) {
        const ChannelPlan& plan = episode.channels[channel];
        if (has_form(plan.kind)) bytes += double(fixed_form_facts[plan.form].bytes) / double(round.channels.size());
      }
      if (bytes > bytes_large) round.hops_max = std::min(round.hops_max, 1u);
      const std::size_t senders = round.pattern == Pattern::one_to_all ? 1 : program.pes;
      bytes *= double(senders) * messages_per_root(round.hops_max, round.branching);
      if (bytes * double(round.roots_max) <= bytes_max) continue;
      round.roots_max = std::max<std::size_t>(1, std::size_t(bytes_max / bytes));
      round.roots_min = std::min(round.roots_min, round.roots_max);
    }
  }
}

void draw_teams(Random random, Program& program) {
  if (!random.one_in(5)) return;
  program.teams = headway::testing::draw_team_script(
      random, program.pes, {.lines_max = random.one_in(8) ? 25u : 4u, .phases = program.phases});
}

void draw_memories(Random random, Program& program) {
  constexpr std::size_t memories_max = 3, elements_max = 100;
  if (!random.one_in(6) || program.phases < 3) return;
  std::size_t phase = random.below(program.phases - 2);
  const auto round_of_next_phase = [&] {
    std::vector<std::size_t> rounds;
    for (const Round* round : program.rounds) {
      if (round->phase == phase) rounds.push_back(round->number);
    }
    ++phase;
    return rounds[random.below(rounds.size())];
  };
  const auto chores_of = [&](std::size_t round) -> std::vector<Chore>& {
    for (Episode& episode : program.episodes) {
      for (Round& one : episode.rounds) {
        if (one.number == round) return one.chores;
      }
    }
    return program.episodes.back().rounds.back().chores;
  };
  while (phase + 3 <= program.phases && program.memories.size() < memories_max) {
    MemoryPlan plan;
    plan.made = round_of_next_phase();
    plan.written = round_of_next_phase();
    plan.read = round_of_next_phase();
    plan.elements = random.size(1, elements_max);
    plan.block = random.size(1, plan.elements);
    plan.mapped = random.one_in(2);
    plan.options = draw_options(random);
    const std::size_t index = program.memories.size();
    chores_of(plan.made).push_back({Chore::What::make_memory, index});
    if (phase < program.phases) {
      const std::size_t after = random.between(phase, program.phases - 1);
      for (const Round* round : program.rounds) {
        if (round->phase != after) continue;
        chores_of(round->number).push_back({Chore::What::destroy_array, index});
        break;
      }
    }
    program.memories.push_back(plan);
    if (random.one_in(2)) phase -= random.below(3);
  }
}

/// Of those that are drawn by themselves, without changing what else is drawn.
void draw_besides(std::uint64_t seed, Program& program, const ProgramLimits& limits) {
  if (limits.short_lived) draw_short_lived(Random(mix(seed, 0x540e)), program);
  if (limits.fixed_forms) draw_fixed_forms(Random(mix(seed, 0xf18d)), program);
  if (limits.teams) draw_teams(Random(mix(seed, 0x7ea5)), program);
  if (limits.memories) draw_memories(Random(mix(seed, 0x9e50)), program);
  program.has_small_sizes = limits.small_sizes && Random(mix(seed, 0x512e)).one_in(4);
  for (Episode& episode : program.episodes) {
    for (Round& round : episode.rounds) {
      round.waits_for_messages = round.waits_for_messages && std::ranges::all_of(episode.channels, delivers_unaided);
    }
  }
}

std::string describe(const ChannelPlan& plan) {
  const headway::AggregatorOptions& o = plan.options;
  std::string text = fmt::format("{} {}", name_of(plan.kind), headway::to_string(o.topology));
  if (has_form(plan.kind)) {
    const FixedFormFacts& form = fixed_form_facts[plan.form];
    text += fmt::format(" form {}: {} B aligned to {} B", plan.form, form.bytes, form.alignment);
  }
  if (plan.first_round != 0) text += fmt::format(" from round {}", plan.first_round);
  if (plan.last_round != to_the_last) text += fmt::format(" to round {}", plan.last_round);
  if (o.buffer_bytes != headway::derived_bytes) text += fmt::format(" {} B", o.buffer_bytes);
  if (o.threshold != headway::derived_fraction) text += fmt::format(" threshold {:.2g}", o.threshold);
  if (o.cutoff != headway::derived_fraction) text += fmt::format(" cutoff {:.2g}", o.cutoff);
  if (o.timeout == headway::no_timeout) text += " no timeout";
  if (!o.flush_when_idle) text += " not when idle";
  if (o.ordered) text += " ordered";
  return text;
}

std::string describe(const Round& round) {
  constexpr const char* patterns[] = {"uniform", "all to one", "one to all", "neighbour",
                                      "self",    "hot spot",   "in turn"};
  std::string text = fmt::format("{} of up to {} B", patterns[int(round.pattern)], round.bytes_max);
  if (round.hops_max != 0) text += fmt::format(" {} hops", round.hops_max);
  constexpr const char* ends[epoch_ends] = {"waited for", "closed", "then", "destroyed"};
  for (const EpochEnd end : round.epochs) text += fmt::format(" epoch {}", ends[int(end)]);
  if (round.waits_for_messages) text += " wait";
  if (round.barrier) text += " barrier";
  if (round.allreduce_words != 0) text += " allreduce";
  if (round.quiesces) text += " quiesce";
  return text;
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* names[kinds] = {"nothing",       "byte",  "header",     "block-24", "block-200", "block-1000",
                                        "wide",          "pair",  "bare",       "span",     "text",      "views",
                                        "strings",       "map",   "record",     "calls",    "rpc_ff",    "object-calls",
                                        "object-rpc_ff", "fixed", "fixed-calls"};
  return names[int(kind)];
}

bool has_form(Kind kind) { return kind == Kind::fixed || kind == Kind::fixed_calls; }

bool has_header(const ChannelPlan& plan) {
  if (has_form(plan.kind)) return fixed_form_facts[plan.form].has_header;
  return plan.kind != Kind::nothing && plan.kind != Kind::byte && plan.kind != Kind::bare;
}

bool has_options(const ChannelPlan& plan) {
  return plan.kind != Kind::default_calls && plan.kind != Kind::default_object_calls;
}

void draw(Program& program, std::uint64_t seed, const ProgramLimits& limits) {
  Random random(mix(seed, 0x5eed));
  program.seed = seed;
  const bool floods = limits.floods && random.one_in(50);
  program.pes = floods ? random.between(20, 33) : draw_pes(random, limits.pes_max);
  program.budget_bytes = random.size(limits.budget_bytes_min, 1_MiB) / 64 * 64;
  if (random.one_in(2)) program.budget_bytes = std::bit_floor(program.budget_bytes);
  if (floods) program.budget_bytes = limits.budget_bytes_min;
  program.conditions = headway::sim::random_conditions(random, program.pes);
  std::size_t episodes = floods ? 1 : random.between(1, 2);
  // Few messages through many channels.
  Random random_of_many(mix(seed, 0xc4ea));
  const bool has_many = limits.short_lived && !floods && random_of_many.one_in(25);
  ProgramLimits limits_of_episode = limits;
  if (has_many) {
    episodes = random_of_many.between(4, 12);
    limits_of_episode.messages_max /= 20;
  }
  for (std::size_t s = 0; s < episodes; ++s) {
    Episode& episode = program.episodes.emplace_back(floods ? draw_flood(random, program)
                                                            : draw_episode(random, program, limits_of_episode));
    episode.rounds.back().quiesces = true;
    for (Round& round : episode.rounds) {
      round.episode = s;
      round.phase = program.phases;
      program.phases += round.quiesces;
    }
  }
  draw_processes(Random(mix(seed, 0x9e05)), program);
  draw_hosts(Random(mix(seed, 0x4057)), program);
  for (Episode& episode : program.episodes) {
    for (Round& round : episode.rounds) {
      round.number = program.rounds.size();
      program.rounds.push_back(&round);
    }
  }
  if (!floods) draw_besides(seed, program, limits);
}

std::size_t Program::roots(const Round& round, std::size_t pe) const {
  if (round.pattern == Pattern::one_to_all && pe != round.hot) return 0;
  return Random(mix(mix(seed, round.number), pe)).size(round.roots_min, round.roots_max);
}

MessagePlan Program::root(const Round& round, std::size_t pe, std::size_t index, unsigned level) const {
  const std::uint64_t id = mix(mix(mix(seed, round.number), pe), index + 1) << 8 | (index & 0xff);
  return message(id, pe, round, unsigned(id >> 32) % (round.hops_max + 1), level);
}

MessagePlan Program::child(const MessagePlan& parent, unsigned index) const {
  return message(mix(parent.id, index + 1), parent.destination, *rounds[parent.round], parent.hops - 1, parent.level);
}

MessagePlan Program::message(std::uint64_t id, std::size_t source, const Round& round, unsigned hops,
                             unsigned level) const {
  Random random(id);
  MessagePlan planned{id, round.channels[random.below(round.channels.size())], source, 0, round.number, 0, hops, level,
                      0};
  const Kind kind = channel(planned).kind;
  switch (round.pattern) {
    case Pattern::all_to_one: planned.destination = round.hot; break;
    case Pattern::neighbour: planned.destination = (source + 1) % pes; break;
    case Pattern::self: planned.destination = source; break;
    case Pattern::in_turn: planned.destination = (source + 1 + (id & 0xff)) % pes; break;
    case Pattern::hot_spot: planned.destination = random.one_in(2) ? round.hot : random.below(pes); break;
    default: planned.destination = random.below(pes);
  }
  switch (kind) {
    case Kind::nothing:
    case Kind::header: break;
    case Kind::byte:
    case Kind::pair: planned.bytes = 1; break;
    case Kind::block_24: planned.bytes = 24; break;
    case Kind::block_200: planned.bytes = 200; break;
    case Kind::block_1000: planned.bytes = 1000; break;
    case Kind::wide: planned.bytes = 40; break;
    case Kind::strings:
    case Kind::map:
    case Kind::record: planned.bytes = random.size(0, std::min(round.bytes_max, serialized_bytes_max)); break;
    case Kind::fixed:
    case Kind::fixed_calls: {
      const FixedFormFacts& form = fixed_form_facts[channel(planned).form];
      planned.bytes = form.bytes - (form.has_header ? sizeof(Header) : 0);
      break;
    }
    default: planned.bytes = random.size(round.bytes_min, round.bytes_max);
  }
  if (!has_header(channel(planned))) planned.hops = 0;
  if (planned.hops != 0) planned.children = random.below(16) < round.branching ? 2 : 1;
  return planned;
}

const ChannelPlan& Program::channel(const MessagePlan& planned) const {
  return episodes[rounds[planned.round]->episode].channels[planned.channel];
}

bool Program::has_others(std::size_t phase) const {
  const auto is_in_phase = [&](std::size_t round) { return rounds[round]->phase == phase; };
  const auto has_actions = [&](const headway::testing::TeamLine& line) {
    return std::ranges::count(line.actions, phase, &headway::testing::TeamAction::phase) != 0;
  };
  const auto is_used = [&](const MemoryPlan& plan) { return is_in_phase(plan.written) || is_in_phase(plan.read); };
  return std::ranges::any_of(teams.lines, has_actions) || std::ranges::any_of(memories, is_used);
}

std::string Program::describe() const {
  std::string text = fmt::format("{} PEs, {} in a process, on {} hosts, budget {}", pes, conditions.pes_per_process,
                                 conditions.host_firsts(pes).size(), headway::base::format_bytes(budget_bytes));
  for (const Episode& episode : episodes) {
    text += "; ";
    for (const ChannelPlan& channel : episode.channels) {
      text += fmt::format("{}{}", &channel == episode.channels.data() ? "" : ", ", seeds::describe(channel));
    }
    for (const Round& round : episode.rounds) text += fmt::format(" | {}", seeds::describe(round));
  }
  if (const std::size_t calls = teams.calls(); calls != 0) {
    text += fmt::format("; {} collectives of teams of {} lists", calls, teams.lines.size());
  }
  for (const MemoryPlan& plan : memories) {
    text +=
        fmt::format("; memory of {} elements in rounds {}, {}, {}", plan.elements, plan.made, plan.written, plan.read);
  }
  if (has_small_sizes) text += "; small sizes";
  return text;
}

}  // namespace seeds
