// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/call/calls.hpp>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <type_traits>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Settings;

constexpr Topology topologies[] = {direct(), grid(1), grid(2), grid(3)};

void expect_says(const Outcome& outcome, int status, std::initializer_list<const char*> parts) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  for (const char* part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\nin: " << outcome.text;
}

TEST(Misuse, a_destination_out_of_range_is_refused_with_the_range_and_nothing_is_sent) {
  expect_run({3, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      Aggregator<std::uint64_t> words(pe, {.topology = topology});
      Aggregator<std::uint64_t, std::span<const std::uint8_t>> spans(pe, {.topology = topology});
      words.on([](std::uint64_t) {});
      spans.on([](std::uint64_t, std::span<const std::uint8_t>) {});
      for (const bool open : {false, true}) {
        if (open) words.send(0, 1), spans.send(0, 1, {});
        expect_usage_error([&] { words.send(3, 1); }, "destination PE 3 is out of range: this run has 3 PEs");
        expect_usage_error([&] { words.send(-1, 1); }, "destination PE -1");
        expect_usage_error([&] { (void)words.try_send(1'000'000, 1); }, "destination PE 1000000");
        expect_usage_error([&] { spans.send(3, 1, {}); }, "destination PE 3");
        expect_usage_error([&] { (void)spans.try_send(-7, 1, {}); }, "destination PE -7");
      }
      EXPECT_EQ(pe.quiesce(), 6u);
    }
  });
}

TEST(Misuse, the_first_handler_error_that_a_program_swallows_is_reported) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    Aggregator<int> words(pe);
    words.on([](int i) { throw std::runtime_error("thrown for " + std::to_string(i)); });
    if (pe.id() == 1) return;
    for (int i = 1; i <= 100; ++i) {
      words.send(0, i);
      words.flush();
      EXPECT_THROW(pe.progress(), std::exception);
    }
  });
  expect_says(outcome, 121, {"PE 0", "thrown for 1\n"});
}

TEST(Misuse, a_destination_out_of_range_in_a_handler_ends_the_run) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, {.name = "words"});
    words.on([&](std::uint64_t) { words.send(pe.size(), 1); });
    words.send(1, 1);
    pe.quiesce();
  });
  expect_says(outcome, 121, {"PE 1", "destination PE 2 is out of range", "'words'"});
}

TEST(Misuse, sending_before_on_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    for (const Topology topology : topologies) {
      Aggregator<std::uint64_t> words(pe, {.topology = topology, .name = "early"});
      Aggregator<std::span<const std::uint8_t>> spans(pe, {.topology = topology});
      Aggregator<std::string, std::string_view, std::map<std::string, std::vector<long>>> texts(pe);
      expect_usage_error([&] { texts.send(0, "", "", {}); },
                         "<std::string, std::string_view, std::map<std::string, std::vector<long>>, ");
      expect_usage_error([&] { spans.send(0, {}); }, "<std::span<const unsigned char>, ");
      expect_usage_error([&] { words.send(0, 1); }, "send() before on()");
      expect_usage_error([&] { words.send(0, 1); }, "'early'");
      expect_usage_error([&] { (void)words.try_send(1, 1); }, "send() before on()");
      expect_usage_error([&] { spans.send(0, {}); }, "send() before on()");
      words.on([](std::uint64_t) {});
      spans.on([](std::span<const std::uint8_t>) {});
      words.send(0, 1);
      spans.send(0, {});
      EXPECT_EQ(pe.quiesce(), 4u);
    }
  });
}

TEST(Misuse, a_second_handler_is_refused) {
  expect_run({1, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe);
    words.on([](std::uint64_t) {});
    expect_usage_error([&] { words.on([](std::uint64_t) {}); }, "on() was called twice");
  });
}

TEST(Misuse, waiting_in_a_handler_is_an_error_that_says_what_to_do) {
  const auto run_with = [](auto wait) {
    return catch_run({2, 1}, [&](Pe& pe) {
      Aggregator<std::uint64_t> words(pe);
      words.on([&](std::uint64_t) { wait(pe); });
      words.send(1, 1);
      pe.quiesce();
    });
  };
  expect_says(run_with([](Pe& pe) { pe.quiesce(); }), 121, {"quiesce() inside a handler", "PE 1"});
  expect_says(run_with([](Pe& pe) { pe.progress(); }), 121, {"progress() inside a handler", "PE 1"});
}

