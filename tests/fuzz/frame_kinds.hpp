// SPDX-License-Identifier: BSD-3-Clause
/// Aggregators of every kind, calls, and handlers that read all of their messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/random.hpp>
#include <headway/call/calls.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway::fuzz {

struct Wide {
  std::uint64_t words[4];
};
struct alignas(64) Aligned {
  std::uint64_t words[8];
};
struct Large {
  std::uint32_t words[1600];  // goes in parts
};

/// What handlers have seen: that they look at all of it, and that their source is one.
struct Seen {
  std::size_t pes;
  std::uint64_t sum = 0;
  const char* broken = nullptr;

  void source(PeId pe) {
    if (pe.value >= pes) broken = "a handler is given a source that is no PE";
  }
  void bytes(const void* at, std::size_t size) {
    const auto* byte = static_cast<const unsigned char*>(at);
    for (std::size_t i = 0; i < size; ++i) sum += byte[i];
  }
  template <class T>
  void one(const T& value) {
    if (reinterpret_cast<std::uintptr_t>(&value) % alignof(T) != 0) broken = "a message is not aligned";
    bytes(&value, sizeof value);
  }
  template <class T>
  void all(std::span<const T> values) {
    if (reinterpret_cast<std::uintptr_t>(values.data()) % alignof(T) != 0) broken = "a view is not aligned";
    bytes(values.data(), values.size_bytes());
  }
  void text(std::string_view text) { bytes(text.data(), text.size()); }
};

inline Seen* seen = nullptr;  // of the PE that decodes, for functions without captures

inline void plain_function(std::uint64_t value) { seen->one(value); }
inline void function_of_text(Pe&, PeId source, std::string_view text) {
  seen->source(source);
  seen->text(text);
}

using Words = std::span<const std::uint64_t>;
using Table = std::map<std::string, std::vector<std::uint32_t>>;

