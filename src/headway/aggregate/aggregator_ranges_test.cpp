// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <list>
#include <numeric>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::expect_usage_error;

constexpr Topology topologies[] = {direct(), grid(1), grid(2), grid(3)};
constexpr std::uint64_t many = 3000;  // more than any buffer here holds

AggregatorOptions small_buffers(Topology topology) {
  return {.buffer_bytes = 1_KiB, .timeout = no_timeout, .topology = topology, .flush_when_idle = false};
}

/// 0 to n-1, made as they are read.
auto numbers_to(std::uint64_t n) {
  return std::views::iota(std::uint64_t(0), n) | std::views::transform([](std::uint64_t i) { return i; });
}

/// The messages of one source, in order of arrival, are 0 to n-1.
template <class Message>
void expect_all(const std::vector<Message>& got, std::uint64_t n) {
  std::vector<Message> all(n);
  std::iota(all.begin(), all.end(), Message(0));
  EXPECT_EQ(got, all);
}

TEST(Ranges, of_every_kind_arrive_whole_and_in_order_beside_single_messages) {
  expect_run({3, 1}, [](Pe& pe) {
    for (const Topology topology : {direct(), grid(1), grid(2)}) {
      AggregatorOptions options = small_buffers(topology);
      options.ordered = true;
      Aggregator<std::uint64_t> words(pe, options);
      std::vector<std::vector<std::uint64_t>> got(pe.size());
      words.on([&](PeId source, std::uint64_t word) { got[source].push_back(word); });
      std::vector<std::uint64_t> stored(many);
      std::iota(stored.begin(), stored.end(), many + 1);
      const std::list<std::uint64_t> linked(stored.begin(), stored.begin() + 100);
      for (std::size_t to = 0; to < pe.size(); ++to) {
        words.send_range(to, numbers_to(many));
        words.send(to, many);
        words.send_range(to, stored);
        words.send_range(to, std::vector<std::uint64_t>());
        words.send_range(to, linked | std::views::transform([](std::uint64_t word) { return word + many; }));
      }
      EXPECT_EQ(pe.quiesce(), pe.size() * pe.size() * (2 * many + 101));
      for (const std::vector<std::uint64_t>& one : got) expect_all(one, 2 * many + 101);
    }
  });
}

TEST(Ranges, without_sources_count_as_messages_and_fill_frames) {
  expect_run({2, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      Aggregator<std::array<std::uint64_t, 2>> pairs(pe, small_buffers(topology));
      std::uint64_t sum = 0, handled = 0;
      pairs.on([&](const std::array<std::uint64_t, 2>& pair) {
        ++handled;
        sum += pair[0] * pair[1];
      });
      const auto pair_of = [](std::uint64_t i) { return std::array<std::uint64_t, 2>{i, 3}; };
      pairs.send_range(1 - pe.id(), std::views::iota(std::uint64_t(0), many) | std::views::transform(pair_of));
      EXPECT_EQ(pairs.statistics().messages, many);
      EXPECT_EQ(pe.quiesce(), 2 * many);
      EXPECT_EQ(handled, many);
      EXPECT_EQ(sum, 3 * (many * (many - 1) / 2));
      EXPECT_EQ(pairs.statistics().payload_bytes, many * 16);
      if (topology == grid(1)) {
        EXPECT_LE(pairs.statistics().frames, many * 16 / 900 + 1);
      }
    }
  });
}

TEST(Ranges, of_messages_of_any_size_and_elements_that_are_converted) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::string> texts(pe, small_buffers(grid(1)));
    Aggregator<double> numbers(pe, small_buffers(grid(1)));
    std::multiset<std::size_t> lengths;
    double sum = 0;
    texts.on([&](const std::string& one) { lengths.insert(one.size()); });
    numbers.on([&](double one) { sum += one; });
    texts.send_range(1 - pe.id(), std::vector<std::string>{"a", std::string(5000, 'b'), "", "c"});
    numbers.send_range(1 - pe.id(), std::vector<float>{0.5f, 1.5f});
    pe.quiesce();
    EXPECT_EQ(lengths, std::multiset<std::size_t>({0, 1, 1, 5000}));
    EXPECT_EQ(sum, 2.0);
  });
}

