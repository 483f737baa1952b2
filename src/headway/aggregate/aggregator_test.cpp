// SPDX-License-Identifier: BSD-3-Clause
// Aggregator: messages of all types and sizes on every route, and handlers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::Shared;
using testing::topologies;

constexpr std::size_t pes_most = 13;

/// What went from one PE to another, as one side saw it: sums that loss, repetition and change alter.
struct Tally {
  std::uint64_t messages, sum, mixed;
  void add(std::uint64_t value) {
    ++messages;
    sum += value;
    mixed ^= (value + 1) * 0x9e3779b97f4a7c15;
  }
  bool operator==(const Tally&) const = default;
};

/// Sent and handled tallies of every pair of PEs.
class Ledger {
 public:
  Tally& sent(std::size_t source, std::size_t target) { return sent_[source * pes_most + target]; }
  Tally& handled(std::size_t source, std::size_t target) { return handled_[source * pes_most + target]; }
  void expect_balanced() {
    std::uint64_t messages = 0;
    for (std::size_t s = 0; s < pes_most; ++s) {
      for (std::size_t t = 0; t < pes_most; ++t) {
        messages += sent(s, t).messages;
        EXPECT_EQ(sent(s, t).messages, handled(s, t).messages) << s << " -> " << t;
        EXPECT_EQ(sent(s, t), handled(s, t)) << s << " -> " << t;
      }
    }
    EXPECT_GT(messages, 0u);
  }

 private:
  Shared<Tally> sent_{pes_most * pes_most}, handled_{pes_most * pes_most};
};

struct Mark {
  std::uint32_t source;
  std::uint32_t number;
};

TEST(Aggregator, every_message_is_handled_once_where_it_was_sent_to_on_every_route) {
  for (const Shape shape : shapes) {
    Ledger ledger;
    expect_run(shape, [&](Pe& pe) {
      for (const Topology topology : topologies) {
        Aggregator<Mark> marks(pe, {.buffer_bytes = 1_KiB, .topology = topology});
        marks.on([&](const Mark& mark) { ledger.handled(mark.source, pe.id()).add(mark.number); });
        for (std::uint32_t i = 0; i < 3000; ++i) {
          const std::size_t target = (i * 7 + i / 11) % pe.size();
          marks.send(target, {std::uint32_t(pe.id()), i});
          ledger.sent(pe.id(), target).add(i);
        }
        EXPECT_EQ(pe.quiesce(), 3000 * pe.size());
      }
    });
    ledger.expect_balanced();
  }
}

/// Content that shows changes and mix-ups: each number has another part of one pattern.
std::span<const std::uint8_t> content(std::size_t bytes, std::uint32_t number) {
  static const std::vector<std::uint8_t> pattern = [] {
    std::vector<std::uint8_t> result(2_MiB);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::uint8_t(i * 167 + i / 251);
    return result;
  }();
  return std::span(pattern).subspan(number, bytes);
}

TEST(Aggregator, messages_of_any_size_arrive_unchanged) {
#if defined(__SANITIZE_THREAD__)  // where a part takes a hundred times as long, one message of a thousand parts in
                                  // order
  constexpr std::size_t in_order_max = 70'001, in_order_besides = 262'144;
#else
  constexpr std::size_t in_order_max = 1'048'577, in_order_besides = 0;
#endif
  constexpr std::size_t sizes[] = {0,     1,      2,      3,      7,      8,      9,      31,   32,   33,
                                   63,    64,     65,     100,    200,    223,    224,    225,  255,  256,
                                   257,   400,    1000,   1023,   1024,   1025,   4096,   5000, 9999, 65536,
                                   70001, 262080, 262112, 262144, 300000, 524288, 1048577};
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{5, 2}, Shape{8, 4}}) {
    Ledger ledger;
    expect_run(shape, [&](Pe& pe) {
      for (const Topology topology : topologies) {
        for (const bool ordered : {false, true}) {
          for (const std::size_t buffer_bytes : {std::size_t(256), 1_KiB, 64_KiB}) {
            if (ordered && buffer_bytes != 256) continue;  // where most messages take several parts
            const AggregatorOptions options{.buffer_bytes = buffer_bytes, .topology = topology, .ordered = ordered};
            Aggregator<std::uint32_t, std::uint32_t, std::span<const std::uint8_t>> texts(pe, options);
            texts.on([&](std::uint32_t source, std::uint32_t number, std::span<const std::uint8_t> bytes) {
              const bool unchanged =
                  bytes.empty() || std::memcmp(bytes.data(), content(bytes.size(), number).data(), bytes.size()) == 0;
              ledger.handled(source, pe.id()).add(unchanged ? bytes.size() * 1000 + number : 0);
            });
            std::uint32_t number = 0;
            std::uint64_t sent = 0;
            for (const std::size_t bytes : sizes) {
              if (ordered && bytes > in_order_max && bytes != in_order_besides) continue;
              const std::size_t target = (pe.id() + number) % pe.size();
              texts.send(target, std::uint32_t(pe.id()), number, content(bytes, number));
              ledger.sent(pe.id(), target).add(bytes * 1000 + number);
              ++number, ++sent;
            }
            EXPECT_EQ(pe.quiesce(), sent * pe.size());
          }
        }
      }
    });
    ledger.expect_balanced();
  }
}

