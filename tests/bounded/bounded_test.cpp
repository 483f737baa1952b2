// Memory stays bounded when receivers are slow or handlers send more than they receive.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <headway/headway.hpp>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace headway;

constexpr std::size_t mega = 1'000'000;

/// Memory that the processes of a run share with the test.
template <class T>
class Shared {
 public:
  Shared() {
    void* at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    value_ = new (at) T();
  }
  ~Shared() { munmap(value_, sizeof(T)); }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream in("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> result;
  for (pid_t pid; in >> pid;) result.push_back(pid);
  return result;
}

/// Proportional memory of a process in bytes; 0 if it has ended.
std::size_t proportional_bytes(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  }
  return 0;
}

struct FloodState {
  std::atomic<std::uint64_t> received{0};  // by the slow PE, bytes
  std::atomic<std::uint64_t> bounces{0};   // between the two other PEs
  std::atomic<bool> flooded{false};
};

struct Block1K {
  std::uint64_t words[128];
};

void flood(Pe& pe, Topology topology, std::size_t bytes_in_all, FloodState& state) {
  const std::size_t slow = pe.size() - 1;
  Aggregator<Block1K> blocks(pe, {.topology = topology});
  std::uint64_t checksum = 0, count = 0;
  blocks.on([&](const Block1K& block) {
    checksum += block.words[0] + block.words[127];
    state.received.fetch_add(sizeof block, std::memory_order_relaxed);
    if (++count % 128 == 0) usleep(1000);  // slow
  });
  // Two PEs that take part in the flood keep a message going to and fro.
  Aggregator<std::uint64_t> bounce(pe);
  bounce.on([&](Pe& here, const std::uint64_t& left) {
    state.bounces.fetch_add(1, std::memory_order_relaxed);
    if (!state.flooded.load(std::memory_order_relaxed)) bounce.send(PeId(3 - here.id()), left + 1);
  });
  if (pe.id() == 1) bounce.send(2, 0);

  const std::size_t mine = bytes_in_all / sizeof(Block1K) / slow;
  if (pe.id() != slow) {
    for (std::size_t i = 0; i < mine; ++i) {
      Block1K block{};
      block.words[0] = i;
      block.words[127] = 2 * i;
      blocks.send(slow, block);
    }
  }
  // The bouncing ends when the flood has been received; until then progress is all there is to do.
  while (state.received.load() < mine * slow * sizeof(Block1K)) pe.progress();
  state.flooded = true;
  pe.quiesce();
  const std::uint64_t expected = pe.id() == slow ? slow * 3 * (mine * (mine - 1) / 2) : 0;
  if (checksum != expected) std::_Exit(1);
}

void expect_bounded_flood(Topology topology) {
  constexpr std::size_t pes = 8;
  constexpr std::size_t budget = 16 * 1024 * 1024;
  setenv("HEADWAY_PES", "8", 1);
  setenv("HEADWAY_BUDGET", "16M", 1);
  setenv("HEADWAY_BIND", "none", 1);
  Shared<FloodState> state;
  const pid_t run_process = fork();
  if (run_process == 0) {
    char name[] = "flood";
    char* argv[] = {name, nullptr};
    _exit(run(1, argv, [&](Pe& pe) { flood(pe, topology, 1000 * mega, *state.operator->()); }));
  }
  std::size_t peak = 0;
  std::size_t rounds = 0, samples = 0, samples_without_a_bounce = 0;
  std::uint64_t bounces_before = 0;
  int status = 0;
  while (waitpid(run_process, &status, WNOHANG) == 0) {
    std::size_t sum = 0;
    for (const pid_t child : children_of(run_process)) sum += proportional_bytes(child);
    peak = std::max(peak, sum);
    usleep(200'000);
    if (++rounds % 5 != 0) continue;  // bounces are sampled once a second
    const std::uint64_t bounces = state->bounces.load();
    if (state->received > 0 && !state->flooded) {
      ++samples;
      if (bounces == bounces_before) ++samples_without_a_bounce;
    }
    bounces_before = bounces;
  }
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(samples, 5u) << "the flood was over too soon to be watched";
  EXPECT_EQ(samples_without_a_bounce, 0u) << "of " << samples << " samples";
  EXPECT_LT(peak, pes * budget + 64 * 1024 * 1024);
  std::printf("peak %.1f MiB of %.1f MiB, %zu samples, %llu bounces\n", double(peak) / 0x1p20,
              double(pes * budget) / 0x1p20 + 64, samples, static_cast<unsigned long long>(state->bounces.load()));
}

TEST(Bounded, a_flood_to_a_slow_pe_stays_within_the_budgets_and_stops_nobody_else_1d) { expect_bounded_flood(grid(1)); }
TEST(Bounded, a_flood_to_a_slow_pe_stays_within_the_budgets_and_stops_nobody_else_2d) { expect_bounded_flood(grid(2)); }

TEST(Bounded, handlers_that_send_two_messages_for_each_end_and_the_spill_is_reported) {
  setenv("HEADWAY_PES", "4", 1);
  setenv("HEADWAY_BUDGET", "1M", 1);
  setenv("HEADWAY_BIND", "none", 1);
  char name[] = "cascade";
  char* argv[] = {name, nullptr};
  Shared<std::atomic<std::uint64_t>> spilled;
  const int status = run(1, argv, [&](Pe& pe) {
    Aggregator<std::uint64_t> cascade(pe, {.buffer_bytes = 4096});
    std::uint64_t next = pe.id();
    cascade.on([&](const std::uint64_t& depth) {
      if (depth == 0) return;
      cascade.send(next++ % pe.size(), depth - 1);
      cascade.send(next++ % pe.size(), depth - 1);
    });
    if (pe.id() == 0) cascade.send(0, 20);
    const std::uint64_t handled = pe.quiesce();
    spilled->fetch_add(cascade.statistics().spilled_frames);
    return handled == (1u << 21) - 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_GT(spilled->load(), 0u);
}

}  // namespace
