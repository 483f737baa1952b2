// SPDX-License-Identifier: BSD-3-Clause
/// The owners of the indices of an index space that is distributed over all PEs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>

namespace headway {

/// Contiguous blocks. The first n % pes PEs own one index more than the others.
class Block {
 public:
  /// `n` indices over `pes` PEs (at least 1).
  Block(std::size_t n, std::size_t pes) : small_(n / pes), larger_(n % pes), split_(larger_ * (small_ + 1)) {}

  PeId owner(std::size_t global) const {
    return global < split_ ? global / (small_ + 1) : larger_ + (global - split_) / std::max<std::size_t>(small_, 1);
  }
  /// The index within its owner's block.
  std::size_t local(std::size_t global) const { return global - first(owner(global)); }
  std::size_t global(PeId pe, std::size_t local) const { return first(pe) + local; }
  /// The number of indices that `pe` owns, and the first of them.
  std::size_t count(PeId pe) const { return small_ + (pe < larger_ ? 1 : 0); }
  std::size_t first(PeId pe) const { return pe * small_ + std::min<std::size_t>(pe, larger_); }

 private:
  std::size_t small_, larger_, split_;
};

/// Round robin: index i belongs to PE i % pes.
class Cyclic {
 public:
  Cyclic(std::size_t n, std::size_t pes) : n_(n), pes_(pes) {}

  PeId owner(std::size_t global) const { return global % pes_; }
  std::size_t local(std::size_t global) const { return global / pes_; }
  std::size_t global(PeId pe, std::size_t local) const { return local * pes_ + pe; }
  std::size_t count(PeId pe) const { return n_ / pes_ + (pe < n_ % pes_ ? 1 : 0); }

 private:
  std::size_t n_, pes_;
};

/// Block-cyclic: blocks of `block` indices (at least 1), assigned round robin.
class BlockCyclic {
 public:
  BlockCyclic(std::size_t n, std::size_t pes, std::size_t block)
      : n_(n), pes_(pes), block_(block), in_block_(block - 1), block_bits_(unsigned(std::bit_width(block)) - 1) {
    pe_bits_ = unsigned(std::bit_width(pes)) - 1;
    const bool one_each = n / pes < block || (n / pes == block && n % pes == 0);
    if (one_each)
      form_ = std::has_single_bit(block) ? Form::one_block_by_shifts : Form::one_block;
    else if (std::has_single_bit(pes) && std::has_single_bit(block))
      form_ = Form::by_shifts;
  }

  struct Place {
    PeId owner;
    std::size_t local;  // the index in the owner's blocks, one after the other
  };
  Place place(std::size_t global) const {
    if (form_ == Form::one_block_by_shifts) [[likely]]
      return {global >> block_bits_, global & in_block_};
    return other_place(global);
  }
  PeId owner(std::size_t global) const { return place(global).owner; }
  std::size_t local(std::size_t global) const { return place(global).local; }
  std::size_t global(PeId pe, std::size_t local) const {
    return (local / block_ * pes_ + pe) * block_ + local % block_;
  }
  /// The number of indices that `pe` owns.
  std::size_t count(PeId pe) const {
    const std::size_t round = block_ * pes_, rest = n_ % round, begin = pe * block_;
    return n_ / round * block_ + std::min(rest > begin ? rest - begin : 0, block_);
  }
  std::size_t block() const { return block_; }

 private:
  /// The arithmetic of place(). Most arrays have one block for each PE; a block size that is a power of two needs no
  /// division.
  enum class Form : std::uint8_t { one_block_by_shifts, one_block, by_shifts, by_division };

  Place other_place(std::size_t global) const {
    if (form_ == Form::by_shifts) {
      return {(global >> block_bits_) & (pes_ - 1), (global >> pe_bits_ & ~in_block_) | (global & in_block_)};
    }
    const std::size_t block = global / block_, in_block = global - block * block_;
    if (form_ == Form::one_block) return {block, in_block};
    const std::size_t row = block / pes_;
    return {block - row * pes_, row * block_ + in_block};
  }

  std::size_t n_, pes_, block_, in_block_;
  unsigned block_bits_, pe_bits_;
  Form form_ = Form::by_division;
};

}  // namespace headway