TEST(Ranges, may_be_sent_by_handlers) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> answers(pe, small_buffers(grid(1)));
    Aggregator<std::uint64_t> requests(pe, small_buffers(grid(1)));
    std::uint64_t sum = 0;
    answers.on([&](std::uint64_t word) { sum += word; });
    requests.on([&](PeId source, std::uint64_t n) { answers.send_range(source, numbers_to(n)); });
    for (int i = 0; i < 10; ++i) requests.send(1 - pe.id(), many);
    pe.quiesce();
    EXPECT_EQ(sum, 10 * (many * (many - 1) / 2));
  });
}

TEST(Ranges, that_throw_have_sent_the_messages_before) {
  expect_run({2, 1}, [](Pe& pe) {
    for (const std::uint64_t end : {std::uint64_t(0), std::uint64_t(5), many}) {
      AggregatorOptions options = small_buffers(grid(1));
      options.ordered = true;
      Aggregator<std::uint64_t> words(pe, options);
      std::vector<std::uint64_t> got;
      words.on([&](std::uint64_t word) { got.push_back(word); });
      const auto until_end = [&](std::uint64_t i) { return i == end ? throw std::runtime_error("the end") : i; };
      const auto range = std::views::iota(std::uint64_t(0), 2 * many) | std::views::transform(until_end);
      EXPECT_THROW(words.send_range(1 - pe.id(), range), std::runtime_error);
      words.send(1 - pe.id(), end);
      pe.quiesce();
      expect_all(got, end + 1);
    }
  });
}

TEST(Ranges, whose_elements_send_or_flush_are_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, small_buffers(grid(1)));
    std::vector<std::uint64_t> got;
    words.on([&](std::uint64_t word) { got.push_back(word); });
    const PeId to = 1 - pe.id();
    const auto sending = [&](auto send) {
      return std::views::iota(std::uint64_t(0), many) | std::views::transform([&, send](std::uint64_t i) {
               if (i == 7) send();
               return i;
             });
    };
    words.send_range(to, numbers_to(1));  // opens a buffer
    expect_usage_error([&] { words.send_range(to, sending([&] { words.send(to, 99); })); }, "send_range()");
    expect_usage_error([&] { words.send_range(to, sending([&] { (void)words.try_send(to, 99); })); }, "send_range()");
    expect_usage_error([&] { words.send_range(to, sending([&] { words.flush(); })); }, "send_range()");
    pe.quiesce();
    EXPECT_EQ(got.size(), 1u + 3 * 7);
  });
}

TEST(Ranges, for_a_destination_out_of_range_are_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      Aggregator<std::uint64_t> words(pe, small_buffers(topology));
      words.on([](std::uint64_t) {});
      expect_usage_error([&] { words.send_range(2, numbers_to(9)); }, "destination PE 2 is out of range");
      expect_usage_error([&] { words.send_range(-1, numbers_to(9)); }, "destination PE -1");
      words.send_range(7, numbers_to(0));
      EXPECT_EQ(pe.quiesce(), 0u);
    }
  });
}

/// i to i % pes, one after the other.
auto dealt_out(std::size_t pes, std::uint64_t& i) {
  return [&i, pes] {
    const std::uint64_t now = i++;
    return std::pair(std::size_t(now % pes), now);
  };
}

TEST(Batches, to_all_arrive_whole_and_in_order_on_every_topology) {
  for (const std::size_t pes : {1, 2, 3, 5}) {
    expect_run({pes, 1}, [](Pe& pe) {
      for (const Topology topology : topologies) {
        AggregatorOptions options = small_buffers(topology);
        options.ordered = true;
        Aggregator<std::uint64_t> words(pe, options);
        std::vector<std::vector<std::uint64_t>> got(pe.size());
        words.on([&](PeId source, std::uint64_t word) { got[source].push_back(word / pe.size()); });
        std::uint64_t next = 0;
        words.send_n(many * pe.size(), dealt_out(pe.size(), next));
        words.send_n(0, dealt_out(pe.size(), next));
        for (std::size_t to = 0; to < pe.size(); ++to) words.send(to, next++);
        words.send_n(3 * pe.size(), dealt_out(pe.size(), next));
        EXPECT_EQ(words.statistics().messages, (many + 4) * pe.size());
        EXPECT_EQ(pe.quiesce(), pe.size() * pe.size() * (many + 4));
        for (const std::vector<std::uint64_t>& one : got) expect_all(one, many + 4);
      }
    });
  }
}

