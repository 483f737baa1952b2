// SPDX-License-Identifier: BSD-3-Clause
/// Reductions between hosts in every order of messages: without PEs, by services that this test implements.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/collective/host_reductions.hpp>
#include <headway/collective/operation.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace headway::collective {
namespace {

struct Letter {
  std::size_t from, to;  // processes
  std::vector<std::byte> bytes;
};

/// The end of one process: its messages join all others in flight.
class Post final : public transport::Services {
 public:
  Post(std::mutex& mutex, std::vector<Letter>& letters, std::size_t process)
      : mutex_(&mutex), letters_(&letters), process_(process) {}

  void send(std::size_t process, std::span<const std::byte> bytes) override {
    const std::lock_guard<std::mutex> lock(*mutex_);
    letters_->push_back({process_, process, {bytes.begin(), bytes.end()}});
  }
  void set_take(Take take) override { take_ = std::move(take); }
  void wake_host() override {}
  void deliver(const Letter& letter) { take_(letter.from, letter.bytes); }

 private:
  std::mutex* mutex_;
  std::vector<Letter>* letters_;
  std::size_t process_;
  Take take_;
};

using Sum = OperationOf<Kind::reduce, std::uint64_t, std::plus<>>;
using SumForAll = OperationOf<Kind::allreduce, std::uint64_t, std::plus<>>;

/// Hosts of one PE each; the caller is one thread of each.
class Network {
 public:
  static constexpr std::uint64_t reductions = 4 * cells_count;
  static constexpr std::size_t hosts_max = 13;

  Network(std::size_t hosts, std::uint64_t seed) : hosts_(hosts), seed_(seed), next_(hosts), checked_(hosts) {
    Hosts places{{}, hosts, 1, 0};
    parts_.swap(kept_parts());
    for (std::size_t host = 0; host < hosts; ++host) places.firsts.push_back(host);
    for (std::size_t host = 0; host < hosts; ++host) {
      places.own = host;
      memory_.push_back(std::make_unique<Memory>());
      if (parts_.size() == host) parts_.emplace_back(HostReductions::area_bytes(hosts_max) / sizeof(CellSlot));
      std::memset(static_cast<void*>(parts_[host].data()), 0, HostReductions::area_bytes(hosts_max));
      posts_.push_back(std::make_unique<Post>(mutex_, letters_, host));
      ends_.push_back(
          std::make_unique<HostReductions>(places, *posts_[host], std::vector<CellArea*>{&memory_[host]->area},
                                           std::vector<std::byte*>{reinterpret_cast<std::byte*>(parts_[host].data())}));
    }
  }

  ~Network() { parts_.swap(kept_parts()); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Any message that is on its way, if there is one.
  bool deliver(Random& random) {
    Letter letter;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (letters_.empty()) return false;
      std::swap(letters_[random.between(0, letters_.size() - 1)], letters_.back());
      letter = std::move(letters_.back());
      letters_.pop_back();
    }
    posts_[letter.to]->deliver(letter);
    return true;
  }

  /// The host's only PE: looks for finished calls, and makes its next call if the cell is free. By one thread of each
  /// host.
  bool call(std::size_t host) {
    HostReductions& end = *ends_[host];
    bool any = false;
    for (; checked_[host] < next_[host] && end.is_over(checked_[host]); any = true) check(host, checked_[host]++);
    const std::uint64_t reduction = next_[host];
    if (reduction == reductions || (reduction >= cells_count && !end.is_over(reduction - cells_count))) return any;
    if (reduction >= cells_count && checked_[host] <= reduction - cells_count) return any;
    std::vector<std::uint64_t> mine(count(reduction));
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(host, reduction, i);
    ++next_[host];
    end.arrive(said(host, reduction), std::as_bytes(std::span(mine)));
    return true;
  }
  bool is_done(std::size_t host) const { return checked_[host] == reductions; }
  bool is_done() const {
    for (std::size_t host = 0; host < hosts_; ++host) {
      if (!is_done(host)) return false;
    }
    return true;
  }
  bool nothing_is_on_its_way() const { return letters_.empty(); }
  HostReductions& end(std::size_t host) { return *ends_[host]; }
  bool is_for_all(std::uint64_t reduction) const { return (reduction ^ seed_) % 3 == 0; }

