/// A PE's queue of arrived frames: a bounded ring in shared memory, many senders, one receiver. A full ring refuses.
#pragma once

#include <atomic>
#include <cstdint>
#include <headway/transport/local/segment.hpp>

namespace headway::local {

/// The sender's side. The ticket is taken by compare-and-swap only after the cell is seen free, so a refusal leaves no
/// trace. Between the two a sender may be slow or die; the receiver then waits at that cell, never past it.
class InboxSender {
 public:
  InboxSender(Cell* cells, std::atomic<std::uint64_t>& tail) : cells_(cells), tail_(&tail) {}

  /// Calls fill(cell) on a free cell and publishes it. False if the ring is full.
  template <class Fill>
  [[nodiscard]] bool try_push(Fill fill) {
    std::uint64_t ticket = tail_->load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket % inbox_cells];
      const std::uint64_t free = 2 * (ticket / inbox_cells);
      // acquire: what the receiver read from the cell was read before we overwrite it
      const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
      if (sequence == free) {
        if (tail_->compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          fill(cell);
          cell.sequence.store(free + 1, std::memory_order_release);
          return true;
        }
      } else if (std::int64_t(sequence - free) < 0) {
        return false;  // the receiver has not freed it in the last lap
      } else {
        ticket = tail_->load(std::memory_order_relaxed);
      }
    }
  }

 private:
  Cell* cells_;
  std::atomic<std::uint64_t>* tail_;
};

/// The receiver's side.
class InboxReceiver {
 public:
  explicit InboxReceiver(Cell* cells) : cells_(cells) {}

  /// The oldest published cell, or nullptr. It stays until pop().
  Cell* front() {
    Cell& cell = cells_[head_ % inbox_cells];
    return cell.sequence.load(std::memory_order_acquire) == 2 * (head_ / inbox_cells) + 1 ? &cell : nullptr;
  }

  void pop() {
    cells_[head_ % inbox_cells].sequence.store(2 * (head_ / inbox_cells) + 2, std::memory_order_release);
    ++head_;
  }

 private:
  Cell* cells_;
  std::uint64_t head_ = 0;
};

}  // namespace headway::local