/// One of each kind of aggregator. Made on every PE, so that all can send what one of them decodes.
class Kinds {
 public:
  Kinds(Pe& pe, Seen& s)
      : pe_(pe),
        number_(pe, std::uint64_t(1)),
        text_(pe, "text"),
        fixed_(pe, small()),
        fixed_2d_(pe, small(2)),
        fixed_3d_(pe, small(3)),
        wide_source_(pe, small(2)),
        aligned_(pe, small()),
        aligned_2d_(pe, small(2)),
        fixed_direct_(pe, {.topology = direct()}),
        large_(pe, small()),
        words_(pe, small()),
        words_2d_(pe, small(2)),
        words_ordered_(pe, ordered(1)),
        texts_ordered_2d_(pe, ordered(2)),
        texts_ordered_3d_(pe, ordered(3)),
        texts_direct_(pe, {.topology = direct()}),
        mixed_(pe, small(2)),
        tables_(pe, small()),
        tables_source_(pe, small(2)),
        calls_2d_(pe, small(2)),
        silent_(pe, small()),
        destroyed_(std::in_place, pe, small()),
        fixed_wps_(pe, small(1, Scheme::wps)),
        fixed_wps_too_(pe, small(1, Scheme::wps)),
        words_wps_2d_(pe, small(2, Scheme::wps)),
        texts_ordered_wps_(pe, ordered(1, Scheme::wps)),
        fixed_pp_(pe, small(1, Scheme::pp)),
        aligned_pp_(pe, small(1, Scheme::pp)),
        words_pp_2d_(pe, small(2, Scheme::pp)),
        fixed_whs_(pe, small(1, Scheme::whs)),
        wide_hh_(pe, small(1, Scheme::hh)),
        words_hh_2d_(pe, small(2, Scheme::hh)) {
    fixed_.on([&s](std::uint64_t v) { s.one(v); });
    fixed_2d_.on([&s](const std::uint64_t& v) { s.one(v); });
    fixed_3d_.on([&s](PeId source, std::uint32_t, std::uint8_t) { s.source(source); });
    wide_source_.on([&s](PeId source, const Wide& v) { s.source(source), s.one(v); });
    aligned_.on([&s](const Aligned& v) { s.one(v); });
    aligned_2d_.on([&s](const Aligned& v) { s.one(v); });
    fixed_direct_.on([&s](const std::uint64_t& v) { s.one(v); });
    large_.on([&s](const Large& v) { s.one(v); });
    words_.on([&s](Words v) { s.all(v); });
    words_2d_.on([&s](PeId source, Words v) { s.source(source), s.all(v); });
    words_ordered_.on([&s](Words v) { s.all(v); });
    texts_ordered_2d_.on([&s](PeId source, std::string_view v) { s.source(source), s.text(v); });
    texts_ordered_3d_.on([&s](std::string_view v) { s.text(v); });
    texts_direct_.on([&s](std::string_view v) { s.text(v); });
    mixed_.on(
        [&s](const std::uint32_t& n, std::string_view t, std::span<const double> d) { s.one(n), s.text(t), s.all(d); });
    tables_.on([&s](const Table& table) { look_at(s, table); });
    tables_source_.on([&s](PeId source, std::uint64_t, const Table& table, const std::string& text) {
      s.source(source), look_at(s, table), s.text(text);
    });
    destroyed_->on([](std::uint16_t) {});
    destroyed_.reset();
    fixed_wps_.on([&s](PeId source, std::uint64_t v) { s.source(source), s.one(v); });
    fixed_wps_too_.on([&s](const std::uint64_t& v) { s.one(v); });
    words_wps_2d_.on([&s](PeId source, Words v) { s.source(source), s.all(v); });
    texts_ordered_wps_.on([&s](std::string_view v) { s.text(v); });
    fixed_pp_.on([&s](PeId source, std::uint64_t v) { s.source(source), s.one(v); });
    aligned_pp_.on([&s](const Aligned& v) { s.one(v); });
    words_pp_2d_.on([&s](Words v) { s.all(v); });
    fixed_whs_.on([&s](const std::uint64_t& v) { s.one(v); });
    wide_hh_.on([&s](PeId source, const Wide& v) { s.source(source), s.one(v); });
    words_hh_2d_.on([&s](PeId source, Words v) { s.source(source), s.all(v); });
  }

  /// Sends to every PE from every kind, `times` of each.
  void send(std::size_t times, Random& random) {
    for (std::size_t to = 0; to < pe_.size(); ++to) {
      for (std::size_t i = 0; i < times; ++i) send_one(to, random);
      if (times == 1) send_long(to);
    }
  }

  void flush() { pe_.engine().flush_all(am::FlushReason::requested); }

 private:
  static AggregatorOptions small(unsigned dimensions = 1, Scheme scheme = Scheme::ww) {
    return {.buffer_bytes = 1_KiB, .topology = grid(dimensions, scheme)};
  }
  static AggregatorOptions ordered(unsigned dimensions, Scheme scheme = Scheme::ww) {
    return {.buffer_bytes = 1_KiB, .topology = grid(dimensions, scheme), .ordered = true};
  }
  static void look_at(Seen& s, const Table& table) {
    for (const auto& [name, values] : table) s.text(name), s.bytes(values.data(), values.size() * 4);
  }

