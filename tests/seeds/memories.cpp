// SPDX-License-Identifier: BSD-3-Clause
#include "memories.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ledger.hpp"

namespace seeds {
namespace {

enum class Access : std::uint8_t { untouched, put, store, add };
constexpr std::size_t accesses = 4;

}  // namespace

void Memories::make(std::size_t index) {
  const MemoryPlan& plan = program_.memories[index];
  Place& place = places_[index];
  place.array = std::make_unique<headway::DistArray<Word>>(pe_, plan.elements, plan.block);
  place.memory = std::make_unique<headway::GlobalMemory>(
      pe_, headway::GlobalOptions{.aggregation = plan.options, .mapped = plan.mapped});
}

Memories::Word Memories::value(std::size_t index, std::size_t element) const {
  switch (Access(draw(index, element, 0) % accesses)) {
    case Access::put:
    case Access::store: return draw(index, element, 1);
    case Access::add: return 2 * draw(index, element, 1);
    default: return 0;
  }
}

bool Memories::take_one(const Round& round, Random& random) {
  for (std::size_t index = 0; index < places_.size(); ++index) {
    const MemoryPlan& plan = program_.memories[index];
    Place& place = places_[index];
    const std::size_t elements = random.size(1, plan.elements);
    if (plan.written == round.number && place.written < plan.elements) return write(index, elements), true;
    if (plan.read == round.number && place.read < plan.elements) return read(index, elements, random), true;
  }
  return false;
}

void Memories::write(std::size_t index, std::size_t elements) {
  Place& place = places_[index];
  headway::GlobalMemory& memory = *place.memory;
  for (; elements > 0 && place.written < place.array->size(); --elements, ++place.written) {
    const std::size_t i = place.written;
    const headway::GlobalPtr<Word> at = (*place.array)[i];
    const Word word = draw(index, i, 1);
    const std::size_t writer = draw(index, i, 2) % pe_.size(), other = draw(index, i, 3) % pe_.size();
    const bool mine = writer == pe_.id();
    switch (Access(draw(index, i, 0) % accesses)) {
      case Access::untouched: break;
      case Access::put:
        if (mine) memory.put(at, word);
        break;
      case Access::store:
        if (mine) memory.store(at, word);
        break;
      case Access::add:
        if (mine) memory.add(at, word);
        if (other == pe_.id()) memory.add(at, word);
    }
  }
  if (place.written == place.array->size()) memory.sync();
}

void Memories::read(std::size_t index, std::size_t elements, Random& random) {
  Place& place = places_[index];
  headway::GlobalMemory& memory = *place.memory;
  const std::size_t first = place.read;
  place.read = std::min(first + elements, place.array->size());
  std::vector<Word> words(place.read - first);
  for (std::size_t i = first; i < place.read; ++i) {
    const headway::GlobalPtr<Word> at = (*place.array)[i];
    if (random.one_in(8)) {
      words[i - first] = random.one_in(2) ? memory.read(at) : memory.fetch_add(at, Word(0));
    } else {
      memory.get(at, &words[i - first]);
    }
  }
  memory.sync();
  for (std::size_t i = first; i < place.read; ++i) {
    if (words[i - first] == value(index, i)) continue;
    throw Violation(
        fmt::format("element {} of memory {} is read as {:x}, not {:x}", i, index, words[i - first], value(index, i)));
  }
}

bool Memories::destroy_one(const Round& round) {
  for (std::size_t index = 0; index < places_.size(); ++index) {
    const bool is_over = round.phase > program_.rounds[program_.memories[index].read]->phase;
    if (!is_over || places_[index].memory == nullptr) continue;
    places_[index].memory.reset();
    return true;
  }
  return false;
}

void Memories::check(std::size_t phase) const {
  for (std::size_t index = 0; index < places_.size(); ++index) {
    if (program_.rounds[program_.memories[index].written]->phase != phase) continue;
    const headway::DistArray<Word>& array = *places_[index].array;
    for (std::size_t j = 0; j < array.local().size(); ++j) {
      const std::size_t i = array.layout().global(pe_.id(), j);
      if (array.local()[j] == value(index, i)) continue;
      throw Violation(fmt::format("element {} of memory {} is {:x} behind quiesce(), not {:x}", i, index,
                                  array.local()[j], value(index, i)));
    }
  }
}

}  // namespace seeds