  HostReductions::Said said(std::size_t host, std::uint64_t reduction) const {
    const std::uint32_t what = is_for_all(reduction) ? SumForAll::operation.number() : Sum::operation.number();
    return {reduction, count(reduction), std::uint32_t(reduction), what, root(reduction), std::uint32_t(host)};
  }

 private:
  struct Memory {
    CellArea area{};
  };
  /// For reuse by the next network: allocating anew each time dominates a sanitized run.
  static std::vector<std::vector<CellSlot>>& kept_parts() {
    static std::vector<std::vector<CellSlot>> kept;
    return kept;
  }

  std::uint32_t root(std::uint64_t reduction) const {
    return is_for_all(reduction) ? 0 : std::uint32_t(reduction * 7 + seed_) % std::uint32_t(hosts_);
  }
  std::size_t count(std::uint64_t reduction) const {
    return reduction % 5 == 0 ? 1 : reduction % 7 == 0 ? 1024 : reduction % 20;
  }
  static std::uint64_t value(std::size_t host, std::uint64_t reduction, std::size_t i) {
    return (host + 1) * 1'000'000 + reduction * 1000 + i;
  }

  void check(std::size_t host, std::uint64_t reduction) {
    if (!is_for_all(reduction) && root(reduction) != host) return;
    const Bytes bytes = ends_[host]->result(reduction, count(reduction) * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < count(reduction); ++i) {
      std::uint64_t expected = 0;
      for (std::size_t other = 0; other < hosts_; ++other) expected += value(other, reduction, i);
      ASSERT_EQ(load<std::uint64_t>(bytes.data() + i * sizeof expected), expected)
          << "call " << reduction << " on host " << host << " of " << hosts_ << ", element " << i << ", seed " << seed_;
    }
  }

  std::size_t hosts_;
  std::uint64_t seed_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<std::vector<CellSlot>> parts_;
  std::vector<std::unique_ptr<Post>> posts_;
  std::vector<std::unique_ptr<HostReductions>> ends_;
  std::vector<std::uint64_t> next_, checked_;  // by host: its next call, and the next result it looks at
};

TEST(HostReductions, come_down_right_whatever_overtakes_what) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "one thread: nothing for ThreadSanitizer";
#endif
  for (const std::size_t hosts : {1, 2, 3, 5, 8, 13}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Network run(hosts, seed);
      Random random(seed * 1000 + hosts);
      // Messages as calls, or far fewer, or far more; and for a while one host makes no calls at all.
      const std::uint64_t eager = random.between(1, 9), absent = random.between(0, hosts - 1);
      for (std::uint64_t step = 0; !run.is_done(); ++step) {
        ASSERT_LT(step, 10'000'000u) << hosts << " hosts hang, seed " << seed;
        if (random.between(0, 9) < eager) {
          run.deliver(random);
        } else {
          const std::size_t host = random.between(0, hosts - 1);
          if (host != absent || step % 5000 > 2500) run.call(host);
        }
      }
      while (run.deliver(random)) continue;
    }
  }
}

TEST(HostReductions, are_right_whichever_threads_take_the_messages) {
  for (const std::size_t hosts : {2, 3, 5}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Network run(hosts, seed);
      std::atomic<std::size_t> left{hosts};
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      const auto goes_on = [&] { return left.load() != 0 && std::chrono::steady_clock::now() < end; };
      std::vector<std::jthread> threads;
      for (std::size_t host = 0; host < hosts; ++host) {
        threads.emplace_back([&, host] {
          for (bool counted = false; goes_on();) {
            if (!run.call(host)) std::this_thread::yield();
            if (!counted && run.is_done(host)) {
              counted = true;
              --left;
            }
          }
        });
      }
      for (std::uint64_t helper = 0; helper < 2; ++helper) {
        threads.emplace_back([&, helper] {
          Random random(seed * 10 + helper);
          while (goes_on()) {
            if (!run.deliver(random)) std::this_thread::yield();
          }
        });
      }
      threads.clear();
      EXPECT_TRUE(run.is_done()) << hosts << " hosts hang, seed " << seed;
    }
  }
}

