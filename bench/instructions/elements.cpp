// SPDX-License-Identifier: BSD-3-Clause
#include "cases.hpp"

namespace instructions {
namespace {

class Word : public headway::Element<Word, headway::Index<1>> {
 public:
  void apply(const Small& message) { word_ ^= message.values[1] + message.values[2] + message.values[3]; }
  std::uint64_t word() const { return word_; }
  static constexpr auto aggregation =
      headway::entries(headway::entry<&Word::apply>{{.buffer_bytes = 16384, .timeout = headway::no_timeout}});

 private:
  std::uint64_t word_ = 0;
};

}  // namespace

void fixed_32(Table& table, std::size_t n, unsigned shift) {
  on_one_pe([&](Pe& pe) {
    Aggregator<Small> messages(pe, {.buffer_bytes = 16384, .timeout = headway::no_timeout});
    std::uint64_t* const words = table.data();
    const unsigned top = shift;
    const std::size_t count = n;
    messages.on([words](const Small& message) { apply_32(words, message.values); });
    std::uint64_t a = 1;
    for (std::size_t i = 0; i < count; ++i) {
      a = next(a);
      messages.send(owner(a, top), {{a, a, i, i}});
    }
    pe.quiesce();
  });
}

void element_32(Table& table, std::size_t n) {
  on_one_pe([&](Pe& pe) {
    headway::Array<Word> words(pe, table.size());
    const std::size_t count = n;
    std::uint64_t a = 1;
    for (std::size_t i = 0; i < count; ++i) {
      a = next(a);
      words[std::int32_t(a & mask)].send<&Word::apply>(Small{{a, a, i, i}});
    }
    pe.quiesce();
    words.for_each_local([&](const Word& word) { table[std::size_t(word.index()[0])] = word.word(); });
  });
}

}  // namespace instructions
