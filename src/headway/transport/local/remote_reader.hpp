// SPDX-License-Identifier: BSD-3-Clause
/// Detects readers that share no last-level cache with this PE's core, from the cost of writing lines they have read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>

namespace headway::local {

/// The estimate of one writer for one reader: is the reader on a remote core, which shares no last-level cache with the
/// writer's core? A frame that was read lies in its reader's cache. If the cores share a cache, the writer gets the
/// lines back in a few ns each, many at a time. If not, a writer of small pieces waits about 27 ns for each line in
/// turn. Then it is several times faster to fill a staging buffer and to write it past the caches: docs/decisions/0039.
/// The system does not tell which case holds, and a virtual machine may change it during a run. So the writer samples:
/// it measures how long it takes to write some blocks through the caches.
class RemoteReader {
 public:
  /// Lines of a block that a sample writes, behind its header: enough for the clock.
  static constexpr std::size_t sampled_lines = 24, line_bytes = 64;
  static constexpr std::size_t sampled_bytes = sampled_lines * line_bytes;

  /// Call it once for each block that this reader has read, before the block is written again. True if the next sample
  /// is due. A block that was written past the caches is no sample: its lines come back slowly from any reader.
  bool is_sample_due() { return ++since_sample_ >= wait_; }

  /// A slow sample may come from an interruption of the thread, but nothing makes a sample too fast. So the mean falls
  /// faster than it rises. After a sample that contradicts the estimate the next one is due at once.
  void add_sample(double ns_per_line) {
    const double slow_ns = is_remote_ ? shared_cache_ns : remote_ns;
    const bool slow = ns_per_line >= slow_ns;
    const double more = std::min(ns_per_line, sample_ns_max) - mean_ns_;
    mean_ns_ += more / (more > 0 ? 4 : 2);
    is_remote_ = mean_ns_ >= slow_ns;
    since_sample_ = 0;
    wait_ = slow == is_remote_ ? std::min(2 * wait_, blocks_per_sample) : 1;
    choices_ = slow ? 0 : choices_per_plain - 1;
  }

  /// True if the next block is to be written past the caches. One of `choices_per_plain` blocks for a remote reader is
  /// written through the caches, because only these can be sampled. The estimate starts anew after `remembered_blocks`
  /// blocks without a sample.
  bool choose_past_caches() {
    if (!is_remote_) return false;
    if (since_sample_ > remembered_blocks) *this = RemoteReader();
    if (!is_remote_ || ++choices_ < choices_per_plain) return is_remote_;
    choices_ = 0;
    return false;
  }

  /// Times writes to the block at `block`, and destroys its content.
  static double measure_ns_per_line(std::byte* block) {
    const std::int64_t begin = base::monotonic_ns();
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(block + line_bytes);
    for (std::size_t word = 0; word < sampled_bytes / sizeof *words; ++word) words[word] = 0;
    std::atomic<int> all_written{0};
    all_written.exchange(1);  // waits until the stores before it have left the store buffer
    return double(base::monotonic_ns() - begin) / double(sampled_lines);
  }

 private:
  // A mean cost of a line of at least `remote_ns` makes the reader remote, a mean below `shared_cache_ns` ends that.
  // Measured on EPYC, family 25: 3 to 11 ns with a shared cache, 25 to 40 without one, and 9 to 40 for blocks that have
  // left the reader's cache. On Xeon, family 6, model 207, 16 cores with one shared cache: 6 to 9 ns, and 9 to 20 for
  // new blocks.
  static constexpr double remote_ns = 18, shared_cache_ns = 12, sample_ns_max = 24;
  static constexpr std::uint32_t blocks_per_sample = 64;   // a sample takes 0.7 us if the reader is remote, else 0.1 us
  static constexpr std::uint32_t choices_per_plain = 128;  // a block through the caches costs as much as a few others
  static constexpr std::uint32_t remembered_blocks = 4096;

  bool is_remote_ = false;
  double mean_ns_ = 0;
  std::uint32_t since_sample_ = 0;  // blocks since the last sample
  std::uint32_t wait_ = 1;          // since_sample_ from which the next sample is due
  std::uint32_t choices_ = 0;       // blocks that were written past the caches since the last one that was not
};

}  // namespace headway::local