  void send_one(std::size_t to, Random& random) {
    const std::uint64_t word = random.next();
    std::vector<std::uint64_t> words(random.below(6), word);
    const std::string text(random.below(20), 'x');
    const std::vector<double> doubles(random.below(4), 1.5);
    fixed_.send(to, word), fixed_2d_.send(to, word), fixed_3d_.send(to, std::uint32_t(word), 7);
    wide_source_.send(to, {word, 1, 2, 3}), fixed_direct_.send(to, word);
    aligned_.send(to, Aligned{{word}}), aligned_2d_.send(to, Aligned{{word}});
    words_.send(to, words), words_2d_.send(to, words), words_ordered_.send(to, words);
    texts_ordered_2d_.send(to, text), texts_ordered_3d_.send(to, text), texts_direct_.send(to, text);
    mixed_.send(to, std::uint32_t(word), text, doubles);
    const Table table{{text, {1, 2, 3}}, {"", {}}};
    tables_.send(to, table), tables_source_.send(to, word, table, text);
    fixed_wps_.send(to, word), fixed_wps_too_.send(to, word), fixed_pp_.send(to, word);
    words_wps_2d_.send(to, words), words_pp_2d_.send(to, words), texts_ordered_wps_.send(to, text);
    aligned_pp_.send(to, Aligned{{word}});
    fixed_whs_.send(to, word), wide_hh_.send(to, {word, 1, 2, 3}), words_hh_2d_.send(to, words);
    for (CallAggregator* calls : {&call::default_calls(pe_), &calls_2d_}) {
      calls->rpc_ff(
          to, [](std::uint64_t v) { seen->one(v); }, word);
      calls->rpc_ff(
          to, [](Pe&, PeId source, std::string_view t) { seen->source(source), seen->text(t); }, text);
      calls->rpc_ff(
          to, [](const Aligned& v) { seen->one(v); }, Aligned{{word}});
      calls->rpc_ff(
          to, [](std::uint64_t& n, std::string& t) { seen->one(n), seen->text(t); }, number_, text_);
      calls->rpc_ff(
          to, [](const Table& t) { look_at(*seen, t); }, table);
      calls->rpc_ff(to, &plain_function, word);
      calls->rpc_ff(to, &function_of_text, text);
    }
  }

  /// Messages by themselves, in one frame and in parts.
  void send_long(std::size_t to) {
    large_.send(to, Large{});
    const std::string text(2000, 'x'), longer(9000, 'y');
    const std::vector<std::uint64_t> words(40, 7), more(700, 9);
    words_.send(to, words), words_.send(to, more), words_2d_.send(to, words), words_ordered_.send(to, more);
    texts_ordered_2d_.send(to, text), texts_ordered_3d_.send(to, text), texts_direct_.send(to, longer);
    texts_ordered_wps_.send(to, text), words_pp_2d_.send(to, words);
    mixed_.send(to, 1, text, std::vector<double>(20, 2.5));
    tables_.send(to, {{text, std::vector<std::uint32_t>(100, 3)}});
  }

  Pe& pe_;
  DistObject<std::uint64_t> number_;
  DistObject<std::string> text_;
  Aggregator<std::uint64_t> fixed_, fixed_2d_;
  Aggregator<std::uint32_t, std::uint8_t> fixed_3d_;
  Aggregator<Wide> wide_source_;
  Aggregator<Aligned> aligned_, aligned_2d_;
  Aggregator<std::uint64_t> fixed_direct_;
  Aggregator<Large> large_;
  Aggregator<Words> words_, words_2d_, words_ordered_;
  Aggregator<std::string_view> texts_ordered_2d_, texts_ordered_3d_, texts_direct_;
  Aggregator<std::uint32_t, std::string_view, std::span<const double>> mixed_;
  Aggregator<Table> tables_;
  Aggregator<std::uint64_t, Table, std::string> tables_source_;
  CallAggregator calls_2d_;
  Aggregator<std::uint16_t> silent_;  // without a handler
  std::optional<Aggregator<std::uint16_t>> destroyed_;
  Aggregator<std::uint64_t> fixed_wps_, fixed_wps_too_;  // grids of PEs where each is a process
  Aggregator<Words> words_wps_2d_;
  Aggregator<std::string_view> texts_ordered_wps_;
  Aggregator<std::uint64_t> fixed_pp_;
  Aggregator<Aligned> aligned_pp_;
  Aggregator<Words> words_pp_2d_;
  Aggregator<std::uint64_t> fixed_whs_;  // grids of PEs where all are on one host
  Aggregator<Wide> wide_hh_;
  Aggregator<Words> words_hh_2d_;
};

}  // namespace headway::fuzz
