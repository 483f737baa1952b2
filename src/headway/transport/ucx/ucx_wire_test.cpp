// SPDX-License-Identifier: BSD-3-Clause
// The plug-in for UCX, loaded by processes that meet in shared memory: gets bring exactly the bytes of exposed memory,
// and invalid calls are refused with their values and change nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ucx_wire_test_process.hpp"

namespace headway::wire {
namespace {

constexpr unsigned last_resort_s = 60;  // for a wait inside UCX

/// Byte `at` of process `owner`'s memory.
char content(std::uint32_t owner, std::size_t at) { return char(owner * 59 + at * 7 + (at >> 8)); }
/// Memory of this process, exposed from an odd address on, and the same of all processes as this one reaches it.
class Window {
 public:
  Window(Process& process, std::size_t bytes) : process_(&process), memory_(bytes + margin) {
    for (std::size_t i = margin; i < memory_.size(); ++i) memory_[i] = content(process.number(), i - margin);
    const auto keys = process.share(process.expose(memory_.data() + margin, bytes, &region_));
    for (std::uint32_t p = 0; p < processes; ++p) remotes_.push_back(process.reach(p, keys[p]));
  }

  void close() {
    process_->barrier();
    for (headway_wire_remote* const remote : remotes_) process_->functions().forget(process_->wire(), remote);
    process_->barrier();
    require(process_->functions().withdraw(process_->wire(), region_) == 0, "withdraw failed");
  }

  headway_wire_remote* of(std::uint32_t process) const { return remotes_[process]; }

 private:
  static constexpr std::size_t margin = 67;

  Process* process_;
  std::vector<char> memory_;
  headway_wire_region* region_ = nullptr;
  std::vector<headway_wire_remote*> remotes_;
};

struct Piece {
  std::size_t offset, bytes, misaligned;
};
/// Pieces of all sizes from bytes 5, 6, 7 ... of a word on, from and to addresses as odd, with gaps between them.
std::vector<Piece> pieces() {
  std::vector<Piece> all;
  std::size_t offset = 5;
  for (const std::size_t bytes : {0, 1, 7, 64, 4096, (1 << 20) + 3}) {
    for (const std::size_t misaligned : {0, 1, 3, 6}) {
      all.push_back({offset, bytes, misaligned});
      offset += bytes + 9;
    }
  }
  return all;
}
std::size_t bytes_of(const std::vector<Piece>& all) { return all.back().offset + all.back().bytes + 5; }

void get_and_compare(Process& process, std::uint32_t owner) {
  const std::vector<Piece> all = pieces();
  Window window(process, bytes_of(all));
  constexpr std::size_t behind = 16;
  std::vector<std::vector<char>> targets;
  for (const Piece& piece : all) {
    std::vector<char>& to = targets.emplace_back(piece.misaligned + piece.bytes + behind, char(0x5a));
    process.get(window.of(owner), piece.offset, to.data() + piece.misaligned, piece.bytes);
  }
  process.finish();
  for (std::size_t n = 0; n < all.size(); ++n) {
    for (std::size_t i = 0; i < targets[n].size(); ++i) {
      const std::size_t at = i - all[n].misaligned;
      const char expected = at < all[n].bytes ? content(owner, all[n].offset + at) : char(0x5a);
      if (targets[n][i] == expected) continue;
      fail("a get of " + std::to_string(all[n].bytes) + " bytes: byte " + std::to_string(i));
    }
  }
  window.close();
}

/// Gets 8 bytes each, most of them open at once, while messages travel.
void get_many_words(Process& process) {
  constexpr std::size_t words = 20'000, stride = 7919, first = 3, messages = 50;
  Window window(process, first + words * 8 + 5);
  std::vector<char> to(words * 8 + 1);
  std::vector<std::vector<char>> received(messages, std::vector<char>(64));
  for (auto& message : received) {
    process.functions().receive(process.wire(), headway_wire_frames, 0, message.data(), message.size(), 0);
  }
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t at = i * stride % words * 8;
    process.get(window.of(process.left()), first + at, to.data() + 1 + at, 8);
    if (i % (words / messages) != 0) continue;
    process.begin(headway_wire_sent, [&](std::uint64_t cookie) {
      return process.functions().send(process.wire(), process.right(), headway_wire_frames, "a message", 9, cookie);
    });
  }
  process.finish();
  for (std::size_t i = 0; i < words * 8; ++i) {
    require(to[i + 1] == content(process.left(), first + i), "a get brought other bytes");
  }
  while (process.arrived() < messages) process.progress();
  for (const auto& message : received)
    require(std::memcmp(message.data(), "a message", 9) == 0, "a message has changed");
  window.close();
}

void refuse_what_lies_beyond(Process& process) {
  constexpr std::size_t bytes = 1000;
  constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  Window window(process, bytes);
  headway_wire_remote* const remote = window.of(process.right());
  struct Beyond {
    std::uint64_t offset;
    std::size_t bytes;
  };
  char some[16] = "unchanged";
  for (const auto& [offset, count] :
       {Beyond{bytes, 1}, {bytes - 3, 4}, {0, bytes + 1}, {bytes + 1, 0}, {max, 1}, {max, 0}, {max - 1, 4}, {1, max}}) {
    const std::vector<std::string> parts = {std::to_string(offset), std::to_string(count) + " byte", "1000"};
    process.require_refused(process.functions().get(process.wire(), remote, offset, some, count, 7), parts);
  }
  require(std::strcmp(some, "unchanged") == 0, "a get that was refused has written");
  // The last byte, and 0 bytes behind it, are within the region; and the wire goes on.
  process.get(remote, bytes - 1, some, 1);
  process.get(remote, bytes, some + 1, 0);
  process.finish();
  require(some[0] == content(process.right(), bytes - 1) && some[1] == 'n', "a get of the last byte");
  window.close();
}

void refuse_damaged_keys(Process& process) {
  const headway_wire_functions& wire = process.functions();
  std::vector<char> memory(100);
  headway_wire_region* region = nullptr;
  const auto key = process.share(process.expose(memory.data(), memory.size(), &region))[process.right()];
  headway_wire_remote* remote = nullptr;
  const std::string title = "the key of process " + std::to_string(process.right());
  const auto require_refused = [&](const std::vector<char>& damaged, std::uint32_t owner, const char* part) {
    process.require_refused(wire.reach(process.wire(), owner, damaged.data(), damaged.size(), &remote),
                            {"the key of process " + std::to_string(owner), part});
  };
  for (std::size_t i = 0; i < key.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<char> damaged = key;
      damaged[i] = char(damaged[i] ^ 1 << bit);
      require_refused(damaged, process.right(), "");
    }
    // Exactly as long as it claims to be, so that reading on is reading beyond.
    require_refused({key.begin(), key.begin() + std::ptrdiff_t(i)}, process.right(), std::to_string(i).c_str());
  }
  std::vector<char> longer = key;
  longer.push_back(0);
  require_refused(longer, process.right(), "bytes instead of");
  require_refused(std::vector<char>(key.size()), process.right(), "begins with 0x0 instead of 0x79656b2077646568");
  require_refused(key, process.left(), ("is one of process " + std::to_string(process.right())).c_str());
  require_refused(key, processes, "the run has 3 processes");
  // At an odd address.
  std::vector<char> moved(key.size() + 1);
  std::ranges::copy(key, moved.begin() + 1);
  require(wire.reach(process.wire(), process.right(), moved.data() + 1, key.size(), &remote) == 0, "a whole key");
  wire.forget(process.wire(), remote);
  process.barrier();
  require(wire.withdraw(process.wire(), region) == 0, "withdraw failed");
}

