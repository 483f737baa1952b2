// SPDX-License-Identifier: BSD-3-Clause
// Buffers: their bytes on the wire, the reasons for which they are sent, and statistics.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::Shared;
using namespace std::chrono_literals;

/// Options with which a buffer is sent only when it is full or by flush().
AggregatorOptions patient(std::size_t buffer_bytes, Topology topology = grid(1)) {
  return {.buffer_bytes = buffer_bytes, .timeout = no_timeout, .topology = topology, .flush_when_idle = false};
}

void progress_often(Pe& pe) {
  for (int i = 0; i < 100; ++i) pe.progress();
}

/// The statistics of all PEs added up.
AggregatorStatistics sum_of(const Shared<AggregatorStatistics>& all) {
  AggregatorStatistics sum;
  for (const AggregatorStatistics& one : all) {
    sum.messages += one.messages;
    sum.handled += one.handled;
    sum.forwarded += one.forwarded;
    sum.payload_bytes += one.payload_bytes;
    sum.frames += one.frames;
    sum.frames_between_processes += one.frames_between_processes;
    sum.wire_bytes += one.wire_bytes;
    sum.alone += one.alone;
  }
  return sum;
}

std::uint64_t flushes(const AggregatorStatistics& s) {
  return s.flush_full + s.flush_timeout + s.flush_idle + s.flush_explicit;
}

// --- bytes on the wire

TEST(Wire, a_flush_of_one_8_byte_message_sends_less_than_64_bytes) {
  expect_run({16, 8}, [](Pe& pe) {
    for (const Topology topology : {direct(), grid(1), grid(2), grid(3)}) {
      for (const bool ordered : {false, true}) {
        AggregatorOptions options = patient(16_KiB, topology);
        options.ordered = ordered;
        Aggregator<std::uint64_t> fixed(pe, options);
        Aggregator<std::span<const std::uint64_t>> variable(pe, options);
        fixed.on([](PeId, std::uint64_t) {});
        variable.on([](PeId, std::span<const std::uint64_t>) {});
        const std::uint64_t word = 7;
        fixed.send((pe.id() + 5) % pe.size(), word);
        variable.send((pe.id() + 5) % pe.size(), std::span(&word, 1));
        fixed.flush();
        variable.flush();
        EXPECT_EQ(fixed.statistics().frames, 1u);
        EXPECT_EQ(variable.statistics().frames, 1u);
        EXPECT_LT(fixed.statistics().wire_bytes, 64u);
        EXPECT_LT(variable.statistics().wire_bytes, 64u);
        pe.quiesce();
      }
    }
  });
}

