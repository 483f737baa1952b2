/// Which readers are so far away that blocks they have read are better written past the caches.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>

namespace headway::local {

/// Of one reader, by its writer. A frame that has been read lies in its reader's cache. Where the two processors share
/// one, its lines come back in a few ns each, many at a time; where they do not, a processor that writes in small pieces
/// waits some 27 ns for each in turn, several times what it takes to write them somewhere else first and from there past
/// the caches (docs/decisions/0039). Nothing tells which it is: a virtual machine may even change it while the program
/// runs. So it is measured now and then, on blocks that were written as usual.
class FarLines {
 public:
  /// How much of a block is looked at, behind its header: enough for the clock.
  static constexpr std::size_t looked_at_lines = 24, line_bytes = 64;
  static constexpr std::size_t looked_at_bytes = looked_at_lines * line_bytes;

  /// Counts a block that this reader has read and that is about to be written again: whether learn() wants to know what
  /// its lines cost. Not what those cost that came past the caches: they are slow to get back from any reader.
  bool wants_look() { return ++since_look_ >= wait_; }

  /// One that is slow may have been interrupted, one that is fast cannot: and after one that says otherwise than those
  /// before, the next look comes soon.
  void learn(double ns_per_line) {
    const double slow_ns = far_ ? near_ns : far_ns;
    const bool slow = ns_per_line >= slow_ns;
    const double more = std::min(ns_per_line, believed_ns_max) - mean_ns_;
    mean_ns_ += more / (more > 0 ? 4 : 2);
    far_ = mean_ns_ >= slow_ns;
    since_look_ = 0;
    wait_ = slow == far_ ? std::min(2 * wait_, blocks_per_look) : 1;
    picks_ = slow ? 0 : picks_per_plain - 1;
  }

  /// Whether to write the next one past the caches. Now and then it is not, to be looked at; and what has not been
  /// looked at for long, because nothing came back that could be, is forgotten.
  bool pick() {
    if (!far_) return false;
    if (since_look_ > remembered_blocks) *this = FarLines();
    if (!far_ || ++picks_ < picks_per_plain) return far_;
    picks_ = 0;
    return false;
  }

  /// What a line costs of a block that begins at `block`, and of which nothing is needed any more.
  static double ns_per_line(std::byte* block) {
    const std::int64_t begin = monotonic_ns();
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(block + line_bytes);
    for (std::size_t word = 0; word < looked_at_bytes / sizeof *words; ++word) words[word] = 0;
    std::atomic<int> all_written{0};
    all_written.exchange(1);  // until the stores before it have left
    return double(monotonic_ns() - begin) / double(looked_at_lines);
  }

 private:
  // Of a line, on the average of late. An EPYC of family 25: together 3 to 11, apart 25 to 40, and 9 to 40 of blocks that
  // have left the reader's cache again. A Xeon of family 6, model 207, whose 16 cores are all near: 6 to 9, and 9 to 20
  // of blocks that are new.
  static constexpr double far_ns = 18, near_ns = 12, believed_ns_max = 24;
  static constexpr std::uint32_t blocks_per_look = 64;   // a look costs 0.7 us where it is slow, and 0.1 elsewhere
  static constexpr std::uint32_t picks_per_plain = 128;  // costs as much as a few that are not
  static constexpr std::uint32_t remembered_blocks = 4096;

  bool far_ = false;
  double mean_ns_ = 0;
  std::uint32_t since_look_ = 0, wait_ = 1, picks_ = 0;
};

}  // namespace headway::local
