// SPDX-License-Identifier: BSD-3-Clause
/// A message of more than eight bytes from one PE to another and back, copied once into memory that both share and read
/// there.
#include <atomic>
#include <cstring>

#include "build.hpp"
#include "measure.hpp"
#include "messages.hpp"

namespace headway::limit {
namespace {

/// One message, with its number (from 1 on) before it, which says that it is there:
///
///   | number | message | room for copies in wide pieces |      begins a line
class Slot {
 public:
  static std::size_t bytes(std::size_t message_bytes) {
    return align_up(word_bytes + message_bytes + copied_too_many, cache_line);
  }
  explicit Slot(std::byte* memory) : memory_(memory) {}
  std::byte* message() const { return memory_ + word_bytes; }
  void post(Word number) const { this->number().store(number, std::memory_order_release); }
  bool holds(Word number) const { return this->number().load(std::memory_order_acquire) == number; }

 private:
  std::atomic_ref<Word> number() const { return std::atomic_ref(*reinterpret_cast<Word*>(memory_)); }
  std::byte* memory_;
};

/// A PE's memory for the round trips.
struct Player {
  std::size_t me, bytes;
  std::byte *mine, *theirs;                   // slots that this PE writes, and that the other one does
  std::vector<std::byte> prepared, expected;  // this PE's message, and the other's
  bool every_byte = false;                    // compares all of it, not both ends alone

  bool is_right(const std::byte* message, Word number) {
    if (!every_byte) return load(message) == number && back(message) == back_of(number);
    stamp(expected.data(), bytes, number);
    return std::memcmp(message, expected.data(), bytes) == 0;
  }

 private:
  Word back(const std::byte* message) const {
    return load(message + (bytes >= 2 * word_bytes ? bytes - word_bytes : 0));
  }
  Word back_of(Word number) const { return bytes >= 2 * word_bytes ? ~number : number; }
};

void wait_for(const Slot& slot, Word number, bool crowded, Waiting waiting) {
  constexpr unsigned looks = 1 << 14;
  while (true) {
    for (unsigned look = 0; look < looks; ++look) {
      if (slot.holds(number)) return;
      if (crowded) waiting.turn();
    }
    ::sched_yield();
  }
}

/// Plays `trips`, the first of which has number `number`. With `slots` more than one they are used in turn. Returns how
/// many messages were wrong.
template <Copy copy, std::size_t slots>
std::uint64_t play(Player& player, const Pe& pe, Word number, std::uint64_t trips) {
  const std::size_t stride = Slot::bytes(player.bytes);
  const Waiting waiting = pe.waiting();
  const auto hit = [&](Word trip) {
    const Slot slot(player.mine + trip % slots * stride);
    copy(slot.message(), player.prepared.data(), player.bytes);
    stamp(slot.message(), player.bytes, trip);
    slot.post(trip);
  };
  std::uint64_t wrong = 0;
  for (const Word end = number + trips; number != end; ++number) {
    if (player.me == 0) hit(number);
    const Slot slot(player.theirs + number % slots * stride);
    wait_for(slot, number, pe.crowded(), waiting);
    wrong += !player.is_right(slot.message(), number);
    if (player.me == 1) hit(number);
  }
  return wrong;
}

constexpr std::size_t in_turn = 4;

struct Formulation {
  const char* name;
  std::uint64_t (*play)(Player& player, const Pe& pe, Word number, std::uint64_t trips);
};
constexpr Formulation formulations[] = {
    {"words, one slot", play<copy_words, 1>}, {"words, slots in turn", play<copy_words, in_turn>},
    {"libc, one slot", play<copy_libc, 1>},   {"libc, slots in turn", play<copy_libc, in_turn>},
    {"wide, one slot", play<copy_wide, 1>},   {"wide, slots in turn", play<copy_wide, in_turn>},
};

}  // namespace

Job pingpong_job(const Options& options) {
  Job job;
  for (const Formulation& formulation : formulations) job.formulations.emplace_back(formulation.name);
  const std::size_t side_bytes = in_turn * Slot::bytes(options.bytes);
  job.shared_bytes = 2 * side_bytes;
  job.body = [options, side_bytes](Pe& pe, std::byte* shared, std::optional<std::size_t> only, Outcome& outcome) {
    const std::size_t me = pe.id(), other = 1 - me;
    Player player{me,
                  options.bytes,
                  shared + me * side_bytes,
                  shared + other * side_bytes,
                  prepared_message(options.bytes, me),
                  prepared_message(options.bytes, other)};
    RoundTrips trips(pe, [&](std::size_t i, Word number, std::uint64_t count) {
      return formulations[i].play(player, pe, number, count);
    });
    const auto some = [&](std::uint64_t bytes) {
      return std::min(options.messages, std::max<std::uint64_t>(bytes / options.bytes, 4));
    };
    player.every_byte = true;
    for (std::size_t i = 0; i < std::size(formulations); ++i) {
      if (!only || *only == i) trips.pass(i, some(1 << 20));
    }
    player.every_byte = false;
    const std::uint64_t tried = std::min<std::uint64_t>(some(16 << 20), 10'000);
    trips.measure(std::size(formulations), only, tried, options.messages, outcome);
  };
  return job;
}

}  // namespace headway::limit