TEST(Misuse, a_handler_that_throws_ends_the_run_with_pe_handler_source_and_text) {
  for (const Topology topology : topologies) {
    for (const std::size_t bytes : {10, 10'000, 1'000'000}) {
      const Outcome outcome = catch_run({3, 1}, [&](Pe& pe) {
        Aggregator<std::string_view> texts(pe, {.topology = topology, .name = "texts"});
        texts.on([](std::string_view) { throw std::runtime_error("the dog ate it"); });
        if (pe.id() == 0) texts.send(2, std::string(bytes, 'x'));
        pe.quiesce();
      });
      expect_says(outcome, 121, {"PE 2", "'texts'", "from PE", "threw: the dog ate it"});
    }
  }
}

TEST(Misuse, aggregators_made_in_different_order_end_the_run_with_both_descriptions) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    std::unique_ptr<Aggregator<std::uint64_t>> words;
    std::unique_ptr<Aggregator<float, std::string_view>> texts;
    auto make_words = [&] {
      words = std::make_unique<Aggregator<std::uint64_t>>(pe, AggregatorOptions{.name = "words"});
    };
    auto make_texts = [&] {
      texts = std::make_unique<Aggregator<float, std::string_view>>(pe, AggregatorOptions{.name = "texts"});
    };
    if (pe.id() == 0)
      make_words(), make_texts();
    else
      make_texts(), make_words();
    words->on([](std::uint64_t) {});
    texts->on([](float, std::string_view) {});
    words->send(1, 7);
    pe.quiesce();
  });
  expect_says(outcome, 121, {"different order", "'words' <", "'texts' <float", "on PE 0", "on PE 1"});
}

TEST(Misuse, aggregators_of_one_type_with_different_collective_options_end_the_run) {
  const auto run_with = [](AggregatorOptions odd, AggregatorOptions even) {
    return catch_run({2, 1}, [&](Pe& pe) {
      Aggregator<std::string_view> texts(pe, pe.id() % 2 == 1 ? odd : even);
      texts.on([](std::string_view) {});
      texts.send(1 - pe.id(), "text");
      pe.quiesce();
    });
  };
  expect_says(run_with({.topology = grid(1)}, {.topology = grid(2)}), 121, {"1d", "2d"});
  expect_says(run_with({.ordered = true}, {}), 121, {"1d, ordered>", "1d>"});
  expect_says(run_with({.name = "here"}, {.name = "there"}), 121, {"'here'", "'there'"});
  // What one PE buffers, another may have to forward.
  expect_says(run_with({.buffer_bytes = 1_KiB}, {.buffer_bytes = 60'000}), 121, {"1 KiB", "60000 B"});
  expect_says(run_with({.buffer_bytes = 256}, {.buffer_bytes = 32_KiB}), 121, {"256 B", "32 KiB"});
  EXPECT_EQ(run_with({.cutoff = 0.1}, {.cutoff = 0.3}).status, 121);
  EXPECT_EQ(run_with({.threshold = 0.5}, {.threshold = 0.6}).status, 121);
}

TEST(Misuse, pes_that_fill_buffers_together_and_give_them_different_sizes_end_the_run) {
  // Of both sizes the PEs' own buffers are the smallest there are.
  const Outcome outcome = catch_run({4, 2}, [](Pe& pe) {
    const std::size_t bytes = pe.id() % 2 == 0 ? 256 : 500;
    Aggregator<std::uint64_t> words(pe, {.buffer_bytes = bytes, .topology = grid(1, Scheme::pp)});
    words.on([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < 1000; ++i) words.send(3 - pe.id(), i);
    pe.quiesce();
  });
  expect_says(outcome, 121, {"pp>", "256 B", "500 B"});
}

TEST(Misuse, a_message_for_a_destroyed_aggregator_ends_the_run_and_names_it) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    auto words = std::make_unique<Aggregator<std::uint64_t>>(pe, AggregatorOptions{.name = "short-lived"});
    words->on([](std::uint64_t) {});
    if (pe.id() == 1)
      words.reset();
    else
      words->send(1, 7);
    pe.quiesce();
  });
  expect_says(outcome, 123, {"PE 1", "from PE 0", "'short-lived'", "destroyed", "quiesce() before"});
}

TEST(Misuse, open_buffers_of_a_destroyed_aggregator_are_still_sent) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    {
      Aggregator<std::uint64_t> words(pe, {.name = "short-lived"});
      words.on([](std::uint64_t) {});
      if (pe.id() == 0)
        words.send(1, 7);
      else
        pe.engine().wait_until([&] { return words.statistics().handled == 1; }, report::Phase::collective);
    }
    EXPECT_EQ(pe.quiesce(), 1u);
  });
  expect_says(outcome, 0, {});
}

