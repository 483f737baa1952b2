// SPDX-License-Identifier: BSD-3-Clause
/// Processes of this program's own: forked from a supervisor, which measures nothing and ends all of them when one
/// dies, so that no loop that waits for another process needs to ask whether it still lives.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "processor.hpp"

namespace headway::limit {

inline constexpr std::size_t pes_max = 64;
inline constexpr std::size_t cache_line = 64;

/// Zeroed memory. Shared memory made before the processes are forked is theirs in common; private memory is each one's
/// own copy, of which no page exists before it is touched. `plain` is private memory as malloc gives it, without a wish
/// for huge pages.
class Memory {
 public:
  enum class Kind { shared, own, plain };
  Memory(Kind kind, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

/// Waiting for another process, a turn at a time.
class Waiting {
 public:
  /// `crowded`: there are more PEs than cores, and the process that the caller waits for may need this core.
  explicit Waiting(bool crowded) : spins_left_(crowded ? 0 : spins) {}
  void turn() {
    if (spins_left_ == 0) {
      ::sched_yield();
    } else {
      --spins_left_;
      relax();
    }
  }

 private:
  static constexpr unsigned spins = 2000;  // about 50 us
  unsigned spins_left_;
};

/// What all PEs share to meet and to add up; lies in shared memory.
struct Meeting {
  struct alignas(cache_line) Value {
    double number;
    std::uint64_t count;
  };
  alignas(cache_line) std::atomic<std::uint32_t> arrived;
  alignas(cache_line) std::atomic<std::uint32_t> meetings;
  Value values[pes_max];
};

/// One process, as it sees itself. The calls with "all" are collective.
class Pe {
 public:
  Pe(Meeting& meeting, std::size_t id, std::size_t size, bool crowded)
      : meeting_(meeting), id_(id), size_(size), crowded_(crowded) {}
  std::size_t id() const { return id_; }
  std::size_t size() const { return size_; }
  bool crowded() const { return crowded_; }
  Waiting waiting() const { return Waiting(crowded_); }

  void meet_all();
  double largest_of_all(double number);
  std::uint64_t sum_of_all(std::uint64_t count);

 private:
  Meeting& meeting_;
  std::size_t id_, size_;
  bool crowded_;
};

/// The processors this process may run on.
std::vector<int> processors();

/// Runs body(pe) in `pes` processes, each on a processor of its own where there are as many and `bind` says so. Returns
/// why that failed, in a line, or an empty string once all have returned. A process that dies, throws or is not done
/// after `time_limit` ends the others; so does the death of this process.
std::string run_processes(std::size_t pes, bool bind, std::chrono::seconds time_limit,
                          const std::function<void(Pe&)>& body);

/// Seconds on a clock that all processes read alike.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace headway::limit
