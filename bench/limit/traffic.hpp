// SPDX-License-Identifier: BSD-3-Clause
/// The numbers of the messages from each sender to each receiver. Receivers know them too, and verify by them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "deliver.hpp"
#include "measure.hpp"
#include "messages.hpp"

namespace headway::limit {

class Traffic {
 public:
  explicit Traffic(const Options& options)
      : pattern_(options.pattern == Pattern::others && options.pes == 2 ? Pattern::pairs : options.pattern),
        pes_(options.pes),
        each_(options.messages),
        log2_(options.table_log2 > 0 ? options.table_log2 : 32),
        table_(options.table_log2 > 0) {}

  std::size_t pes() const { return pes_; }
  bool table() const { return table_; }
  bool sends(std::size_t pe) const { return pattern_ != Pattern::one_way || pe % 2 == 0; }
  bool receives_from(std::size_t me, std::size_t source) const {
    if (pattern_ == Pattern::both_ways) return true;
    if (pattern_ == Pattern::others) return source != me;
    return source == (me ^ 1) && sends(source);
  }
  /// Whether each sender has but one.
  bool one_target() const { return pattern_ == Pattern::one_way || pattern_ == Pattern::pairs; }
  std::uint64_t senders() const { return pattern_ == Pattern::one_way ? pes_ / 2 : pes_; }

  /// The PEs that `pe` may send to.
  std::vector<std::size_t> targets(std::size_t pe) const {
    std::vector<std::size_t> all;
    for (std::size_t target = 0; target < pes_; ++target) {
      if (receives_from(target, pe)) all.push_back(target);
    }
    return all;
  }

  /// From here on each sender skips its first `messages` numbers, where they are random.
  void skip(std::uint64_t messages) { skipped_ = messages; }

  /// Calls body(numbers, target) with the numbers that `source` sends, and where each goes.
  template <class Body>
  void with_numbers_of(std::size_t source, Body&& body) const {
    const Sequence sequence{randomaccess::starts(source * each_ + skipped_)};
    if (pattern_ == Pattern::others) {
      if (table_) return body(sequence, InTurn{source, pes_, source});
      return body(Indices{0}, InTurn{source, pes_, source});
    }
    if (pattern_ != Pattern::both_ways) {
      if (pattern_ == Pattern::pairs && !table_) return body(Indices{0}, Always{source ^ 1});
      return body(sequence, Always{source ^ 1});
    }
    if (even()) return body(sequence, HighBits{log2_ - pes_log2(), pes_ - 1});
    return body(sequence, Scaled{mask_of(log2_), pes_, log2_});
  }

  /// Calls visit(source, number) for all that `me` gets when every sender sends `messages`.
  template <class Visit>
  void for_each_to(std::size_t me, std::uint64_t messages, Visit&& visit) const {
    for (std::size_t source = 0; source < pes_; ++source) {
      if (!receives_from(me, source)) continue;
      with_numbers_of(source, [&](auto numbers, auto target) {
        for (std::uint64_t i = 0; i < messages; ++i) {
          const Word number = numbers.next();
          if (target(number) == me) visit(source, number);
        }
      });
    }
  }

  // The table: 2^log2 words over all PEs. `pe` owns [begin, end) of the words that `mask` selects.
  Word mask() const { return pattern_ == Pattern::both_ways ? mask_of(log2_) : mask_of(part_log2()); }
  std::uint64_t table_begin(std::size_t pe) const {
    if (pattern_ != Pattern::both_ways) return 0;
    return ((std::uint64_t(pe) << log2_) + pes_ - 1) / pes_;
  }
  std::uint64_t table_end(std::size_t pe) const {
    return pattern_ == Pattern::both_ways ? table_begin(pe + 1) : mask() + 1;
  }

 private:
  static Word mask_of(unsigned log2) { return (Word(1) << log2) - 1; }
  unsigned pes_log2() const { return unsigned(std::bit_width(pes_ - 1)); }  // rounded up
  bool even() const { return std::has_single_bit(pes_) && pes_log2() <= log2_; }
  unsigned part_log2() const { return log2_ > pes_log2() ? log2_ - pes_log2() : 0; }

  Pattern pattern_;
  std::size_t pes_;
  std::uint64_t each_;
  std::uint64_t skipped_ = 0;
  unsigned log2_;  // of the numbers' bits that say where to
  bool table_;
};

}  // namespace headway::limit