TEST(Misuse, messages_without_a_handler_are_reported_as_undelivered) {
  for (const Topology topology : topologies) {
    const Outcome outcome = catch_run({3, 1}, [&](Pe& pe) {
      Aggregator<std::uint64_t> words(pe, {.topology = topology, .name = "unheard"});
      if (pe.id() != 2) words.on([](std::uint64_t) {});
      if (pe.id() == 0) {
        for (std::uint64_t i = 0; i < 5; ++i) words.send(2, i);
      }
    });
    expect_says(outcome, 123, {"5 messages", "from PE 0", "undelivered on PE 2", "'unheard'", "on()"});
  }
}

TEST(Misuse, messages_for_an_aggregator_that_is_never_made_are_reported_as_undelivered) {
  const Outcome outcome = catch_run({3, 1}, [](Pe& pe) {
    if (pe.id() == 2) return;
    Aggregator<std::uint64_t, std::string_view> words(pe);
    words.on([](std::uint64_t, std::string_view) {});
    words.send(2, 1, "x");
    words.send(2, 2, std::string(100'000, 'y'));
    pe.quiesce();
  });
  expect_says(outcome, 123, {"2 messages", "from PE 0", "from PE 1", "undelivered on PE 2", "never made"});
}

/// Throws when it is written, not when it is measured before, where `refused` says so.
struct Reluctant {
  std::uint64_t number = 0;
  std::string text;
  bool refused = false;
  template <class Archive>
  void serialize(Archive& archive) {
    if (refused && std::is_same_v<Archive, detail::ByteWriter>) throw std::runtime_error("rather not");
    archive(number, text);
  }
};

TEST(Misuse, a_message_that_throws_while_it_is_written_is_not_sent_and_harms_no_other) {
  const auto program = [](Pe& pe) {
    for (const Topology topology : topologies) {
      const AggregatorOptions options{.buffer_bytes = 4096, .topology = topology};
      Aggregator<Reluctant> reluctant(pe, options);
      CallAggregator calls(pe, options);
      static thread_local std::uint64_t sum, called;
      sum = called = 0;
      reluctant.on([](const Reluctant& r) { sum += r.number * r.text.size(); });
      std::uint64_t expected = 0;
      for (std::uint64_t i = 0; i < 1000; ++i) {
        const bool refused = i % 3 == 1;
        const std::string text(refused && i % 2 == 0 ? 8000 : i % 7, 'x');
        const auto send_both = [&](auto send) {
          if (refused) {
            EXPECT_THROW(send(), std::runtime_error);
          } else {
            send();
          }
        };
        send_both([&] { reluctant.send(1 - pe.id(), {i, text, refused}); });
        send_both([&] {
          calls.rpc_ff(
              1 - pe.id(), [](const Reluctant& r) { called += r.number * r.text.size(); }, Reluctant{i, text, refused});
        });
        if (!refused) expected += i * text.size();
      }
      pe.quiesce();
      EXPECT_EQ(sum, expected);
      EXPECT_EQ(called, expected);
    }
  };
  // Were their memory kept, the budget would not last.
  expect_run({2, 1}, program, Settings{{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_STALL", "5s"}});
}

TEST(Misuse, a_run_whose_program_throws_says_so) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    if (pe.id() == 1) throw std::runtime_error("cannot go on");
    pe.quiesce();
  });
  expect_says(outcome, 121, {"PE 1", "cannot go on"});
}

}  // namespace
}  // namespace headway
