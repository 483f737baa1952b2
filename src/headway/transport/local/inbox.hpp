// SPDX-License-Identifier: BSD-3-Clause
/// A PE's queue of arrived frames: a bounded ring in shared memory, many senders, one receiver. A full ring refuses.
///
/// The classes are templates over the cell, so that tests explore this code with two cells of their own atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/transport/local/segment.hpp>

namespace headway::local {

/// The sender's side. A sender takes a ticket by compare-and-swap, only after it has seen the cell free, so a refusal
/// changes nothing. If it is slow or dies before it publishes the cell, the receiver waits at that cell, never past it.
///
/// `Cell` has an atomic `sequence` of 64 bits: 2 * generation while free, 2 * generation + 1 once published.
/// `cell_count` is a power of two.
template <class Cell, std::size_t cell_count>
class BasicInboxSender {
 public:
  using Counter = decltype(Cell::sequence);

  BasicInboxSender(Cell* cells, Counter& tail) : cells_(cells), tail_(&tail) {}

  /// Calls fill(cell) on a free cell and publishes it. False if the ring is full.
  template <class Fill>
  [[nodiscard]] bool try_push(Fill fill) {
    const Reservation reservation = try_reserve();
    if (reservation.cell == nullptr) return false;
    fill(*reservation.cell);
    publish(reservation);
    return true;
  }

  /// A cell that belongs to this sender until publish().
  struct Reservation {
    Cell* cell = nullptr;
    std::uint64_t ticket = 0;

    std::size_t number() const { return ticket % cell_count; }
  };

  /// Takes the ticket of a free cell. `cell` is nullptr if the ring is full.
  [[nodiscard]] Reservation try_reserve() {
    std::uint64_t ticket = tail_->load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket % cell_count];
      const std::uint64_t free = 2 * (ticket / cell_count);
      // acquire: the receiver's reads of the cell come before this sender's writes
      const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
      if (sequence == free) {
        if (tail_->compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) return {&cell, ticket};
      } else if (std::int64_t(sequence - free) < 0) {
        return {};  // the receiver has not freed the cell since its last generation
      } else {
        ticket = tail_->load(std::memory_order_relaxed);
      }
    }
  }

  static void publish(const Reservation& reservation) {
    reservation.cell->sequence.store(2 * (reservation.ticket / cell_count) + 1, std::memory_order_release);
  }

 private:
  Cell* cells_;
  Counter* tail_;
};

/// The receiver's side.
template <class Cell, std::size_t cell_count>
class BasicInboxReceiver {
 public:
  /// `head` is the ticket of the next frame.
  explicit BasicInboxReceiver(Cell* cells, std::uint64_t head = 0) : cells_(cells), head_(head) {}

  /// The oldest published cell, or nullptr. It stays until pop().
  Cell* front() {
    Cell& cell = cells_[head_ % cell_count];
    return cell.sequence.load(std::memory_order_acquire) == 2 * (head_ / cell_count) + 1 ? &cell : nullptr;
  }

  /// The number of that cell in the ring.
  std::size_t front_number() const { return head_ % cell_count; }

  void pop() {
    cells_[head_ % cell_count].sequence.store(2 * (head_ / cell_count) + 2, std::memory_order_release);
    ++head_;
  }

 private:
  Cell* cells_;
  std::uint64_t head_;
};

using InboxSender = BasicInboxSender<Cell, inbox_cells>;
using InboxReceiver = BasicInboxReceiver<Cell, inbox_cells>;

}  // namespace headway::local