TEST(Batches, go_to_one_to_more_pes_than_are_kept_at_once_and_have_several_arguments) {
  expect_run({70, 1}, [](Pe& pe) {
    Aggregator<std::uint32_t, double> pairs(pe, small_buffers(grid(1)));
    std::uint64_t handled = 0;
    double sum = 0;
    pairs.on([&](std::uint32_t i, double d) {
      ++handled;
      sum += i * d;
    });
    std::uint32_t i = 0;
    pairs.send_n(200, [&] { return std::tuple(std::size_t(i++ % 7) * 10, i, 0.5); });
    pe.quiesce();
    EXPECT_EQ(handled != 0, pe.id() % 10 == 0);
    EXPECT_EQ(sum > 0, pe.id() % 10 == 0);
  });
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::string> texts(pe, small_buffers(grid(1)));
    std::size_t bytes = 0;
    texts.on([&](const std::string& text) { bytes += text.size(); });
    std::size_t i = 0;
    texts.send_n(100, [&] { return std::pair(1 - pe.id(), std::string(100 * i++, 'x')); });
    pe.quiesce();
    EXPECT_EQ(bytes, 100 * (99 * 100 / 2));
  });
}

TEST(Batches, that_throw_have_sent_the_messages_before) {
  expect_run({2, 1}, [](Pe& pe) {
    for (const std::uint64_t end : {std::uint64_t(0), std::uint64_t(5), std::uint64_t(190), 2 * many}) {
      Aggregator<std::uint64_t> words(pe, small_buffers(grid(1)));
      std::uint64_t handled = 0, sum = 0, i = 0;
      words.on([&](std::uint64_t word) {
        ++handled;
        sum += word;
      });
      const auto next = [&] {
        if (i == end) throw std::runtime_error("the end");
        const std::uint64_t now = i++;
        return std::pair(1 - pe.id(), now);
      };
      EXPECT_THROW(words.send_n(4 * many, next), std::runtime_error);
      const auto astray = [&] {
        const std::uint64_t now = i++;
        return std::pair(now < end + 7 ? 1 - pe.id() : 2, now);
      };
      expect_usage_error([&] { words.send_n(4 * many, astray); }, "destination PE 2 is out of range");
      pe.quiesce();
      EXPECT_EQ(handled, end + 7);
      EXPECT_EQ(sum, (end + 7) * (end + 6) / 2);
    }
  });
}

TEST(Batches, whose_messages_send_or_flush_are_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, small_buffers(grid(1)));
    std::uint64_t handled = 0, sent = 0;
    words.on([&](std::uint64_t) { ++handled; });
    const auto sending = [&](auto send) {
      return [&, send] {
        if (sent % 8 == 7) {
          send();
          ADD_FAILURE();
        }
        return std::pair(std::size_t(sent++ % 2), std::uint64_t(1));
      };
    };
    for (std::size_t to = 0; to < 2; ++to) words.send(to, 0);  // opens buffers, which have room for a batch
    const auto refused = [&](auto send) {
      expect_usage_error([&] { words.send_n(90, sending(send)); }, "send_n()");
      words.send(sent++ % 2, 2);
    };
    refused([&] { words.send(1, 99); });
    refused([&] { (void)words.try_send(0, 99); });
    refused([&] { words.flush(); });
    refused([&] { words.send_range(1, numbers_to(4)); });
    refused([&] { words.send_n(1, [] { return std::pair(0, std::uint64_t(9)); }); });
    pe.quiesce();
    EXPECT_EQ(handled, 2 + sent);
  });
}

}  // namespace
}  // namespace headway