void refuse_too_little_room(Process& process) {
  const headway_wire_functions& wire = process.functions();
  std::vector<char> memory(100);
  headway_wire_region* region = nullptr;
  const std::size_t needed = process.expose(memory.data(), memory.size(), &region).size();
  for (std::size_t room = 0; room <= needed; room += room + 1 < needed ? needed - 1 : 1) {
    std::vector<char> key(room + 8, 'x');
    headway_wire_region* another = nullptr;
    std::size_t key_bytes = 0;
    const int result =
        wire.expose(process.wire(), memory.data(), memory.size(), &another, key.data(), room, &key_bytes);
    require(key_bytes == needed, "the length of the key is not told");
    if (room < needed) {
      process.require_refused(result, {"takes " + std::to_string(needed), "room for " + std::to_string(room)});
      require(another == nullptr && key == std::vector<char>(room + 8, 'x'), "a refusal has changed something");
    } else {
      require(result == 0 && std::ranges::count(key.end() - 8, key.end(), 'x') == 8, "a key in memory of its length");
      require(wire.withdraw(process.wire(), another) == 0, "withdraw failed");
    }
  }
  require(wire.withdraw(process.wire(), region) == 0, "withdraw failed");
}

void expose_nothing(Process& process) {
  headway_wire_region* region = nullptr;
  const auto keys = process.share(process.expose(nullptr, 0, &region));
  headway_wire_remote* const remote = process.reach(process.right(), keys[process.right()]);
  process.get(remote, 0, nullptr, 0);
  char byte = 0;
  process.require_refused(process.functions().get(process.wire(), remote, 0, &byte, 1, 7),
                          {"1 byte from byte 0 on is beyond", "region of 0 bytes"});
  process.finish();
  process.barrier();
  process.functions().forget(process.wire(), remote);
  require(process.functions().withdraw(process.wire(), region) == 0, "withdraw failed");
}

