// SPDX-License-Identifier: BSD-3-Clause
/// Detects readers that share no last-level cache with this PE's core, from the cost of writing lines they have read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>

namespace headway::local {

/// One writer's estimate for one reader. A frame that has been read lies in its reader's cache. If both cores share a
/// last-level cache, the writer gets its lines back in a few ns each, many at a time. If not, a writer of small pieces
/// waits some 27 ns for each line in turn; to fill a staging buffer and to write it past the caches is several times
/// faster (docs/decisions/0039). The system does not tell which case holds, and a virtual machine may change it during
/// a run. So the writer times some blocks that it writes through the caches.
class RemoteReader {
 public:
  /// Lines of a block that a sample writes, behind its header: enough for the clock.
  static constexpr std::size_t sampled_lines = 24, line_bytes = 64;
  static constexpr std::size_t sampled_bytes = sampled_lines * line_bytes;

  /// Counts a block that this reader has read and that is about to be written again. True if the next sample is due.
  /// A block that was written past the caches gives no sample: its lines are slow to get back from any reader.
  bool is_sample_due() { return ++since_sample_ >= wait_; }

  /// An interruption makes a sample slow; nothing makes one fast. A sample that contradicts the estimate makes the next
  /// one due soon.
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

  /// True if the next block is to be written past the caches. Now and then a block for a remote reader is not, so that
  /// it can be sampled. An estimate without new samples for long is forgotten.
  bool choose_past_caches() {
    if (!is_remote_) return false;
    if (since_sample_ > remembered_blocks) *this = RemoteReader();
    if (!is_remote_ || ++choices_ < choices_per_plain) return is_remote_;
    choices_ = 0;
    return false;
  }

  /// Times writes to the block at `block`, and destroys its content.
  static double measure_ns_per_line(std::byte* block) {
    const std::int64_t begin = monotonic_ns();
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(block + line_bytes);
    for (std::size_t word = 0; word < sampled_bytes / sizeof *words; ++word) words[word] = 0;
    std::atomic<int> all_written{0};
    all_written.exchange(1);  // waits until the stores before it have left the store buffer
    return double(monotonic_ns() - begin) / double(sampled_lines);
  }

 private:
  // Mean cost of a line. EPYC, family 25: 3 to 11 ns with a shared cache, 25 to 40 without one, and 9 to 40 for blocks
  // that have left the reader's cache. Xeon, family 6, model 207, 16 cores with one shared cache: 6 to 9 ns, and 9
  // to 20 for new blocks.
  static constexpr double remote_ns = 18, shared_cache_ns = 12, sample_ns_max = 24;
  static constexpr std::uint32_t blocks_per_sample = 64;   // a sample takes 0.7 us of a remote reader's block, else 0.1
  static constexpr std::uint32_t choices_per_plain = 128;  // a plain block costs as much as a few others
  static constexpr std::uint32_t remembered_blocks = 4096;

  bool is_remote_ = false;
  double mean_ns_ = 0;
  std::uint32_t since_sample_ = 0, wait_ = 1, choices_ = 0;
};

}  // namespace headway::local
