// SPDX-License-Identifier: BSD-3-Clause
/// A map spread over all PEs, visited where each key lives: how often each word of a text comes, and where first.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "program.hpp"

/// Each key lives on one PE.
template <class Key, class Value>
class DistributedMap {
 public:
  using Part = std::unordered_map<Key, Value>;

  /// Collective.
  DistributedMap(headway::Pe& pe, const headway::AggregatorOptions& options)
      : pes_(pe.size()), calls_(pe, options), part_(pe) {}

  /// Calls visit(value, args...) where `key` lives, with a new value if there was none.
  template <class Visit, class... Args>
  void visit(const Key& key, Visit, const Args&... args) {
    constexpr auto there = [](Part& part, const Key& k, const Args&... a) { Visit()(part[k], a...); };
    calls_.rpc_ff(std::hash<Key>()(key) % pes_, there, part_, key, args...);
  }

  const Part& part() const { return *part_; }

 private:
  std::size_t pes_;
  headway::CallAggregator calls_;
  headway::DistObject<Part> part_;
};

constexpr std::string_view text =
    "the sun was shining on the sea shining with all his might he did his very best to make the billows smooth and "
    "bright and this was odd because it was the middle of the night the moon was shining sulkily because she thought "
    "the sun had got no business to be there after the day was done it is very rude of him she said to come and spoil "
    "the fun the sea was wet as wet could be the sands were dry as dry you could not see a cloud because no cloud was "
    "in the sky no birds were flying over head there were no birds to fly ";

struct Entry {
  std::size_t count = 0;
  std::size_t first = ~std::size_t(0);
  bool operator==(const Entry&) const = default;
};

/// Calls visit(word, position) for all words of many copies of the text; in each a few words are new.
template <class Visit>
void for_each_word(Visit visit) {
  std::size_t position = 0;
  for (std::size_t copy = 0; copy < 200; ++copy) {
    for (std::size_t begin = 0, end; (end = text.find(' ', begin)) != text.npos; begin = end + 1) {
      const std::string word(text.substr(begin, end - begin));
      visit(position % 16 == 0 ? word + std::to_string(copy) : word, position);
      ++position;
    }
  }
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    DistributedMap<std::string, Entry> words(pe, program::options(argc, argv));
    const auto note = [](Entry& entry, std::size_t position) {
      ++entry.count;
      entry.first = std::min(entry.first, position);
    };
    for_each_word([&](const std::string& word, std::size_t position) {
      if (position % pe.size() == pe.id()) words.visit(word, note, position);
    });
    pe.quiesce();

    std::unordered_map<std::string, Entry> expected;
    for_each_word([&](const std::string& word, std::size_t position) { note(expected[word], position); });
    bool right = program::sum(pe, words.part().size()) == expected.size();
    for (const auto& [word, entry] : words.part()) right &= entry == expected[word];
    return program::finish(pe, right, "different words", expected.size());
  });
}
