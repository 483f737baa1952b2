// SPDX-License-Identifier: BSD-3-Clause
/// Checks of a sorted result that lies in pieces on all PEs: PE p's keys come before those of PE p + 1.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <headway/headway.hpp>
#include <options.hpp>
#include <span>
#include <string>
#include <vector>

#include "keys.hpp"

namespace headway::sorting {

/// A key and its index in the input: shows whether a sort is stable.
struct Pair {
  Key key;
  std::uint32_t index;
};

inline Key key_of(Key key) { return key; }
inline Key key_of(const Pair& pair) { return pair.key; }

/// Of all PEs together.
struct Verdict {
  std::uint64_t unordered = 0;  // keys that are less than the key before
  std::uint64_t unstable = 0;   // pairs of a key as the one before, with an index that is not larger
  std::uint64_t foreign = 0;    // pairs with another key than the input has at their index
  bool same_keys = true;        // as the input, each as often
  std::uint64_t checksum = 0;   // of keys and their places, for any number of PEs the same
  std::uint64_t largest = 0;    // number of keys of a PE
  std::uint64_t other = 0;      // errors that the program has found itself

  std::uint64_t errors() const { return unordered + unstable + foreign + !same_keys + other; }
  /// A line for people.
  std::string reason() const {
    std::string text;
    const auto add = [&](bool wrong, std::string what) {
      if (wrong) text += (text.empty() ? "" : "; ") + std::move(what);
    };
    add(unordered != 0, fmt::format("{} keys are less than the key before", unordered));
    add(unstable != 0, fmt::format("{} equal keys have changed their order", unstable));
    add(foreign != 0, fmt::format("{} keys are not the key of their index", foreign));
    add(!same_keys, "the sorted keys are not those of the input");
    add(other != 0, fmt::format("{} counts of messages are not as expected", other));
    return text;
  }
};

/// Collective. `items` are this PE's part of the result; it computes the keys of `input` from `first_index` to
/// `end_index` again, to compare. PEs may give the indices in any parts that cover all.
template <class Item>
Verdict verify(Pe& pe, const Input& input, std::uint64_t first_index, std::uint64_t end_index,
               std::span<const Item> items) {
  struct Piece {
    std::uint64_t count;
    Item first, last;
    Digest given, found;
  };
  struct Counts {
    std::uint64_t unordered, unstable, foreign, checksum;
  };
  constexpr bool paired = std::is_same_v<Item, Pair>;
  Piece mine{};
  mine.count = items.size();
  for (std::uint64_t i = first_index; i != end_index; ++i) mine.given.add(input.key(i));
  for (const Item& item : items) mine.found.add(key_of(item));
  if (!items.empty()) {
    mine.first = items.front();
    mine.last = items.back();
  }
  const std::vector<Piece> pieces = all_gather(pe, mine);

  Verdict verdict;
  Counts counts{};
  const auto follow = [&](const Item& before, const Item& after) {
    counts.unordered += key_of(after) < key_of(before);
    if constexpr (paired) counts.unstable += after.key == before.key && after.index <= before.index;
  };
  std::uint64_t place = 0;
  const Piece* before = nullptr;  // the last piece before this PE's that has keys
  for (std::size_t other = 0; other != pe.id(); ++other) {
    place += pieces[other].count;
    if (pieces[other].count != 0) before = &pieces[other];
  }
  if (before != nullptr && !items.empty()) follow(before->last, items.front());
  for (std::size_t i = 0; i != items.size(); ++i) {
    if (i != 0) follow(items[i - 1], items[i]);
    if constexpr (paired) counts.foreign += items[i].index >= input.keys || items[i].key != input.key(items[i].index);
    counts.checksum += placed(place + i, key_of(items[i]));
  }
  counts = allreduce(pe, counts, [](const Counts& a, const Counts& b) {
    return Counts{a.unordered + b.unordered, a.unstable + b.unstable, a.foreign + b.foreign, a.checksum + b.checksum};
  });
  Digest given, found;
  for (const Piece& piece : pieces) {
    given.add(piece.given);
    found.add(piece.found);
    verdict.largest = std::max(verdict.largest, piece.count);
  }
  verdict.unordered = counts.unordered;
  verdict.unstable = counts.unstable;
  verdict.foreign = counts.foreign;
  verdict.checksum = counts.checksum;
  verdict.same_keys = given == found && given.count == input.keys;
  return verdict;
}

/// The allowed values of --spoil-what.
inline const std::array<std::string, 3> spoilings = {"order", "key", "index"};

/// Damages up to `count` items, to test the checks: "order" exchanges unequal neighbours, "key" doubles a key in place
/// of its neighbour, and "index" exchanges the indices of equal neighbours.
template <class Item>
void spoil(std::span<Item> items, std::uint64_t count, const std::string& what) {
  for (std::size_t i = 1; i < items.size() && count > 0; ++i) {
    const bool equal = key_of(items[i - 1]) == key_of(items[i]);
    if (what == "index" ? !equal : equal) continue;
    if (what == "key")
      items[i] = items[i - 1];
    else
      std::swap(items[i - 1], items[i]);
    --count;
  }
}

/// Collective. The largest resident memory of a process so far, with all its PEs.
inline std::uint64_t peak_memory_bytes(Pe& pe) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::uint64_t(bench::max_over_pes(pe, double(usage.ru_maxrss) * 1024));
}

/// The rest of a record, and a line on standard error where the result is wrong. On PE 0.
inline void add_verdict(bench::Json& record, const std::string& program, const Input& input, const Verdict& verdict,
                        double seconds, std::size_t pes, std::uint64_t peak_memory) {
  record["keys"] = input.keys;
  record["distinct"] = input.distinct;
  record["keys_per_second"] = seconds > 0 ? double(input.keys) / seconds : 0;
  record["balance"] = double(verdict.largest) * double(pes) / double(input.keys);
  record["peak_memory_bytes"] = peak_memory;
  record["checksum"] = verdict.checksum;
  record["errors"] = verdict.errors();
  if (verdict.errors() != 0) std::fputs(fmt::format("{}: wrong: {}\n", program, verdict.reason()).c_str(), stderr);
}

}  // namespace headway::sorting
