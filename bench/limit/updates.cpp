// SPDX-License-Identifier: BSD-3-Clause
/// Random updates of a table by each PE alone: what messages would do, without any.
#include <bit>

#include "measure.hpp"
#include "messages.hpp"

namespace headway::limit {
namespace {

/// Applies `updates` elements of the sequence, from element `from` on. All formulations apply the same ones.
using Apply = void (*)(Word* table, Word mask, std::uint64_t from, std::uint64_t updates);

void one_by_one(Word* table, Word mask, std::uint64_t from, std::uint64_t updates) {
  Sequence sequence{randomaccess::starts(from)};
  for (std::uint64_t i = 0; i < updates; ++i) {
    const Word a = sequence.next();
    table[a & mask] ^= a;
  }
}

/// Several parts of the sequence at once: none waits for the element before.
template <std::size_t Parts>
void in_parts(Word* table, Word mask, std::uint64_t from, std::uint64_t updates) {
  const std::uint64_t each = updates / Parts;
  Sequence sequences[Parts];
  for (std::size_t part = 0; part < Parts; ++part) sequences[part].state = randomaccess::starts(from + part * each);
  for (std::uint64_t i = 0; i < each; ++i) {
    Word a[Parts];
    for (std::size_t part = 0; part < Parts; ++part) a[part] = sequences[part].next();
    for (std::size_t part = 0; part < Parts; ++part) table[a[part] & mask] ^= a[part];
  }
  one_by_one(table, mask, from + Parts * each, updates - Parts * each);
}

/// Blocks of elements are made first, and their words asked for.
template <std::size_t Block>
void in_blocks(Word* table, Word mask, std::uint64_t from, std::uint64_t updates) {
  Sequence sequence{randomaccess::starts(from)};
  Word block[Block];
  for (std::uint64_t left = updates; left > 0;) {
    const std::size_t count = left < Block ? left : Block;
    for (std::size_t i = 0; i < count; ++i) {
      block[i] = sequence.next();
      __builtin_prefetch(&table[block[i] & mask], 1);
    }
    for (std::size_t i = 0; i < count; ++i) table[block[i] & mask] ^= block[i];
    left -= count;
  }
}

struct Formulation {
  const char* name;
  Apply apply;
};
constexpr Formulation formulations[] = {{"one by one", one_by_one},
                                        {"in 4 parts", in_parts<4>},
                                        {"in 8 parts", in_parts<8>},
                                        {"in blocks of 64", in_blocks<64>},
                                        {"in blocks of 512", in_blocks<512>}};

}  // namespace

Job updates_job(const Options& options) {
  Job job;
  for (const Formulation& formulation : formulations) job.formulations.emplace_back(formulation.name);
  job.body = [options](Pe& pe, std::byte*, std::optional<std::size_t> only, Outcome& outcome) {
    const std::uint64_t words = std::bit_floor(((std::uint64_t(1) << options.table_log2) + pe.size() - 1) / pe.size());
    const Memory memory(Memory::Kind::own, words * word_bytes);
    Word* const table = reinterpret_cast<Word*>(memory.data());
    for (std::uint64_t i = 0; i < words; ++i) table[i] = i;
    const std::uint64_t from = pe.id() * options.messages;
    const auto pass = [&](std::size_t formulation, std::uint64_t updates) {
      pe.meet_all();
      const double begin = now();
      formulations[formulation].apply(table, words - 1, from, updates);
      const double seconds = now() - begin;
      one_by_one(table, words - 1, from, updates);  // each update is its own inverse
      return seconds;
    };
    const std::uint64_t tried = std::min<std::uint64_t>(options.messages, 1 << 20);
    measure_best(pe, std::size(formulations), only, tried, options.messages, outcome, pass);
    std::uint64_t errors = 0;
    for (std::uint64_t i = 0; i < words; ++i) errors += table[i] != i;
    errors = pe.sum_of_all(errors);
    if (pe.id() != 0) return;
    outcome.messages = options.messages * pe.size();
    outcome.tried_messages = tried * pe.size();
    outcome.errors = errors;
  };
  return job;
}

}  // namespace headway::limit
