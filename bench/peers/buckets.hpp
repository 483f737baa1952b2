// SPDX-License-Identifier: BSD-3-Clause
/// The usual hand optimisation on plain MPI: a bucket of items per rank; when one is full, all ranks exchange theirs by
/// MPI_Alltoall (how many) and MPI_Alltoallv (the items).
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace headway::peers {

/// Buckets of items of `item_words` words each. The filling loop writes in units of `Word`.
template <class Word>
class Buckets {
 public:
  /// Buckets of `bucket_bytes` each; at least one item.
  Buckets(MPI_Comm comm, std::size_t item_words, std::size_t bucket_bytes) : comm_(comm), item_words_(item_words) {
    MPI_Comm_size(comm, &ranks_);
    MPI_Comm_rank(comm, &me_);
    capacity_ = std::max<std::size_t>(1, bucket_bytes / (item_words * sizeof(Word)));
    const auto n = std::size_t(ranks_);
    stride_ = (capacity_ * item_words * sizeof(Word) + 63) / 64 * 64 / sizeof(Word);
    storage_.reset(static_cast<Word*>(::operator new[](2 * n * stride_ * sizeof(Word), std::align_val_t(64))));
    std::fill_n(storage_.get(), 2 * n * stride_, Word{});
    announced_.assign(n, 0);
    arriving_.assign(n, 0);
    send_bytes_.assign(n, 0);
    receive_bytes_.assign(n, 0);
    for (std::size_t rank = 0; rank < n; ++rank) {
      offsets_.push_back(int(rank * stride_ * sizeof(Word)));
      cursors_.push_back(bucket(rank));
    }
  }

  std::size_t capacity() const { return capacity_; }
  /// Where the next item of each bucket goes; the filling loop writes there and moves them.
  Word** cursors() { return cursors_.data(); }
  /// How many items fit before any bucket could be full, wherever they go.
  std::size_t room() const {
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < cursors_.size(); ++rank) most = std::max(most, count(rank));
    return capacity_ - most;
  }

  /// Collective. Exchanges all buckets and empties them; calls apply(items, count, rank) for the items of each rank,
  /// its own bucket included, which MPI does not see. Returns whether every rank said `done`.
  template <class Apply>
  bool exchange(bool done, Apply&& apply) {
    const auto n = std::size_t(ranks_), me = std::size_t(me_);
    for (std::size_t rank = 0; rank < n; ++rank) announced_[rank] = std::uint32_t(count(rank)) << 1 | unsigned(done);
    MPI_Alltoall(announced_.data(), 1, MPI_UINT32_T, arriving_.data(), 1, MPI_UINT32_T, comm_);
    bool all_done = true;
    for (std::size_t rank = 0; rank < n; ++rank) {
      all_done = all_done && (arriving_[rank] & 1) != 0;
      send_bytes_[rank] = int((announced_[rank] >> 1) * item_words_ * sizeof(Word));
      receive_bytes_[rank] = int((arriving_[rank] >> 1) * item_words_ * sizeof(Word));
    }
    send_bytes_[me] = receive_bytes_[me] = 0;
    Word* const received = bucket(n);
    MPI_Alltoallv(storage_.get(), send_bytes_.data(), offsets_.data(), MPI_BYTE, received, receive_bytes_.data(),
                  offsets_.data(), MPI_BYTE, comm_);
    apply(bucket(me), count(me), me);
    for (std::size_t rank = 0; rank < n; ++rank) {
      if (rank != me) apply(received + rank * stride_, std::size_t(arriving_[rank] >> 1), rank);
      cursors_[rank] = bucket(rank);
    }
    return all_done;
  }

 private:
  struct Free {
    void operator()(Word* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  Word* bucket(std::size_t rank) { return storage_.get() + rank * stride_; }
  std::size_t count(std::size_t rank) const {
    return std::size_t(cursors_[rank] - (storage_.get() + rank * stride_)) / item_words_;
  }

  MPI_Comm comm_;
  std::size_t item_words_;
  int ranks_ = 1, me_ = 0;
  std::size_t capacity_ = 0;               // items of a bucket
  std::size_t stride_ = 0;                 // words from one bucket to the next
  std::unique_ptr<Word[], Free> storage_;  // a bucket to fill per rank, then one to receive per rank
  std::vector<Word*> cursors_;
  std::vector<std::uint32_t> announced_, arriving_;  // items << 1 | done
  std::vector<int> send_bytes_, receive_bytes_, offsets_;
};

}  // namespace headway::peers
