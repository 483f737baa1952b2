// The plug-in for UCX as it is loaded, between processes that meet in shared memory: memory that others put to and get
// from ends byte by byte as it should, and what cannot be is refused by name and changes nothing.
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

constexpr unsigned last_resort_s = 60;  // for what waits inside UCX

/// What lies at byte `at` of process `owner`'s memory before anything is put there.
char background(std::uint32_t owner, std::size_t at) { return char(owner * 59 + at * 7 + (at >> 8)); }
/// What process `source` puts there.
char foreground(std::uint32_t source, std::size_t at) { return char(source * 83 + at * 11 + (at >> 9) + 1); }

/// Memory of this process, exposed from an odd address on, and the same of the others as it is reached from here. The
/// bytes before and behind it are looked at, too.
class Window {
 public:
  Window(Process& process, std::size_t bytes) : process_(&process), bytes_(bytes), memory_(bytes + 2 * margin) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = background(process.number(), i - margin);
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
  std::size_t bytes() const { return bytes_; }

  /// That it is as `source` has left it, who has put the bytes for which `is_put`.
  void require_put(std::uint32_t source, const std::vector<bool>& is_put) const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const std::size_t at = i - margin;
      const bool changed = at < bytes_ && is_put[at];
      const char expected = changed ? foreground(source, at) : background(process_->number(), at);
      if (memory_[i] == expected) continue;
      fail("byte " + std::to_string(at) + (changed ? " is not what was put" : " has changed, where nothing was put"));
    }
  }

 private:
  static constexpr std::size_t margin = 67;

  Process* process_;
  std::size_t bytes_;
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

void put_and_compare(Process& process, std::uint32_t target, std::uint32_t source) {
  const std::vector<Piece> all = pieces();
  Window window(process, bytes_of(all));
  std::vector<bool> is_put(window.bytes());
  std::vector<std::vector<char>> sources;
  for (const Piece& piece : all) {
    std::vector<char>& from = sources.emplace_back(piece.bytes + piece.misaligned);
    for (std::size_t i = 0; i < piece.bytes; ++i) {
      from[piece.misaligned + i] = foreground(process.number(), piece.offset + i);
      is_put[piece.offset + i] = true;
    }
    process.put(window.of(target), piece.offset, from.data() + piece.misaligned, piece.bytes);
  }
  process.place(target);
  process.barrier();
  window.require_put(source, is_put);
  process.finish();
  window.close();
}

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
      const char expected = at < all[n].bytes ? background(owner, all[n].offset + at) : char(0x5a);
      if (targets[n][i] == expected) continue;
      fail("a get of " + std::to_string(all[n].bytes) + " bytes: byte " + std::to_string(i));
    }
  }
  window.close();
}

/// Words of 8 bytes, most of them open at once, while messages go the same way.
void put_and_get_many_words(Process& process) {
  constexpr std::size_t words = 20'000, stride = 7919, first = 3, messages = 50;
  Window window(process, first + words * 8 + 5);
  std::vector<char> from(words * 8), to(words * 8 + 1);
  std::vector<std::vector<char>> received(messages, std::vector<char>(64));
  for (auto& message : received) {
    process.functions().receive(process.wire(), headway_wire_frames, 0, message.data(), message.size(), 0);
  }
  for (std::size_t i = 0; i < words * 8; ++i) from[i] = foreground(process.number(), first + i);
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t at = i * stride % words * 8;
    process.put(window.of(process.right()), first + at, from.data() + at, 8);
    if (i % (words / messages) != 0) continue;
    process.begin(headway_wire_sent, [&](std::uint64_t cookie) {
      return process.functions().send(process.wire(), process.right(), headway_wire_frames, "a message", 9, cookie);
    });
  }
  process.place(process.right());
  process.barrier();
  std::vector<bool> is_put(window.bytes());
  for (std::size_t i = 0; i < words * 8; ++i) is_put[first + i] = true;
  window.require_put(process.left(), is_put);
  while (process.arrived() < messages) process.progress();
  for (const auto& message : received)
    require(std::memcmp(message.data(), "a message", 9) == 0, "a message has changed");

  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t at = i * stride % words * 8;
    process.get(window.of(process.left()), first + at, to.data() + 1 + at, 8);
  }
  process.finish();
  for (std::size_t i = 0; i < words * 8; ++i) {
    require(to[i + 1] == foreground((process.left() + processes - 1) % processes, first + i), "a get of what was put");
  }
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
    const std::vector<std::string> parts = {std::to_string(offset), std::to_string(count) + " bytes", "1000"};
    process.require_refused(process.functions().put(process.wire(), remote, offset, some, count, 7), parts);
    process.require_refused(process.functions().get(process.wire(), remote, offset, some, count, 7), parts);
  }
  require(std::strcmp(some, "unchanged") == 0, "a get that was refused has written");
  // Its last byte, and none behind it, are within; and the wire goes on.
  std::vector<bool> is_put(bytes);
  is_put[bytes - 1] = true;
  const char last = foreground(process.number(), bytes - 1);
  process.put(remote, bytes - 1, &last, 1);
  process.put(remote, bytes, &last, 0);
  process.get(remote, bytes, some, 0);
  process.place(process.right());
  process.barrier();
  window.require_put(process.left(), is_put);
  process.finish();
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
  require_refused(std::vector<char>(key.size()), process.right(), "does not begin as a key does");
  require_refused(key, process.left(), ("is one of process " + std::to_string(process.right())).c_str());
  require_refused(key, processes, "there are 3 processes");
  // From any address on.
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
    require(key_bytes == needed, "it does not say how long the key is");
    if (room < needed) {
      process.require_refused(result, {"takes " + std::to_string(needed), "room for " + std::to_string(room)});
      require(another == nullptr && key == std::vector<char>(room + 8, 'x'), "a refusal has changed something");
    } else {
      require(result == 0 && std::ranges::count(key.end() - 8, key.end(), 'x') == 8, "the room that it takes");
      require(wire.withdraw(process.wire(), another) == 0, "withdraw failed");
    }
  }
  require(wire.withdraw(process.wire(), region) == 0, "withdraw failed");
}