TEST(Wire, fixed_messages_of_8_bytes_on_one_dimension_cost_less_than_a_hundredth_more) {
  for (const Shape shape : {Shape{1, 1}, Shape{4, 1}, Shape{8, 4}}) {
    Shared<AggregatorStatistics> all(shape.pes);
    expect_run(shape, [&](Pe& pe) {
      Aggregator<std::uint64_t> words(pe, patient(16_KiB));
      words.on([](std::uint64_t) {});
      for (std::uint64_t i = 0; i < 50'000 * pe.size(); ++i) words.send(i % pe.size(), i);
      pe.quiesce();
      all[pe.id()] = words.statistics();
    });
    const AggregatorStatistics sum = sum_of(all);
    EXPECT_EQ(sum.messages, 50'000 * shape.pes * shape.pes);
    EXPECT_EQ(sum.handled, sum.messages);
    EXPECT_LT(double(sum.wire_bytes), 1.01 * 8 * double(sum.messages));
    EXPECT_GE(sum.wire_bytes, 8 * sum.messages);
  }
}

TEST(Wire, fixed_messages_of_8_bytes_on_two_dimensions_cost_less_than_15_percent_more_per_hop) {
  Shared<AggregatorStatistics> all(16);
  constexpr std::uint64_t rounds = 20'000;
  expect_run({16, 8}, [&](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, patient(16_KiB, grid(2)));
    words.on([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < rounds * pe.size(); ++i) words.send(i % pe.size(), i);
    pe.quiesce();
    all[pe.id()] = words.statistics();
  });
  const AggregatorStatistics sum = sum_of(all);
  EXPECT_EQ(sum.messages, rounds * 16 * 16);
  EXPECT_EQ(sum.handled, sum.messages);
  EXPECT_EQ(sum.forwarded, rounds * 16 * 9);  // those to another row and another column of the 4 x 4
  EXPECT_LT(double(sum.wire_bytes), 1.15 * 8 * double(sum.messages + sum.forwarded));
}

TEST(Wire, messages_of_variable_size_with_8_bytes_cost_less_than_30_percent_more_on_one_dimension) {
  Shared<AggregatorStatistics> all(4);
  expect_run({4, 1}, [&](Pe& pe) {
    Aggregator<std::span<const std::uint64_t>> words(pe, patient(16_KiB));
    words.on([](std::span<const std::uint64_t>) {});
    for (std::uint64_t i = 0; i < 200'000; ++i) words.send(i % pe.size(), std::span(&i, 1));
    pe.quiesce();
    all[pe.id()] = words.statistics();
  });
  const AggregatorStatistics sum = sum_of(all);
  EXPECT_EQ(sum.handled, 800'000u);
  EXPECT_LT(double(sum.wire_bytes), 1.3 * 8 * double(sum.messages));
}

TEST(Wire, a_frame_is_as_long_as_its_content) {
  expect_run({1, 1}, [](Pe& pe) {
    Aggregator<std::string_view> texts(pe, patient(64_KiB));
    texts.on([](std::string_view) {});
    for (const std::size_t bytes : {0, 1, 10, 100, 1000, 5000}) {
      const AggregatorStatistics before = texts.statistics();
      texts.send(0, std::string(bytes, 'x'));
      texts.flush();
      const AggregatorStatistics after = texts.statistics();
      EXPECT_EQ(after.frames - before.frames, 1u);
      EXPECT_LE(after.wire_bytes - before.wire_bytes, bytes + 32);
      EXPECT_GE(after.wire_bytes - before.wire_bytes, bytes);
    }
    pe.quiesce();
  });
}

// --- what sends a buffer

TEST(Flush, no_buffer_is_posted_before_it_is_full_without_timeout_and_idle_flush) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, patient(4_KiB));
    words.on([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < 400; ++i) words.send(i % 2, i);
    std::this_thread::sleep_for(20ms);
    progress_often(pe);
    EXPECT_EQ(words.statistics().frames, 0u);
    EXPECT_EQ(words.statistics().messages, 400u);  // those in open buffers are sent as far as the program knows
    words.flush();
    EXPECT_EQ(words.statistics().frames, 2u);
    EXPECT_EQ(words.statistics().flush_explicit, 2u);
    words.flush();  // there is nothing left
    EXPECT_EQ(words.statistics().frames, 2u);
    EXPECT_EQ(pe.quiesce(), 800u);
  });
}

TEST(Flush, quiesce_flushes_whatever_the_options) {
  expect_run({5, 1}, [](Pe& pe) {
    for (const Topology topology : {grid(1), grid(2), grid(3)}) {
      Aggregator<std::uint64_t, std::string_view> words(pe, patient(16_KiB, topology));
      words.on([](std::uint64_t, std::string_view) {});
      for (std::size_t target = 0; target < pe.size(); ++target) words.send(target, 1, "text");
      EXPECT_EQ(pe.quiesce(), pe.size() * pe.size());
      EXPECT_EQ(words.statistics().flush_full, 0u);
      EXPECT_EQ(words.statistics().flush_timeout, 0u);
      EXPECT_EQ(words.statistics().flush_idle, 0u);
      EXPECT_GE(words.statistics().flush_explicit, 1u);
    }
  });
}

TEST(Flush, full_buffers_of_fixed_messages_hold_as_many_as_fit) {
  expect_run({1, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, patient(4_KiB));
    words.on([](std::uint64_t) {});
    const std::uint64_t capacity = (4_KiB - transport::frame_overhead) / 8;
    for (std::uint64_t i = 0; i < 10 * capacity + 1; ++i) words.send(0, i);
    EXPECT_EQ(words.statistics().flush_full, 10u);
    EXPECT_DOUBLE_EQ(words.statistics().fill_mean, 1.0);
    EXPECT_EQ(words.statistics().messages, 10 * capacity + 1);
    pe.quiesce();
  });
}

