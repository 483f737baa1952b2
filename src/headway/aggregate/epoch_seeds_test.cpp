// SPDX-License-Identifier: BSD-3-Clause
/// Random programs with epochs, by seed, on the simulated transport. Every PE can read the records of all PEs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/launch/simulation.hpp>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <support/task.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::Task;

/// The next action of a main program; the same on every PE.
enum class Step { begin, send, close, wait, destroy, await_oldest, continue_from_oldest, levels, quiesce };

struct Program {
  std::vector<Step> steps;
  unsigned messages_max = 0, hops_max = 0, bytes_max = 0;
};

Program draw(Random& random) {
  Program program;
  program.messages_max = unsigned(random.between(1, 60));
  program.hops_max = unsigned(random.between(0, 6));
  program.bytes_max = unsigned(random.one_in(4) ? random.between(0, 30'000) : random.between(0, 200));
  std::size_t steps = random.between(1, 60);
  if (random.one_in(8)) {  // enough for each number to be given several times
    steps = 600;
    program.messages_max = 3;
  }
  for (std::size_t i = 0; i < steps; ++i) program.steps.push_back(Step(random.between(0, 8)));
  return program;
}

/// The state of an epoch and of the epochs within it, over all PEs. Number 0 is the root.
struct Record {
  std::size_t around = 0;
  std::uint64_t created = 0, handled = 0;
  std::size_t begun = 0;  // on so many PEs
  bool done = false;
};

struct World {
  std::vector<Record> records{1};
  Record& operator[](std::size_t epoch) {
    while (records.size() <= epoch) records.emplace_back();
    return records[epoch];
  }
};

[[noreturn]] void violated(const std::string& what) { throw std::logic_error(what); }

class Participant {
 public:
  Participant(Pe& pe, World& world, const Program& program, std::uint64_t seed)
      : pe_(pe),
        world_(world),
        program_(program),
        random_(seed * 1000 + pe.id()),
        words_(pe, {.topology = grid(1), .flush_when_idle = seed % 2 == 0}),
        texts_(pe, {.buffer_bytes = 1024, .topology = grid(2), .ordered = seed % 3 == 0}),
        single_(pe, {.timeout = no_timeout, .topology = direct()}) {
    words_.on([this](std::uint64_t epoch, std::uint64_t hops) { handle(epoch, hops); });
    texts_.on([this](std::uint64_t epoch, std::uint64_t hops, std::string_view) { handle(epoch, hops); });
    single_.on([this](std::uint64_t epoch, std::uint64_t hops) { handle(epoch, hops); });
    begun_.push_back(true);
  }

  void run() {
    for (const Step step : program_.steps) {
      take(step);
      for (std::uint64_t n = random_.one_in(3) ? random_.between(0, 5) : 0; n > 0; --n) pe_.progress();
    }
    while (!open_.empty()) open_.pop_back();
    pe_.quiesce();
    for (const Record& record : world_.records) {
      if (record.created != record.handled) violated("messages are missing after all");
    }
    ended_.clear();
  }

 private:
  struct Made {
    std::size_t number;
    std::unique_ptr<Epoch> epoch;
  };

  /// The number of the epoch in which the main program, or the coroutine, sends.
  std::size_t current() const { return open_.empty() ? 0 : open_.back().number; }

  std::size_t begin_record(std::size_t around) {
    const std::size_t number = begun_.size();
    begun_.push_back(true);
    Record& record = world_[number];
    if (record.begun++ != 0 && record.around != around) violated("the test itself is wrong");
    record.around = around;
    return number;
  }

  void take(Step step) {
    switch (step) {
      case Step::begin:
        if (open_.size() < 6) {
          const std::size_t around = current();
          auto epoch = std::make_unique<Epoch>(pe_);
          open_.push_back({begin_record(around), std::move(epoch)});
        }
        return;
      case Step::send: return send_some(current());
      case Step::close:
        if (open_.empty()) return;
        open_.back().epoch->close();
        end_innermost();
        return;
      case Step::wait: {
        if (open_.empty()) return;
        const std::uint64_t handled = open_.back().epoch->wait();
        check_done(open_.back().number, handled);
        end_innermost();
        return;
      }
      case Step::destroy:
        if (!open_.empty()) open_.pop_back();
        return;
      case Step::await_oldest:
        if (ended_.empty()) return;
        while (!ended_.front().epoch->done()) {
          if (random_.one_in(2))
            pe_.progress();
          else if (random_.one_in(2))
            (void)ended_.front().epoch->wait();
          else
            send(current(), 0), pe_.engine().poll_some();
        }
        check_done(ended_.front().number, ended_.front().epoch->handled());
        ended_.erase(ended_.begin());
        return;
      case Step::continue_from_oldest: {
        if (ended_.empty()) return;
        const std::size_t here = current(), of = ended_.front().number;
        ended_.front().epoch->then([this, here, of](std::uint64_t handled) {
          check_done(of, handled);
          if (world_[here].done) violated("a continuation runs after the end of the epoch it belongs to");
          send_some(here);
        });
        return;
      }
      case Step::levels: {
        const Task task = levels(current());
        quiesce();
        if (!task.done()) violated("quiesce() did not wait for a coroutine");
        return;
      }
      case Step::quiesce: return quiesce();
    }
  }

  void end_innermost() {
    ended_.push_back(std::move(open_.back()));
    open_.pop_back();
  }

  Task levels(std::size_t around) {
    for (int level = 0; level < 3; ++level) {
      Epoch epoch(pe_);
      const std::size_t number = begin_record(around);
      send_some(number);
      const std::uint64_t handled = co_await epoch;
      check_done(number, handled);
    }
  }

  void quiesce() {
    pe_.quiesce();
    for (const Made& made : ended_) {
      if (!made.epoch->done()) violated("quiesce() did not wait for an epoch that was ended");
    }
  }

  void check_done(std::size_t number, std::uint64_t handled) {
    std::uint64_t sum_created = 0, sum_handled = 0;
    for (std::size_t n = 0; n < world_.records.size(); ++n) {
      std::size_t outer = n;
      while (outer > number) outer = world_[outer].around;
      if (outer != number) continue;
      sum_created += world_[n].created;
      sum_handled += world_[n].handled;
      world_[n].done = true;
    }
    if (sum_created != sum_handled || handled != sum_handled) {
      violated(fmt::format("epoch {} is done with {} messages, but {} were created and {} handled", number, handled,
                           sum_created, sum_handled));
    }
  }

  void send_some(std::size_t epoch) {
    for (std::uint64_t n = random_.between(0, program_.messages_max); n > 0; --n) {
      send(epoch, random_.between(0, program_.hops_max));
      if (random_.one_in(50)) words_.flush();
    }
  }

  void send(std::size_t epoch, std::uint64_t hops) {
    if (world_[epoch].done) violated("the test sends in an epoch that is done");
    ++world_[epoch].created;
    const std::size_t to = random_.between(0, pe_.size() - 1);
    switch (random_.between(0, 2)) {
      case 0: return words_.send(to, epoch, hops);
      case 1: return single_.send(to, epoch, hops);
      default: texts_.send(to, epoch, hops, std::string(random_.between(0, program_.bytes_max), 'x'));
    }
  }

  void handle(std::size_t epoch, std::uint64_t hops) {
    if (epoch >= begun_.size()) violated("a message is handled before its epoch has begun here");
    if (world_[epoch].done) violated("a message is handled after its epoch was done");
    for (std::uint64_t n = hops == 0 ? 0 : random_.between(0, 2); n > 0; --n) send(epoch, hops - 1);
    ++world_[epoch].handled;
  }

  Pe& pe_;
  World& world_;
  const Program& program_;
  Random random_;
  Aggregator<std::uint64_t, std::uint64_t> words_;
  Aggregator<std::uint64_t, std::uint64_t, std::string_view> texts_;
  Aggregator<std::uint64_t, std::uint64_t> single_;
  std::vector<bool> begun_;  // by number
  std::vector<Made> open_, ended_;
};

launch::SimulateResult run_seed(std::uint64_t seed, bool calm) {
  Random random(seed);
  launch::SimulateOptions options{.pes = random.between(1, 13), .seed = seed};
  if (!calm) options.conditions = sim::random_conditions(random, options.pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  const Program program = draw(random);
  World world;
  return simulate(options, [&](Pe& pe) {
    Participant(pe, world, program, seed).run();
    return 0;
  });
}

struct Seeds {
  std::uint64_t begin = 1, end = 0;
};

/// EPOCH_SEED and EPOCH_SEEDS: the first, and how many.
Seeds seeds_to_run() {
  Seeds seeds;
  if (const char* first = std::getenv("EPOCH_SEED")) seeds.begin = std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("EPOCH_SEEDS");
  seeds.end = seeds.begin + (count == nullptr ? 60 : std::strtoull(count, nullptr, 10));
  return seeds;
}

TEST(EpochSeeds, random_programs_end_right) {
  const auto [begin, end] = seeds_to_run();
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const launch::SimulateResult result = run_seed(seed, false);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
}

TEST(EpochSeeds, no_pe_sleeps_while_others_wait_for_it) {
  constexpr std::int64_t sleep_ns = 100'000'000;  // until a PE looks by itself
  const auto [begin, end] = seeds_to_run();
  for (std::uint64_t seed = begin; seed < std::min<std::uint64_t>(end, 101); ++seed) {
    const launch::SimulateResult result = run_seed(seed, true);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
    ASSERT_LT(result.simulated_ns, sleep_ns) << "seed " << seed;
  }
}

}  // namespace
}  // namespace headway
