// SPDX-License-Identifier: BSD-3-Clause
/// A message that lies in memory of the one PE to memory of the other, and one back: copied by its receiver where both
/// have mapped its memory, through a ring of pieces, or read out of the other process.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "copies.hpp"
#include "measure.hpp"
#include "messages.hpp"

namespace headway::limit {
namespace {

/// A ring of pieces. Behind each is room for copies in wide pieces and for the processor's prefetching.
struct Ring {
  std::size_t piece_bytes, places, stride;
  std::size_t bytes() const { return places * stride; }
};
constexpr std::size_t kibi = 1024, ring_stride = 256 * kibi + cache_line;
/// Many places: lines have left their writer's own cache by the time that they are written again.
constexpr Ring rings[] = {{16 * kibi, 64, ring_stride},
                          {16 * kibi, 256, 20 * kibi},
                          {64 * kibi, 64, ring_stride},
                          {256 * kibi, 64, ring_stride}};

/// The memory that a PE shares with the other; its messages, or its pieces, follow.
///
///   | sent | filled | emptied | owner |        each in a line of its own
struct Side {
  alignas(cache_line) std::atomic<Word> sent;     // the number of its last message, which can be copied
  alignas(cache_line) std::atomic<Word> filled;   // pieces written, by this side
  alignas(cache_line) std::atomic<Word> emptied;  // of those, read by the other side
  alignas(cache_line) Owner owner;                // of its messages, where they are read by CMA
};
static_assert(sizeof(Side) == 4 * cache_line);

/// One PE of a case, with its messages and the memory that the other's come to.
class Player {
 public:
  /// With `sources` its messages lie there, which the other PE has mapped as well; else in memory of its own.
  Player(const Options& options, Pe& pe, Side& side, Side& others, std::byte* sources, std::byte* others_sources)
      : mine(side),
        theirs(others),
        options_(options),
        pe_(pe),
        sources_(Memory::Kind::plain, sources != nullptr ? 1 : all_bytes()),
        targets_(Memory::Kind::plain, all_bytes()),
        from_(sources != nullptr ? sources : sources_.data()),
        others_from_(others_sources),
        prepared_(prepared_message(options.bytes, pe.id())),
        expected_(prepared_message(options.bytes, 1 - pe.id())) {
    std::memset(targets_.data(), 0, all_bytes());  // so that it is there
    for (std::size_t i = 0; i < options.buffer_count; ++i)
      std::memcpy(from_ + i * options.buffer_stride, prepared_.data(), options.bytes);
    mine.owner = {::getpid(), from_};
    pe.meet_all();
    if (others_from_ == nullptr) others_from_ = theirs.owner.memory;
  }

  /// Writes the number to both ends of a message, and nothing else.
  std::byte* message(Word number) const {
    std::byte* const begin = from_ + offset(number);
    stamp(begin, options_.bytes, number);
    return begin;
  }
  std::byte* others_message(Word number) const { return others_from_ + offset(number); }
  std::byte* target(Word number) const { return targets_.data() + offset(number); }
  std::size_t bytes() const { return options_.bytes; }

  template <class Condition>
  void wait_until(Condition condition) const {
    constexpr unsigned looks = 1 << 14;
    Waiting waiting = pe_.waiting();
    while (true) {
      for (unsigned look = 0; look < looks; ++look) {
        if (condition()) return;
        if (pe_.crowded()) waiting.turn();
      }
      ::sched_yield();
    }
  }

  /// Plays trips, the first of which has number `number`; way.send(player, number) and way.receive(player, number).
  /// Returns how many messages were wrong.
  template <class Method>
  std::uint64_t play(const Method& way, Word number, std::uint64_t trips) {
    std::uint64_t wrong = 0;
    for (const Word end = number + trips; number != end; ++number) {
      if (pe_.id() == 0) way.send(*this, number);
      way.receive(*this, number);
      wrong += !is_right(target(number), number);
      if (pe_.id() == 1) way.send(*this, number);
    }
    return wrong;
  }

  Side &mine, &theirs;
  bool every_byte = false;     // compares all of a message, not both ends alone
  Word written = 0, read = 0;  // pieces

 private:
  std::size_t all_bytes() const { return options_.buffer_count * options_.buffer_stride; }
  std::size_t offset(Word number) const { return number % options_.buffer_count * options_.buffer_stride; }
  bool is_right(const std::byte* message, Word number) {
    const bool two = bytes() >= 2 * word_bytes;
    if (!every_byte) return load(message) == number && (!two || load(message + bytes() - word_bytes) == ~number);
    stamp(expected_.data(), bytes(), number);
    return std::memcmp(message, expected_.data(), bytes()) == 0;
  }