/// Leaves a wire with memory that is still exposed, and starts another one.
void leave_with_open_windows(Process& process) {
  Window first(process, 5000), second(process, 10);
  process.leave();
  process.start();
  get_and_compare(process, process.left());
}

/// One process dies while the others get from it.
void notice_that_a_process_is_gone(Process& process) {
  constexpr std::uint32_t gone = 2;
  Window window(process, 64);
  if (process.number() == gone) process.die();
  const headway_wire_functions& wire = process.functions();
  char got[64] = "";
  try {
    for (;;) {
      process.get(window.of(gone), 0, got, 32);
      process.finish();
      for (std::size_t i = 0; i < 32; ++i) require(got[i] == content(gone, i), "a get brought other bytes");
    }
  } catch (const std::exception& problem) {
    require(wire.lost(process.wire()) == gone, problem.what());
    require(std::strlen(wire.failure(process.wire())) > 0, "no reason is given");
    headway_wire_event event;
    require(wire.progress(process.wire(), &event, 1) < 0, "progress goes on");
  }
  process.barrier_without_wire();
}

/// Gives this process a host name of its own, so that the plug-in treats the others as processes of other hosts.
bool name_host(const std::string& name) {
  if (unshare(CLONE_NEWUTS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0) return false;
  return sethostname(name.data(), name.size()) == 0;
}
bool may_name_hosts() {
  const pid_t child = fork();
  if (child == 0) _exit(name_host("another") ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

enum class End { leave, die };

// With UCX's default transports, and with TCP alone.
class UcxWire : public testing::TestWithParam<const char*> {
 public:
  /// Runs `body` in all processes, each with a wire. Then they leave; with End::die they have hosts of their own and
  /// end.
  void run(const std::function<void(Process&)>& body, End end = End::leave) {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const shared = new (memory) Shared;
    std::vector<pid_t> children;
    for (std::uint32_t number = 0; number < processes; ++number) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) _exit(run_one(*shared, number, body, end));
      children.push_back(child);
    }
    for (std::uint32_t number = 0; number < processes; ++number) {
      int status = 0;
      ASSERT_EQ(waitpid(children[number], &status, 0), children[number]);
      EXPECT_EQ(status, 0) << "process " << number << ": " << shared->problem[number];
      if (status != 0) shared->failed = true;
    }
    munmap(shared, sizeof *shared);
  }

 private:
  static int run_one(Shared& shared, std::uint32_t number, const std::function<void(Process&)>& body, End end) {
    alarm(last_resort_s);
    if (end == End::die) name_host("host-" + std::to_string(number));
    if (*GetParam() != 0) setenv("UCX_TLS", GetParam(), 1);
    try {
      Process process(shared, number, HEADWAY_UCX_PLUGIN);
      process.start();
      body(process);
      if (end == End::leave) process.leave();
      return 0;
    } catch (const std::exception& problem) {
      std::snprintf(shared.problem[number], sizeof shared.problem[number], "%s", problem.what());
      shared.failed = true;
      return 1;
    }
  }
};

TEST_P(UcxWire, gets_bring_the_bytes_of_the_owner) {
  run([](Process& process) { get_and_compare(process, process.left()); });
}

TEST_P(UcxWire, a_process_gets_from_itself_as_from_others) {
  run([](Process& process) { get_and_compare(process, process.number()); });
}

TEST_P(UcxWire, thousands_of_gets_are_open_while_messages_travel) { run(get_many_words); }

TEST_P(UcxWire, a_get_beyond_a_region_is_refused_with_its_numbers) { run(refuse_what_lies_beyond); }

TEST_P(UcxWire, a_damaged_key_and_a_key_of_another_process_are_refused) { run(refuse_damaged_keys); }

TEST_P(UcxWire, too_little_memory_for_a_key_is_refused_with_the_needed_bytes) { run(refuse_too_little_room); }

TEST_P(UcxWire, a_region_of_no_bytes_has_a_key) { run(expose_nothing); }

TEST_P(UcxWire, a_process_leaves_with_memory_that_is_still_exposed) { run(leave_with_open_windows); }

TEST_P(UcxWire, a_process_that_dies_ends_the_wire_of_the_processes_that_get_from_it) {
  if (!may_name_hosts()) GTEST_SKIP() << "no namespaces here";
  run(notice_that_a_process_is_gone, End::die);
}

INSTANTIATE_TEST_SUITE_P(Over, UcxWire, testing::Values("", "tcp,self"),
                         [](const auto& test) { return std::string(*test.param == 0 ? "what_there_is" : "tcp"); });

}  // namespace
}  // namespace headway::wire