TEST(Aggregator, a_message_of_many_megabytes_needs_no_more_frame_memory_than_the_budget) {
  expect_run({2, 1},
             [](Pe& pe) {
               for (const bool ordered : {false, true}) {
                 Aggregator<std::span<const std::uint64_t>> vectors(pe, {.ordered = ordered});
                 std::uint64_t handled = 0;
                 vectors.on([&](PeId source, std::span<const std::uint64_t> numbers) {
                   handled += numbers.size();
                   for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i * 3 + source);
                 });
                 std::vector<std::uint64_t> numbers(3'000'000);
                 for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 3 + pe.id();
                 vectors.send(1 - pe.id(), numbers);
                 EXPECT_EQ(pe.quiesce(), 2u);
                 EXPECT_EQ(handled, numbers.size());
               }
             },
             {{"HEADWAY_BUDGET", "1M"}});
}

TEST(Aggregator, a_pe_may_send_to_itself_at_any_size_on_any_route) {
  for (const Shape shape : {Shape{1, 1}, Shape{5, 5}}) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        for (const bool ordered : {false, true}) {
          Aggregator<std::string_view> texts(pe, {.topology = topology, .ordered = ordered});
          std::size_t messages = 0, bytes = 0;
          texts.on([&](PeId source, std::string_view text) {
            EXPECT_EQ(source, pe.id());
            ++messages;
            bytes += text.size();
          });
          std::size_t sent = 0;
          for (const std::size_t size : {0, 1, 100, 10'000, 1'000'000}) {
            texts.send(pe.id(), std::string(size, 'x'));
            sent += size;
          }
          EXPECT_EQ(pe.quiesce(), 5 * pe.size());
          EXPECT_EQ(messages, 5u);
          EXPECT_EQ(bytes, sent);
        }
      }
    });
  }
}

TEST(Aggregator, a_handler_may_take_the_pe_and_the_source) {
  expect_run({7, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      const AggregatorOptions options{.buffer_bytes = 512, .topology = topology};
      std::size_t plain = 0, with_source = 0, with_pe = 0, with_both = 0, variable = 0;
      Aggregator<Mark> a(pe, options), b(pe, options), c(pe, options), d(pe, options);
      Aggregator<Mark, std::span<const std::uint8_t>> e(pe, options);
      a.on([&](const Mark&) { ++plain; });
      b.on([&](PeId source, const Mark& mark) {
        EXPECT_EQ(source, mark.source);
        ++with_source;
      });
      c.on([&](Pe& here, const Mark&) {
        EXPECT_EQ(&here, &pe);
        ++with_pe;
      });
      d.on([&](Pe& here, PeId source, const Mark& mark) {
        EXPECT_EQ(&here, &pe);
        EXPECT_EQ(source, mark.source);
        ++with_both;
      });
      e.on([&](PeId source, const Mark& mark, std::span<const std::uint8_t>) {
        EXPECT_EQ(source, mark.source);
        ++variable;
      });
      const std::vector<std::uint8_t> zeros(600'000);
      for (std::uint32_t i = 0; i < 200; ++i) {
        for (std::size_t target = 0; target < pe.size(); ++target) {
          const Mark mark{std::uint32_t(pe.id()), i};
          a.send(target, mark), b.send(target, mark), c.send(target, mark), d.send(target, mark);
          const std::size_t bytes = i == 7 ? 600'000 : i % 10 == 3 ? 5000 : i % 40;  // in parts, alone, buffered
          e.send(target, mark, std::span(zeros.data(), bytes));
        }
      }
      EXPECT_EQ(pe.quiesce(), 5 * 200 * pe.size() * pe.size());
      for (const std::size_t handled : {plain, with_source, with_pe, with_both, variable}) {
        EXPECT_EQ(handled, 200 * pe.size());
      }
    }
  });
}

