// SPDX-License-Identifier: BSD-3-Clause
/// Eight bytes from one PE to another and back, through a cell of shared memory per direction.
#include <atomic>

#include "measure.hpp"
#include "messages.hpp"

namespace headway::limit {
namespace {

/// A cell in a line of its own: the eight bytes, and the number of the message, which says that they are there.
struct alignas(cache_line) Cell {
  std::atomic<Word> number;
  Word payload;
};

/// The cells of one direction, used in turn.
struct Cells {
  static constexpr std::size_t count = 8;
  Cell cells[count];
};

/// One way for a message to go. put() writes number `number` (from 1 on), wait() returns it.
struct NumberedCell {
  static void put(Cells& cells, Word number, Word payload) {
    Cell& cell = cells.cells[0];
    cell.payload = payload;
    cell.number.store(number, std::memory_order_release);
  }
  static bool arrived(const Cells& cells, Word number) {
    return cells.cells[0].number.load(std::memory_order_acquire) == number;
  }
  static Word payload(const Cells& cells, Word /*number*/) { return cells.cells[0].payload; }
};

/// The same over several cells in turn, as a queue has them.
struct CellsInTurn {
  static void put(Cells& cells, Word number, Word payload) {
    Cell& cell = cells.cells[number % Cells::count];
    cell.payload = payload;
    cell.number.store(number, std::memory_order_release);
  }
  static bool arrived(const Cells& cells, Word number) {
    return cells.cells[number % Cells::count].number.load(std::memory_order_acquire) == number;
  }
  static Word payload(const Cells& cells, Word number) { return cells.cells[number % Cells::count].payload; }
};

/// The eight bytes alone; each message differs from the one before, so the receiver can see it arrive.
struct PayloadAlone {
  static void put(Cells& cells, Word /*number*/, Word payload) {
    cells.cells[0].number.store(payload, std::memory_order_release);
  }
  static bool arrived(const Cells& cells, Word number) { return payload(cells, number) == expected(number); }
  static Word payload(const Cells& cells, Word) { return cells.cells[0].number.load(std::memory_order_acquire); }
  static Word expected(Word number) { return number * 0x9e3779b97f4a7c15u; }
};

/// `pause`: between looks, which leaves the line alone for a moment.
template <class Method, bool pause>
Word wait_for(const Cells& cells, Word number, Waiting& waiting) {
  constexpr unsigned looks = 1 << 14;
  while (true) {
    for (unsigned look = 0; look < looks; ++look) {
      if (Method::arrived(cells, number)) return Method::payload(cells, number);
      if constexpr (pause) waiting.turn();
    }
    ::sched_yield();
  }
}

/// `number` of the first, and the trips there and back. Returns how many payloads were wrong.
using Trips = std::uint64_t (*)(std::size_t me, Cells* cells, Word number, std::uint64_t trips, Waiting waiting);

template <class Method, bool pause>
std::uint64_t go(std::size_t me, Cells* cells, Word number, std::uint64_t trips, Waiting waiting) {
  Cells &mine = cells[me], &theirs = cells[1 - me];
  std::uint64_t wrong = 0;
  for (const Word end = number + trips; number != end; ++number) {
    const Word payload = PayloadAlone::expected(number);
    if (me == 0) Method::put(mine, number, payload);
    wrong += wait_for<Method, pause>(theirs, number, waiting) != payload;
    if (me == 1) Method::put(mine, number, payload);
  }
  return wrong;
}

struct Formulation {
  const char* name;
  Trips trips, crowded_trips;
};
template <class Method>
constexpr Formulation looking(const char* name) {
  return {name, go<Method, false>, go<Method, true>};
}
constexpr Formulation formulations[] = {
    looking<NumberedCell>("numbered cell"),
    looking<CellsInTurn>("numbered cells in turn"),
    looking<PayloadAlone>("payload alone"),
    {"numbered cell, pausing", go<NumberedCell, true>, go<NumberedCell, true>},
};

}  // namespace

Job latency_job(const Options& options) {
  Job job;
  for (const Formulation& formulation : formulations) job.formulations.emplace_back(formulation.name);
  job.shared_bytes = sizeof(Cells) * 2 * std::size(formulations);
  job.body = [options](Pe& pe, std::byte* shared, std::optional<std::size_t> only, Outcome& outcome) {
    auto* const cells = reinterpret_cast<Cells*>(shared);
    RoundTrips trips(pe, [&](std::size_t i, Word number, std::uint64_t count) {
      const Formulation& formulation = formulations[i];
      const Trips go = pe.crowded() ? formulation.crowded_trips : formulation.trips;
      return go(pe.id(), cells + 2 * i, number, count, pe.waiting());
    });
    const std::uint64_t tried = std::min<std::uint64_t>(options.messages, 10'000);
    trips.measure(std::size(formulations), only, tried, options.messages, outcome);
  };
  return job;
}

}  // namespace headway::limit
