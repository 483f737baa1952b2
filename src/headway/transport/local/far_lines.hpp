/// Which readers are so far away that frames for them are better written past the caches.
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
/// runs. So it is measured now and then, on frames that were written as usual.
class FarLines {
 public:
  /// How much of a block is looked at, behind its header: enough to be told from an interruption.
  static constexpr std::size_t lines = 24, line_bytes = 64;
  static constexpr std::size_t looked_at_bytes = lines * line_bytes;
  // Of a line, on the average of late: close together 3 to 11, apart 15 to 40.
  static constexpr double far_ns = 13, near_ns = 10, believed_ns_max = 40;

  /// Of a block that this reader has read, and that was written as usual: whether learn() wants to know what its lines
  /// cost.
  bool wants_look() {
    if (!far_ && ++since_look_ < wait_) return false;
    since_look_ = 0;
    if (wait_ < picks_per_look) wait_ *= 2;
    return true;
  }

  /// One that is slow may have been interrupted, one that is fast cannot: and what says otherwise than before is soon
  /// looked at again.
  void learn(double ns_per_line) {
    const double more = std::min(ns_per_line, believed_ns_max) - mean_ns_;
    mean_ns_ += more / (more > 0 ? 4 : 2);
    if (ns_per_line >= far_ns) wait_ = 1;
    if (far_ && ns_per_line < near_ns) picks_ = picks_per_plain - 1;
    far_ = mean_ns_ >= (far_ ? near_ns : far_ns);
  }

  /// Whether to write the next block for it past the caches. Now and then it is not, to be looked at.
  bool pick() {
    if (!far_ || ++picks_ < picks_per_plain) return far_;
    picks_ = 0;
    return false;
  }

  /// What a line of a block costs that begins at `block`, and of which nothing is needed any more.
  static double ns_per_line(std::byte* block) {
    const std::int64_t begin = monotonic_ns();
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(block + line_bytes);
    for (std::size_t word = 0; word < looked_at_bytes / sizeof *words; ++word) words[word] = 0;
    std::atomic<int> all_written{0};
    all_written.exchange(1);  // until the stores before it have left
    return double(monotonic_ns() - begin) / double(lines);
  }

 private:
  static constexpr std::uint32_t picks_per_look = 64;   // a look costs 1 us where it is slow, and a tenth elsewhere
  static constexpr std::uint32_t picks_per_plain = 128;  // costs as much as a few that are not

  bool far_ = false;
  double mean_ns_ = 0;
  std::uint32_t since_look_ = 0, wait_ = 1, picks_ = 0;
};

}  // namespace headway::local