void expose_nothing(Process& process) {
  headway_wire_region* region = nullptr;
  const auto keys = process.share(process.expose(nullptr, 0, &region));
  headway_wire_remote* const remote = process.reach(process.right(), keys[process.right()]);
  process.put(remote, 0, nullptr, 0);
  process.get(remote, 0, nullptr, 0);
  process.place(process.right());
  char byte = 0;
  process.require_refused(process.functions().put(process.wire(), remote, 0, &byte, 1, 7), {"1 byte from byte 0 on is beyond", "region of 0 bytes"});
  process.finish();
  process.barrier();
  process.functions().forget(process.wire(), remote);
  require(process.functions().withdraw(process.wire(), region) == 0, "withdraw failed");
}

/// A wire is left with memory that was never taken back; then there is another one, which has nothing of it.
void leave_with_open_windows(Process& process) {
  Window first(process, 5000), second(process, 10);
  process.leave();
  process.start();
  put_and_compare(process, process.right(), process.left());
}

/// One of them dies while the others get from it and put to it.
void notice_that_a_process_is_gone(Process& process) {
  constexpr std::uint32_t gone = 2;
  Window window(process, 64);
  if (process.number() == gone) process.die();
  const headway_wire_functions& wire = process.functions();
  char got[64] = "", zeros[64] = "";
  try {
    for (;;) {
      process.get(window.of(gone), 0, got, 32);
      process.finish();
      for (std::size_t i = 0; i < 32; ++i) require(got[i] == background(gone, i), "a get without what it asked for");
      process.put(window.of(gone), 32, zeros, 32);
      process.place(gone);
    }
  } catch (const std::exception& problem) {
    require(wire.lost(process.wire()) == gone, problem.what());
    require(std::strlen(wire.failure(process.wire())) > 0, "no reason is given");
    headway_wire_event event;
    require(wire.progress(process.wire(), &event, 1) < 0, "progress goes on");
  }
  process.barrier_without_wire();
}

/// Names this process's host, so that the plug-in takes it for another one, whose processes it has to watch.
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

// By what they use: the default, or TCP alone.
class UcxWire : public testing::TestWithParam<const char*> {
 public:
  /// Runs that in all processes, each with a wire. Behind it they leave; or they have hosts of their own, and die.
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

TEST_P(UcxWire, what_is_put_to_the_right_is_in_place_after_a_flush_and_nothing_else_has_changed) {
  run([](Process& process) { put_and_compare(process, process.right(), process.left()); });
}

TEST_P(UcxWire, a_process_puts_to_itself_as_to_others) {
  run([](Process& process) { put_and_compare(process, process.number(), process.number()); });
}

TEST_P(UcxWire, what_is_got_from_the_left_is_what_lies_there) {
  run([](Process& process) { get_and_compare(process, process.left()); });
}

TEST_P(UcxWire, a_process_gets_from_itself_as_from_others) {
  run([](Process& process) { get_and_compare(process, process.number()); });
}

TEST_P(UcxWire, thousands_of_words_are_on_their_way_beside_messages) { run(put_and_get_many_words); }

TEST_P(UcxWire, what_lies_beyond_a_region_is_refused_by_its_numbers) { run(refuse_what_lies_beyond); }

TEST_P(UcxWire, a_key_that_is_damaged_or_anothers_is_refused) { run(refuse_damaged_keys); }

TEST_P(UcxWire, too_little_room_for_a_key_is_refused_and_what_it_takes_is_told) { run(refuse_too_little_room); }

TEST_P(UcxWire, a_region_of_no_bytes_has_a_key) { run(expose_nothing); }

TEST_P(UcxWire, a_wire_is_left_with_memory_that_was_not_taken_back) { run(leave_with_open_windows); }

TEST_P(UcxWire, a_process_that_dies_ends_the_wire_of_those_that_put_to_it_and_get_from_it) {
  if (!may_name_hosts()) GTEST_SKIP() << "no namespaces here";
  run(notice_that_a_process_is_gone, End::die);
}

INSTANTIATE_TEST_SUITE_P(Over, UcxWire, testing::Values("", "tcp,self"),
                         [](const auto& test) { return std::string(*test.param == 0 ? "what_there_is" : "tcp"); });

}  // namespace
}  // namespace headway::wire