TEST(Flush, a_buffer_is_sent_as_soon_as_it_is_filled_beyond_the_threshold) {
  expect_run({1, 1}, [](Pe& pe) {
    for (const double threshold : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      AggregatorOptions options = patient(8_KiB);
      options.threshold = threshold;
      options.cutoff = 0.1;
      Aggregator<std::string_view> texts(pe, options);
      texts.on([](std::string_view) {});
      Aggregator<std::uint64_t> words(pe, options);
      words.on([](std::uint64_t) {});
      const std::string text(100, 'x');
      for (int i = 0; i < 5000; ++i) {
        texts.send(0, text);
        words.send(0, std::uint64_t(i));
      }
      EXPECT_GT(texts.statistics().flush_full, 10u);
      EXPECT_EQ(texts.statistics().frames, texts.statistics().flush_full);
      EXPECT_NEAR(texts.statistics().fill_mean, threshold, 120.0 / 8192);
      EXPECT_NEAR(words.statistics().fill_mean, threshold, 20.0 / 8192);
      pe.quiesce();
    }
  });
}

TEST(Flush, a_threshold_of_zero_sends_every_message_at_once) {
  expect_run({3, 1}, [](Pe& pe) {
    for (const Topology topology : {grid(1), grid(2)}) {
      AggregatorOptions options = patient(4_KiB, topology);
      options.threshold = 0;
      Aggregator<std::string_view> texts(pe, options);
      Aggregator<std::uint64_t> words(pe, options);
      std::size_t handled = 0;
      texts.on([&](std::string_view) { ++handled; });
      words.on([&](std::uint64_t) { ++handled; });
      for (std::uint64_t i = 0; i < 500; ++i) {
        texts.send(i % pe.size(), "text");
        words.send(i % pe.size(), i);
      }
      words.flush();  // a buffer that is full is sent when the next message comes
      EXPECT_GE(texts.statistics().frames, 500u);
      EXPECT_GE(words.statistics().frames, 500u);
      EXPECT_EQ(pe.quiesce(), 1000 * pe.size());
    }
  });
}

TEST(Flush, a_message_above_the_cutoff_travels_alone) {
  expect_run({1, 1}, [](Pe& pe) {
    for (const double cutoff : {0.0, 0.1, 0.25, 0.5}) {
      AggregatorOptions options = patient(4096);
      options.threshold = 0.5;
      options.cutoff = cutoff;
      Aggregator<std::string_view> texts(pe, options);
      std::size_t handled = 0;
      texts.on([&](std::string_view) { ++handled; });
      const auto limit = std::size_t(cutoff * 4096);
      texts.send(0, std::string(limit, 'x'));
      EXPECT_EQ(texts.statistics().alone, 0u) << "at the cutoff of " << cutoff;
      texts.send(0, std::string(limit + 1, 'x'));
      EXPECT_EQ(texts.statistics().alone, 1u) << "above the cutoff of " << cutoff;
      texts.send(0, std::string(limit + 2, 'x'));
      EXPECT_EQ(texts.statistics().alone, 2u);
      EXPECT_EQ(pe.quiesce(), 3u);
    }
  });
}