TEST(Aggregator, a_handler_keeps_its_state_from_message_to_message) {
  struct CountsInside {
    std::size_t* out;
    mutable std::size_t count;
    void operator()(std::uint32_t) const { *out = ++count; }
  };
  expect_run({2, 1}, [](Pe& pe) {
    std::size_t changing = 0, move_only = 0, mutable_member = 0;
    Aggregator<std::uint32_t> a(pe, {.buffer_bytes = 256}), b(pe, {.buffer_bytes = 256}), c(pe, {.buffer_bytes = 256});
    a.on([&changing, count = std::size_t(0)](std::uint32_t) mutable { changing = ++count; });
    b.on([&move_only, count = std::make_unique<std::size_t>(0)](std::uint32_t) { move_only = ++*count; });
    c.on(CountsInside{&mutable_member, 0});
    for (std::uint32_t i = 0; i < 1000; ++i) a.send(i % 2, i), b.send(i % 2, i), c.send(i % 2, i);
    pe.quiesce();
    EXPECT_EQ(changing, 1000u);
    EXPECT_EQ(move_only, 1000u);
    EXPECT_EQ(mutable_member, 1000u);
  });
}

TEST(Aggregator, messages_without_a_byte_are_counted_and_handled) {
  struct Nothing {};
  expect_run({5, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      for (const bool ordered : {false, true}) {
        for (const double cutoff : {0.0, 0.5}) {
          const AggregatorOptions options{
              .buffer_bytes = 256, .threshold = 0.5, .cutoff = cutoff, .topology = topology, .ordered = ordered};
          Aggregator<> signals(pe, options);
          Aggregator<Nothing> nothings(pe, options);
          Aggregator<std::span<const double>> spans(pe, options);
          Aggregator<std::string_view, std::string_view> pairs(pe, options);
          std::size_t handled[4] = {};
          signals.on([&](PeId) { ++handled[0]; });
          nothings.on([&](const Nothing&) { ++handled[1]; });
          spans.on([&](std::span<const double> span) { handled[2] += span.empty(); });
          pairs.on([&](std::string_view a, std::string_view b) { handled[3] += a.empty() && b.empty(); });
          for (std::size_t i = 0; i < 1000; ++i) {
            const std::size_t target = i % pe.size();
            signals.send(target), nothings.send(target, {}), spans.send(target, {}), pairs.send(target, {}, "");
          }
          EXPECT_EQ(pe.quiesce(), 4000 * pe.size());
          for (const std::size_t count : handled) EXPECT_EQ(count, 1000u);
        }
      }
    }
  });
}

template <std::size_t n>
struct alignas(n) Aligned {
  std::uint8_t value;
  bool operator==(const Aligned&) const = default;
};

bool is_aligned(const void* at, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(at) % alignment == 0; }

template <std::size_t n>
void expect_aligned(Pe& pe, const AggregatorOptions& options) {
  Aggregator<Aligned<n>> fixed(pe, options);
  Aggregator<std::uint8_t, std::span<const Aligned<n>>> variable(pe, options);
#if defined(__SANITIZE_THREAD__)  // see above
  const std::size_t many = 70'000 / n;
#else
  const std::size_t many = 300'000 / n;  // in parts
#endif
  std::vector<Aligned<n>> items(many);
  for (std::size_t i = 0; i < many; ++i) items[i].value = std::uint8_t(i);
  std::size_t handled = 0;
  fixed.on([&](const Aligned<n>& item) {
    EXPECT_TRUE(is_aligned(&item, n)) << n;
    EXPECT_EQ(item.value, n);
    ++handled;
  });
  variable.on([&](std::uint8_t first, std::span<const Aligned<n>> arrived) {
    EXPECT_TRUE(is_aligned(arrived.data(), n)) << n;
    EXPECT_EQ(first, n);
    EXPECT_TRUE(std::equal(arrived.begin(), arrived.end(), items.begin())) << n;
    ++handled;
  });
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t target = i % pe.size();
    fixed.send(target, {std::uint8_t(n)});
    const std::size_t count = i == 11 ? many : i % 9 == 5 ? 70 : i % 5;
    variable.send(target, std::uint8_t(n), std::span<const Aligned<n>>(items.data(), count));
  }
  pe.quiesce();
  EXPECT_EQ(handled, 100u);
}

