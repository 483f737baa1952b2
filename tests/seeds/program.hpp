// SPDX-License-Identifier: BSD-3-Clause
/// Random programs: what every PE of a run does, drawn from a seed. The messages of a program, those that handlers send
/// included, do not depend on when anything happens; only the order of things does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/aggregate/options.hpp>
#include <headway/base/random.hpp>
#include <headway/transport/sim/conditions.hpp>
#include <string>
#include <support/team_script.hpp>
#include <vector>

namespace seeds {

using headway::Random;

/// The types of a channel's messages.
enum class Kind : std::uint8_t {
  nothing,
  byte,  // fixed size, without a header
  header,
  block_24,
  block_200,
  block_1000,
  wide,
  pair,  // fixed size
  bare,  // variable size, without a header
  span,
  text,
  views,
  strings,
  map,
  record,  // variable size
  calls,
  default_calls,
  object_calls,
  default_object_calls,  // calls
  fixed,
  fixed_calls,
};
inline constexpr std::size_t kinds = 21;

const char* name_of(Kind kind);
/// Whether its messages have one of the forms of fixed_forms.hpp.
bool has_form(Kind kind);
inline constexpr std::size_t to_the_last = ~std::size_t(0);

/// An aggregator, or what calls go through.
struct ChannelPlan {
  Kind kind = Kind::span;
  headway::AggregatorOptions options;
  bool takes_source = false;  // the handler
  std::size_t form = 0;       // of messages of fixed size
  // The rounds of its episode in which messages go through it. It is made before the quiesce() in front of the first,
  // and destroyed at any time after the one behind the last.
  std::size_t first_round = 0, last_round = to_the_last;
};
/// Whether the program chooses its options.
bool has_options(const ChannelPlan& plan);

/// Whether its messages say which they are; others are known by their content alone, and nothing follows from them.
bool has_header(const ChannelPlan& plan);

/// Where the messages of a round go.
enum class Pattern : std::uint8_t { uniform, all_to_one, one_to_all, neighbour, self, hot_spot, in_turn };
inline constexpr std::size_t patterns = 7;

/// How an epoch ends, and what becomes of it.
enum class EpochEnd : std::uint8_t { wait, close, then, destroy };
inline constexpr std::size_t epoch_ends = 4, epochs_max = 3;

/// What all PEs do in the same order, each at any time of the round.
struct Chore {
  enum class What : std::uint8_t { destroy_array, make_channel, make_memory };
  What what = What::make_channel;
  std::size_t index = 0;  // of a memory of the program, or a channel of the episode
};

struct Round {
  std::size_t number = 0, episode = 0, phase = 0;  // phase: quiesce() calls before it
  std::vector<std::size_t> channels;               // of its episode, that it uses
  Pattern pattern = Pattern::uniform;
  std::size_t hot = 0;                       // the one of the pattern
  std::size_t roots_min = 0, roots_max = 0;  // messages that each main program sends
  std::size_t bytes_min = 0, bytes_max = 0;  // of content
  unsigned hops_max = 0;                     // how often a message is sent on
  unsigned branching = 0;                    // of 16 messages that are sent on, so many are sent on twice
  std::vector<EpochEnd> epochs;              // how each ends, the outermost first: one lies within the other
  // What main programs do between sends: once in so many, or never (0).
  unsigned progress_every = 0, flush_every = 0, defer_every = 0, try_every = 0;
  std::vector<Chore> chores;
  // How it ends.
  bool waits_for_messages = false;  // without a flush: timeouts or idleness must be enough
  unsigned allreduce_words = 0;
  bool barrier = false, quiesces = false;
};

/// A GlobalMemory and an array. Each PE makes them in one round, writes in another and reads in a third, each of
/// another phase. After the third phase each PE destroys the memory at any time.
struct MemoryPlan {
  std::size_t made = 0, written = 0, read = 0;  // rounds of the program
  std::size_t elements = 0, block = 1;
  bool mapped = true;
  headway::AggregatorOptions options;
};

/// Rounds over the same channels; the last one ends with quiesce().
struct Episode {
  std::vector<ChannelPlan> channels;
  std::vector<Round> rounds;
};

/// One message. It follows from its number, its source, its round and its hops alone.
struct MessagePlan {
  std::uint64_t id = 0;
  std::size_t channel = 0;  // of its episode
  std::size_t source = 0, destination = 0;
  std::size_t round = 0;  // of the program
  std::size_t bytes = 0;  // of content
  unsigned hops = 0;      // how often it is still sent on
  unsigned level = 0;     // how many epochs of the round it lies in
  unsigned children = 0;  // how many messages its handler sends
};

struct Program {
  std::uint64_t seed = 1;
  std::size_t pes = 1;
  std::size_t budget_bytes = 0;
  headway::sim::Conditions conditions;  // on the simulated transport
  std::vector<Episode> episodes;
  std::vector<const Round*> rounds;  // of all episodes
  std::size_t phases = 0;
  headway::testing::TeamScript teams;
  std::vector<MemoryPlan> memories;
  bool has_small_sizes = false;  // of the library's size constants

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// How many messages the main program of `pe` sends in a round, and each of them.
  std::size_t roots(const Round& round, std::size_t pe) const;
  MessagePlan root(const Round& round, std::size_t pe, std::size_t index, unsigned level) const;
  /// The messages that the handler of `parent` sends, and any message by the facts known on arrival.
  MessagePlan child(const MessagePlan& parent, unsigned index) const;
  MessagePlan message(std::uint64_t id, std::size_t source, const Round& round, unsigned hops, unsigned level) const;

  const ChannelPlan& channel(const MessagePlan& planned) const;
  /// Whether the library sends messages of its own in a phase, which its quiesce() counts as well.
  bool has_others(std::size_t phase) const;

  /// In one line.
  std::string describe() const;
};

/// The messages that a main program sends in a round lie, one after the other, in 0, 1, ... all, ... 1, 0 of its
/// epochs: calls each(level, first, end) for each such part, which may be empty.
template <class Each>
void for_each_part(const Round& round, std::size_t roots, Each each) {
  const std::size_t parts = 2 * round.epochs.size() + 1;
  for (std::size_t part = 0; part < parts; ++part) {
    each(unsigned(std::min(part, parts - 1 - part)), roots * part / parts, roots * (part + 1) / parts);
  }
}

struct ProgramLimits {
  std::size_t pes_max = 33;
  std::size_t messages_max = 5000;    // about, of one round
  std::size_t bytes_max = 1'500'000;  // of one message
  std::size_t budget_bytes_min = 1 << 16;
  bool floods = true;  // some programs of 20 PEs and more that send more than their budget at once
  // What some programs have besides.
  bool fixed_forms = true;  // messages of fixed size up to 200 KiB, of any alignment
  bool short_lived = true;  // channels that are made and destroyed while others send
  bool teams = true;        // collectives of teams
  bool memories = true;     // GlobalMemory and DistArray
  bool small_sizes = true;  // size constants so small that little content takes all ways
};

/// Draws a program into an empty one.
void draw(Program& program, std::uint64_t seed, const ProgramLimits& limits = {});

/// Mixes two numbers into one; for identities and digests.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return Random(a ^ (b * 0xd6e8feb86659fd93)).next(); }

}  // namespace seeds