TEST(Flush, a_message_whose_length_no_entry_holds_travels_alone_whatever_the_cutoff) {
  for (const bool ordered : {false, true}) {
    expect_run({4, 1}, [ordered](Pe& pe) {
      for (const unsigned dimensions : {1u, 2u}) {
        AggregatorOptions options = patient(1_MiB, grid(dimensions));
        options.threshold = options.cutoff = 0.5;
        options.ordered = ordered;
        Aggregator<std::string_view> texts(pe, options);
        std::vector<std::size_t> came(pe.size());
        texts.on([&](PeId source, std::string_view text) {
          EXPECT_EQ(text.size(), 65'530 + came[source]++) << "from " << source;
          EXPECT_EQ(text.find_first_not_of(char('a' + source)), text.npos);
        });
        constexpr std::size_t sizes = 12;  // 65,530 to 65,541 bytes; 65,534 is the largest that lies in a buffer
        for (std::size_t i = 0; i < sizes; ++i) {
          for (std::size_t to = 0; to < pe.size(); ++to) texts.send(to, std::string(65'530 + i, char('a' + pe.id())));
          EXPECT_EQ(texts.statistics().alone, i < 5 ? 0 : (i - 4) * pe.size());
          if (!ordered) pe.quiesce();  // those that travel alone may come first
        }
        pe.quiesce();
        EXPECT_EQ(came, std::vector<std::size_t>(pe.size(), sizes));
      }
    });
  }
}

TEST(Flush, fixed_messages_larger_than_the_cutoff_or_the_buffer_travel_alone) {
  struct Large {
    std::uint64_t words[64];  // 512 bytes
  };
  expect_run({3, 1}, [](Pe& pe) {
    for (const Topology topology : {grid(1), grid(2)}) {
      for (const double cutoff : {0.1, 0.5, derived_fraction}) {
        for (const std::size_t buffer_bytes : {std::size_t(256), 1_KiB, 4_KiB}) {
          AggregatorOptions options = patient(buffer_bytes, topology);
          options.cutoff = cutoff;
          Aggregator<Large> large(pe, options);
          std::size_t handled = 0;
          large.on([&](PeId source, const Large& message) { handled += message.words[63] == source; });
          const bool two_fit = 2 * (512 + 1) + transport::frame_overhead <= buffer_bytes;  // a key takes a byte
          const bool alone = cutoff < 0 ? !two_fit : 512 > cutoff * double(buffer_bytes);
          for (std::size_t i = 0; i < 30; ++i) {
            Large message{};
            message.words[63] = pe.id();
            large.send(i % pe.size(), message);
          }
          EXPECT_EQ(large.statistics().alone, alone ? 30u : 0u) << cutoff << " of " << buffer_bytes;
          pe.quiesce();
          EXPECT_EQ(handled, 30u);
        }
      }
    }
  });
}

TEST(Flush, directly_sent_messages_take_a_frame_each) {
  expect_run({3, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, {.topology = direct()});
    words.on([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < 999; ++i) words.send(i % 3, i);
    EXPECT_EQ(words.statistics().frames, 999u);
    EXPECT_EQ(words.statistics().alone, 999u);
    EXPECT_EQ(pe.quiesce(), 3 * 999u);
  });
}

TEST(Flush, the_oldest_message_of_a_buffer_waits_no_longer_than_the_timeout) {
  expect_run({1, 1}, [](Pe& pe) {
    AggregatorOptions options = patient(4_KiB);
    options.timeout = 300ms;
    Aggregator<std::uint64_t> words(pe, options);
    std::size_t handled = 0;
    words.on([&](std::uint64_t) { ++handled; });
    const auto begin = std::chrono::steady_clock::now();
    words.send(0, 1);
    pe.progress();
    const bool sent_early = words.statistics().frames != 0;
    EXPECT_TRUE(!sent_early || std::chrono::steady_clock::now() - begin >= 300ms);
    std::this_thread::sleep_for(310ms);
    words.send(0, 2);  // does not make the buffer younger
    pe.progress();
    EXPECT_EQ(words.statistics().flush_timeout, 1u);
    pe.progress();
    EXPECT_EQ(handled, 2u);
    pe.quiesce();
  });
}

TEST(Flush, a_timeout_of_zero_sends_at_the_next_progress) {
  expect_run({1, 1}, [](Pe& pe) {
    AggregatorOptions options = patient(4_KiB);
    options.timeout = 0ns;
    Aggregator<std::uint64_t> words(pe, options);
    words.on([](std::uint64_t) {});
    words.send(0, 1);
    EXPECT_EQ(words.statistics().frames, 0u);
    pe.progress();
    EXPECT_EQ(words.statistics().flush_timeout, 1u);
    pe.quiesce();
  });
}

TEST(Flush, a_timeout_of_centuries_never_comes) {
  expect_run({1, 1}, [](Pe& pe) {
    for (const std::chrono::nanoseconds timeout : {no_timeout, no_timeout - 1ns, no_timeout - 1h}) {
      AggregatorOptions options = patient(4_KiB);
      options.timeout = timeout;
      Aggregator<std::uint64_t> words(pe, options);
      words.on([](std::uint64_t) {});
      words.send(0, 1);
      progress_often(pe);
      EXPECT_EQ(words.statistics().frames, 0u) << timeout.count();
      pe.quiesce();
    }
  });
}

TEST(Flush, an_idle_pe_posts_its_open_buffers) {
  expect_run({1, 1}, [](Pe& pe) {
    AggregatorOptions options = patient(4_KiB);
    options.flush_when_idle = true;
    Aggregator<std::uint64_t> words(pe, options);
    std::size_t handled = 0;
    words.on([&](std::uint64_t) { ++handled; });
    words.send(0, 1);
    EXPECT_EQ(words.statistics().frames, 0u);
    pe.progress();
    EXPECT_EQ(words.statistics().flush_idle, 1u);
    pe.progress();
    EXPECT_EQ(handled, 1u);
    pe.quiesce();
  });
}

// --- statistics

TEST(Statistics, every_message_byte_and_frame_is_counted_once) {
  for (const Topology topology : {direct(), grid(1), grid(2), grid(3), grid(1, Scheme::wps), grid(1, Scheme::pp)}) {
    for (const bool ordered : {false, true}) {
      Shared<AggregatorStatistics> all(8);
      Shared<std::uint64_t> messages(8), bytes(8), handled(8);
      expect_run({8, 4}, [&](Pe& pe) {
        Aggregator<std::uint32_t, std::string_view> texts(
            pe, {.buffer_bytes = 2_KiB, .topology = topology, .ordered = ordered});
        texts.on([&](std::uint32_t more, std::string_view text) {
          ++handled[pe.id()];
          if (more == 0) return;
          texts.send(more % pe.size(), more - 1, text);
          ++messages[pe.id()];
          bytes[pe.id()] += 4 + text.size();
        });
        const std::string text(300'000, 'x');
        for (std::uint32_t i = 0; i < 300; ++i) {
          const std::size_t size = i == 77 ? text.size() : i % 50 == 3 ? 3000 : i % 97;
          texts.send(i % pe.size(), i % 5, std::string_view(text.data(), size));
          ++messages[pe.id()];
          bytes[pe.id()] += 4 + size;
        }
        pe.quiesce();
        all[pe.id()] = texts.statistics();
      });
      for (std::size_t pe = 0; pe < 8; ++pe) {
        EXPECT_EQ(all[pe].messages, messages[pe]);
        EXPECT_GE(all[pe].payload_bytes, bytes[pe]);
        EXPECT_LE(all[pe].payload_bytes, bytes[pe] + 3 * messages[pe]);  // what aligns the next message
        EXPECT_EQ(all[pe].handled, handled[pe]);
        EXPECT_EQ(all[pe].frames, flushes(all[pe]));
        EXPECT_LE(all[pe].fill_mean, 1.0);
        EXPECT_GE(all[pe].alone, 1u);
      }
      const AggregatorStatistics sum = sum_of(all);
      EXPECT_EQ(sum.messages, sum.handled);
      EXPECT_GE(sum.wire_bytes, std::accumulate(bytes.begin(), bytes.end(), std::uint64_t(0)));
      EXPECT_EQ(sum.forwarded != 0, topology.dimensions > 1 || topology.scheme != Scheme::ww);
      EXPECT_LT(sum.frames_between_processes, sum.frames);
      EXPECT_GT(sum.frames_between_processes, 0u);
    }
  }
}

TEST(Statistics, payload_bytes_are_those_sent_without_alignment) {
  expect_run({5, 1}, [](Pe& pe) {
    for (const Topology topology : {direct(), grid(1), grid(2), grid(3)}) {
      for (const bool ordered : {false, true}) {
        Aggregator<std::string_view> texts(pe, {.buffer_bytes = 2_KiB, .topology = topology, .ordered = ordered});
        texts.on([](std::string_view) {});
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < 1000; ++i) {
          const std::size_t size = i == 77 ? 300'000 : i % 50 == 3 ? 3000 : i % 97;
          texts.send(i % pe.size(), std::string(size, 'x'));
          bytes += size;
        }
        pe.quiesce();
        EXPECT_EQ(texts.statistics().payload_bytes, bytes) << to_string(topology) << (ordered ? " ordered" : "");
      }
    }
  });
}

}  // namespace
}  // namespace headway