TEST(Aggregator, handlers_read_types_of_every_alignment_in_place) {
  expect_run({5, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      for (const bool ordered : {false, true}) {
        for (const std::size_t buffer_bytes : {std::size_t(256), std::size_t(1000), 16_KiB}) {
          const AggregatorOptions options{.buffer_bytes = buffer_bytes, .topology = topology, .ordered = ordered};
          expect_aligned<1>(pe, options);
          expect_aligned<2>(pe, options);
          expect_aligned<4>(pe, options);
          expect_aligned<8>(pe, options);
          expect_aligned<16>(pe, options);
          expect_aligned<32>(pe, options);
          expect_aligned<64>(pe, options);
        }
      }
    }
  });
}

TEST(Aggregator, serialized_types_arrive_as_they_were) {
  struct Record {
    std::string name;
    std::map<std::uint32_t, std::vector<double>> rows;
    std::optional<std::string> mark;
    bool operator==(const Record&) const = default;
  };
  auto make = [](std::size_t i) {
    Record record{"record " + std::to_string(i), {}, std::nullopt};
    for (std::size_t row = 0; row < i % 5; ++row) record.rows[std::uint32_t(row * i)].assign(i % 100, double(row));
    if (i % 3 == 0) record.mark = std::string(i * 30, 'n');
    return record;
  };
  expect_run({5, 1}, [&](Pe& pe) {
    for (const Topology topology : topologies) {
      Aggregator<std::uint64_t, Record> records(pe, {.buffer_bytes = 1_KiB, .topology = topology});
      std::size_t handled = 0;
      records.on([&](std::uint64_t i, const Record& record) {
        EXPECT_TRUE(record == make(i));
        ++handled;
      });
      for (std::size_t i = 0; i < 300; ++i) records.send(i % pe.size(), i, make(i));
      pe.quiesce();
      EXPECT_EQ(handled, 300u);
    }
  });
}

struct Walk {
  std::uint32_t steps_left;
  std::uint32_t seed;
};

TEST(Aggregator, handlers_send_on_with_the_same_aggregator) {
  constexpr std::uint32_t walks = 200, steps = 50;
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        Aggregator<Walk> walkers(pe, {.buffer_bytes = 512, .topology = topology});
        walkers.on([&](const Walk& walk) {
          if (walk.steps_left == 0) return;
          const std::uint32_t seed = walk.seed * 1664525u + 1013904223u;
          walkers.send((seed >> 16) % pe.size(), {walk.steps_left - 1, seed});
        });
        for (std::uint32_t i = 0; i < walks; ++i) walkers.send(i % pe.size(), {steps, i});
        EXPECT_EQ(pe.quiesce(), walks * (steps + 1) * pe.size());
      }
    });
  }
}

TEST(Aggregator, handlers_that_send_two_for_each_one_end) {
  expect_run({3, 1},
             [](Pe& pe) {
               for (const Topology topology : topologies) {
                 Aggregator<std::uint32_t, std::span<const std::uint8_t>> tree(
                     pe, {.buffer_bytes = 1_KiB, .topology = topology});
                 const std::vector<std::uint8_t> bytes(40);
                 tree.on([&](std::uint32_t level, std::span<const std::uint8_t> content) {
                   if (level == 0) return;
                   tree.send((pe.id() + 1) % pe.size(), level - 1, content);
                   tree.send((pe.id() + level) % pe.size(), level - 1, content);
                 });
                 tree.send(pe.size() - 1, 13u, bytes);
                 EXPECT_EQ(pe.quiesce(), pe.size() * ((std::size_t(1) << 14) - 1));
               }
             },
             {{"HEADWAY_BUDGET", "1M"}});
}

}  // namespace
}  // namespace headway
