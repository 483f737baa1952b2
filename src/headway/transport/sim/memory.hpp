// SPDX-License-Identifier: BSD-3-Clause
/// The frame memory of one simulated PE. Each frame lies in its own block between guards. Every call that the contract
/// of Endpoint forbids is detected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::sim {

/// A call that the contract of Endpoint forbids: a bug of the library.
struct ContractViolation : std::logic_error {
  using std::logic_error::logic_error;
};

///     | Block | guard | frame ... | guard |
class Memory {
 public:
  enum class State : std::uint8_t { free, claimed, posted, lent, returned };
  static constexpr const char* names[] = {"free", "claimed", "posted", "lent", "returned"};

  struct Block {
    std::size_t pe = 0;
    std::size_t frame_bytes = 0;
    std::size_t block_bytes = 0;  // counted by the budget
    std::uint64_t tag = 0;
    std::uint64_t checksum = 0;  // of payload and tail when posted
    State state = State::free;

    transport::Frame* frame() {
      return reinterpret_cast<transport::Frame*>(reinterpret_cast<std::byte*>(this) + before_frame);
    }
  };

  /// Blocks take at most `bytes_max` together.
  Memory(std::size_t pe, std::size_t bytes_max) : pe_(pe), bytes_max_(bytes_max) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  static std::size_t block_bytes(std::size_t frame_bytes);

  /// nullptr if the memory is spent.
  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag);
  void drop(transport::Frame* frame);
  /// Checks that the frame may be posted, and records a checksum of it.
  Block& post(transport::Frame* frame, const std::byte* tail_end);
  /// The receiver polls the frame.
  static void lend(Block& block, const transport::FrameHeader& header, const std::byte* tail_end);
  /// The receiver releases the frame.
  static void give_back(Block& block, const transport::FrameHeader& header, const std::byte* tail_end);
  /// The owner reclaims the frame.
  void reclaim(Block& block);

  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_peak() const { return bytes_peak_; }
  /// Text about the frames that are neither free nor returned; empty if there are none.
  std::string missing() const;

 private:
  static constexpr std::size_t guard_bytes = 64;
  static constexpr std::size_t before_frame = 64 + guard_bytes;
  static_assert(sizeof(Block) <= 64);

  static Block& block_of(transport::Frame* frame);
  static void set_guards(Block& block);
  static void require(const Block& block, State state, const char* call);
  static void require_guards(Block& block, const char* call);
  static void require_unchanged(Block& block, const transport::FrameHeader& header, const std::byte* tail_end,
                                const char* call);
  void make_free(Block& block);

  std::size_t pe_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0, bytes_peak_ = 0;
  std::vector<Block*> all_;
  std::array<std::vector<Block*>, 64> free_;  // by the logarithm of their size
};

}  // namespace headway::sim
