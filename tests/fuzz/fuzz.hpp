// SPDX-License-Identifier: BSD-3-Clause
/// A fuzzer's frame: inputs made from valid ones by seed, decoded in this process, each under the same promises:
/// nothing is read or written beyond its memory, nothing is thrown but a refusal, and no more is allocated than the
/// input's bytes justify. Overruns are found where sanitizers watch, and without them where an input ends at a page
/// that is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::fuzz {

using Bytes = std::vector<std::byte>;

/// A promise that was not kept, as a target finds it by itself.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

/// The decoder under test. All is called from one thread.
class Target {
 public:
  virtual ~Target() = default;

  /// Inputs to start from, made by the code that encodes. Inputs that belong together are neighbours, in order.
  virtual std::vector<Bytes> valid_inputs() = 0;
  /// Every so many inputs: forgets all that inputs have left behind. What happens in a round depends on it alone.
  virtual void begin_round(std::uint64_t round) = 0;
  /// Makes another input. `other` is one to take pieces from.
  virtual void mutate(Bytes& input, const Bytes& other, Random& random) = 0;
  /// Decodes the input. Returns why it was refused, or nothing. Whatever it throws is a hole.
  virtual const std::string& decode(std::span<const std::byte> input) = 0;
  /// How many bytes decoding so many may allocate in all.
  virtual std::size_t allocated_bytes_max(std::size_t input_bytes) const { return (64u << 10) + 64 * input_bytes; }
  /// Whether the state is such that a new round has to begin.
  virtual bool exhausted() const { return false; }
};

/// Runs a fuzzer as its arguments say: see the text of --help. Returns the exit status; does not return from a hole.
int run(int argc, char** argv, const char* name, Target& target);

/// The bytes that operator new has given since the process began.
std::uint64_t allocated_bytes();

/// Values at which decoders go wrong: 0, 1, powers of two and their neighbours, values near `size`.
std::uint64_t boundary_value(Random& random, std::uint64_t size);

/// Changes bytes from `first` on, of which nothing is known: flips, numbers at their bounds, cuts, repeats, splices.
void change_bytes(Bytes& input, std::size_t first, const Bytes& other, Random& random);

/// Memory in which nothing but the bytes that it holds may be touched.
class FencedMemory {
 public:
  explicit FencedMemory(std::size_t bytes_max);
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;
  ~FencedMemory();

  /// Copies `bytes`, as near to the fence behind them as the address allows, which is `offset` beyond a multiple of
  /// `alignment`. `readable_before` bytes in front may be read.
  std::byte* hold(std::span<const std::byte> bytes, std::size_t alignment, std::size_t offset,
                  std::size_t readable_before);
  void let_go();

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;  // up to the fence
  std::byte* held_ = nullptr;
};

}  // namespace headway::fuzz