std::string thrown_by(const std::function<void()>& run) {
  try {
    run();
  } catch (const transport::InvalidFrame& error) {
    return error.what();
  }
  return "nothing";
}

// Hosts reduce by an operation's number. GCC gives both closures one name.
TEST(Operations, of_two_closures_of_one_function_are_two) {
  const auto sum = [](std::uint64_t a, std::uint64_t b) { return a + b; };
  const auto product = [](std::uint64_t a, std::uint64_t b) { return a * b; };
  const auto reduced = [](const Operation& operation) {
    std::uint64_t left = 6;
    const std::uint64_t right = 7;
    EXPECT_EQ(Operation::find(operation.number(true)), &operation);
    Operation::find(operation.number())
        ->reduce()(reinterpret_cast<std::byte*>(&left), reinterpret_cast<const std::byte*>(&right), sizeof left);
    return left;
  };
  EXPECT_EQ(reduced((OperationOf<Kind::reduce, std::uint64_t, decltype(sum)>::operation)), 13u);
  EXPECT_EQ(reduced((OperationOf<Kind::reduce, std::uint64_t, decltype(product)>::operation)), 42u);
}

TEST(HostReductions, name_both_where_hosts_differ_whoever_comes_first) {
  for (const bool above_is_late : {false, true}) {
    Network run(2, 0);  // call 0 is for all: host 1 is below host 0
    Random random(1);
    const std::uint64_t one = 1;
    const Bytes bytes = std::as_bytes(std::span(&one, 1));
    HostReductions::Said other = run.said(1, 0);
    other.count = 2;
    const std::uint64_t two[2] = {1, 2};
    const auto below = [&] { run.end(1).arrive(other, std::as_bytes(std::span(two))); };
    const auto above = [&] { run.end(0).arrive(run.said(0, 0), bytes); };
    std::string text;
    below();
    if (above_is_late) {
      run.deliver(random);
      text = thrown_by(above);
    } else {
      above();
      text = thrown_by([&] { run.deliver(random); });
    }
    const std::string here = Operation::describe(other.what, 1, 0), there = Operation::describe(other.what, 2, 0);
    EXPECT_EQ(text, "as collective number 0 of all PEs, PE 0 has called " + here + ", and PE 1 " + there +
                        ": the members of a team call the same ones in the same order");
  }
}

TEST(HostReductions, find_a_contribution_that_does_not_belong_to_a_call) {
  Network run(3, 4);  // call 1 is a reduction to PE 2
  Random random(1);
  const std::vector<std::uint64_t> mine(1);
  HostReductions::Said other = run.said(1, 1);
  other.root = 0;
  const auto said = run.said(0, 1);
  ASSERT_EQ(said.root, 2u);
  run.end(0).arrive(said, std::as_bytes(std::span(mine)));
  run.end(1).arrive(other, std::as_bytes(std::span(mine)));  // to host 0, which is below host 2 by itself
  std::string text;
  while (!run.nothing_is_on_its_way()) {
    if (const std::string one = thrown_by([&] { run.deliver(random); }); one != "nothing") text = one;
  }
  const std::string here = Operation::describe(said.what, said.count, 2);
  const std::string there = Operation::describe(other.what, other.count, 0);
  EXPECT_NE(text.find("PE 0 has called " + here + ", and PE 1 " + there), std::string::npos) << text;
}

}  // namespace
}  // namespace headway::collective