  const Options& options_;
  Pe& pe_;
  const Memory sources_, targets_;
  std::byte *from_, *others_from_;
  std::vector<std::byte> prepared_, expected_;
};

/// Says that the message is there. It stays as it is until the answer comes, which says that it was copied.
void announce(const Player& player, Word number) {
  player.message(number);
  player.mine.sent.store(number, std::memory_order_release);
}
void await(const Player& player, Word number) {
  player.wait_until([&] { return player.theirs.sent.load(std::memory_order_acquire) == number; });
}

/// The receiver copies it out of memory that both have mapped.
struct Mapped {
  Copy copy;
  void send(Player& player, Word number) const { announce(player, number); }
  void receive(Player& player, Word number) const {
    await(player, number);
    copy(player.target(number), player.others_message(number), player.bytes());
  }
};

/// The receiver reads it out of the other process.
struct Cma {
  std::size_t piece;
  void send(Player& player, Word number) const { announce(player, number); }
  void receive(Player& player, Word number) const {
    await(player, number);
    read_memory_of(player.theirs.owner.process, player.target(number), player.others_message(number), player.bytes(),
                   piece);
  }
};

/// The sender copies it into pieces of shared memory, used in turn, and the receiver out of them meanwhile.
struct Pieces {
  Copy copy;
  Ring ring;
  std::byte* at(Side& side, Word number) const {
    return reinterpret_cast<std::byte*>(&side + 1) + number % ring.places * ring.stride;
  }
  void send(Player& player, Word number) const {
    const std::byte* const from = player.message(number);
    Side& side = player.mine;
    for (std::size_t done = 0; done < player.bytes(); done += ring.piece_bytes) {
      player.wait_until([&] { return player.written - side.emptied.load(std::memory_order_acquire) < ring.places; });
      copy(at(side, player.written), from + done, std::min(ring.piece_bytes, player.bytes() - done));
      side.filled.store(++player.written, std::memory_order_release);
    }
  }
  void receive(Player& player, Word number) const {
    std::byte* const to = player.target(number);
    Side& side = player.theirs;
    for (std::size_t done = 0; done < player.bytes(); done += ring.piece_bytes) {
      player.wait_until([&] { return side.filled.load(std::memory_order_acquire) > player.read; });
      copy(to + done, at(side, player.read), std::min(ring.piece_bytes, player.bytes() - done));
      side.emptied.store(++player.read, std::memory_order_release);
    }
  }
};

template <class Method>
struct NamedMethod {
  std::string name;
  Method way;
};

/// Collective. Every byte of some messages in each formulation, then every buffer once, then the best is measured.
template <class Method>
void measure(const std::vector<NamedMethod<Method>>& ways, const Options& options, Pe& pe, Player& player,
             std::optional<std::size_t> only, Outcome& outcome) {
  RoundTrips trips(
      pe, [&](std::size_t i, Word number, std::uint64_t count) { return player.play(ways[i].way, number, count); });
  const auto some = [&](std::uint64_t bytes, std::uint64_t least) {
    return std::min(options.messages, std::max<std::uint64_t>(bytes / options.bytes, least));
  };
  player.every_byte = true;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (!only || *only == i) trips.pass(i, some(1 << 20, 2));
  }
  player.every_byte = false;
  trips.pass(only.value_or(0), options.buffer_count);
  trips.measure(ways.size(), only, std::min<std::uint64_t>(some(16 << 20, 1), 10'000), options.messages, outcome);
}

/// Two sides with `bytes` behind each.
class Sides {
 public:
  explicit Sides(std::size_t bytes) : stride_(align_up(sizeof(Side) + bytes, 4096)) {}
  std::size_t bytes() const { return 2 * stride_; }
  Side& of(std::byte* shared, std::size_t pe) const { return *reinterpret_cast<Side*>(shared + pe * stride_); }
  static std::byte* behind(Side& side) { return reinterpret_cast<std::byte*>(&side + 1); }

 private:
  std::size_t stride_;
};

template <class Method>
Job trips_job(const Options& options, std::vector<NamedMethod<Method>> ways, bool mapped, std::size_t bytes_behind) {
  Job job;
  for (const NamedMethod<Method>& one : ways) job.formulations.push_back(one.name);
  const Sides sides(bytes_behind);
  job.shared_bytes = sides.bytes();
  job.body = [options, ways = std::move(ways), mapped, sides](Pe& pe, std::byte* shared,
                                                              std::optional<std::size_t> only, Outcome& outcome) {
    Side &mine = sides.of(shared, pe.id()), &theirs = sides.of(shared, 1 - pe.id());
    Player player(options, pe, mine, theirs, mapped ? Sides::behind(mine) : nullptr,
                  mapped ? Sides::behind(theirs) : nullptr);
    if constexpr (std::is_same_v<Method, Cma>) {
      bool refused = false;
      try {
        read_memory_of(theirs.owner.process, player.target(0), player.others_message(0), 1, 1);
      } catch (const std::exception& error) {
        refused = true;
        if (pe.id() == 0) std::strncpy(outcome.unavailable, error.what(), sizeof outcome.unavailable - 1);
      }
      if (pe.sum_of_all(refused) > 0) return;
    }
    measure(ways, options, pe, player, only, outcome);
    pe.meet_all();  // until then the owner keeps the memory that the other PE reads
  };
  return job;
}

}  // namespace

Job mapped_trips_job(const Options& options) {
  std::vector<NamedMethod<Mapped>> ways;
  for (const CopyFormulation& one : copies) ways.push_back({one.name, {one.copy}});
  return trips_job(options, std::move(ways), true, options.buffer_count * options.buffer_stride);
}

Job pieces_trips_job(const Options& options) {
  std::vector<NamedMethod<Pieces>> ways;
  const auto add = [&](const char* name, Copy copy) {
    for (const Ring& ring : rings) {
      const std::string pieces = std::to_string(ring.places) + " pieces of " + std::to_string(ring.piece_bytes / kibi);
      ways.push_back({std::string(name) + ", " + pieces + "K", {copy, ring}});
    }
  };
  for (const CopyFormulation& one : copies) {
    if (one.copy != copy_words) add(one.name, one.copy);
  }
  std::size_t bytes = 0;
  for (const Ring& ring : rings) bytes = std::max(bytes, ring.bytes());
  return trips_job(options, std::move(ways), false, bytes);
}

Job cma_trips_job(const Options& options) {
  std::vector<NamedMethod<Cma>> ways;
  for (const CmaFormulation& one : reads) ways.push_back({one.name, {one.piece}});
  return trips_job(options, std::move(ways), false, 0);
}

}  // namespace headway::limit
