// SPDX-License-Identifier: BSD-3-Clause
/// A message per item on plain MPI: MPI_Isend from a window of slots, and a window of posted receives from anybody.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace headway::peers {

/// `Handle` is called for each item that arrives, as handle(const std::byte*) or, where it wants to know the sender, as
/// handle(const std::byte*, std::size_t rank). Objects that exist at once in one communicator need different `tag`s.
template <class Handle>
class DirectMessages {
 public:
  DirectMessages(MPI_Comm comm, std::size_t item_bytes, Handle handle, int tag = 0)
      : comm_(comm),
        tag_(tag),
        item_bytes_(item_bytes),
        stride_(std::max<std::size_t>(8, (item_bytes + 7) / 8 * 8)),
        window_(int(std::clamp<std::size_t>(window_bytes_max / stride_, 4, 256))),
        handle_(handle) {
    MPI_Comm_size(comm, &ranks_);
    MPI_Comm_rank(comm, &me_);
    const auto window = std::size_t(window_);
    send_memory_.resize(window * stride_);
    receive_memory_.resize(window * stride_);
    sends_.assign(window, MPI_REQUEST_NULL);
    receives_.resize(window);
    sent_.assign(std::size_t(ranks_), 0);
    for (int slot = 0; slot < window_; ++slot) {
      if constexpr (persistent)
        MPI_Recv_init(receive_memory_.data() + std::size_t(slot) * stride_, int(item_bytes), MPI_BYTE, MPI_ANY_SOURCE,
                      tag, comm, &receives_[std::size_t(slot)]);
      else
        start(slot);
    }
    if (persistent) MPI_Startall(window_, receives_.data());
  }

  ~DirectMessages() {
    for (MPI_Request& receive : receives_) {
      MPI_Cancel(&receive);
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
      if (persistent) MPI_Request_free(&receive);
    }
  }
  DirectMessages(const DirectMessages&) = delete;
  DirectMessages& operator=(const DirectMessages&) = delete;

  /// Memory for the next item; then send() it.
  std::byte* next() { return send_memory_.data() + std::size_t(slot_) * stride_; }

  /// Sends the item in next() to another rank. Handles arrivals while the window is full.
  void send(std::size_t rank) {
    MPI_Isend(next(), int(item_bytes_), MPI_BYTE, int(rank), tag_, comm_, &sends_[std::size_t(slot_)]);
    ++sent_[rank];
    slot_ = slot_ + 1 == window_ ? 0 : slot_ + 1;
    if (slot_ % poll_every == 0) poll();
    for (int free = 0; sends_[std::size_t(slot_)] != MPI_REQUEST_NULL;) {
      MPI_Test(&sends_[std::size_t(slot_)], &free, MPI_STATUS_IGNORE);
      if (!free) poll();
    }
  }

  /// Handles the items that have arrived. Posted receives match in the order of posting, so the oldest completes first.
  void poll() {
    for (int arrived = 1; arrived;) {
      MPI_Request& receive = receives_[std::size_t(receive_slot_)];
      const std::byte* const item = receive_memory_.data() + std::size_t(receive_slot_) * stride_;
      if constexpr (std::is_invocable_v<Handle&, const std::byte*>) {
        MPI_Test(&receive, &arrived, MPI_STATUS_IGNORE);
        if (!arrived) break;
        handle_(item);
      } else {
        MPI_Status status;
        MPI_Test(&receive, &arrived, &status);
        if (!arrived) break;
        handle_(item, std::size_t(status.MPI_SOURCE));
      }
      ++received_;
      start(receive_slot_);
      receive_slot_ = receive_slot_ + 1 == window_ ? 0 : receive_slot_ + 1;
    }
  }

  /// Collective: returns when every item sent by anybody has been handled.
  void finish() {
    for (MPI_Request& send : sends_) {
      for (int free = send == MPI_REQUEST_NULL; !free;) {  // SMPI finds no request not complete
        MPI_Test(&send, &free, MPI_STATUS_IGNORE);
        poll();
      }
    }
    std::vector<std::uint64_t> coming(std::size_t(ranks_), 0);
    MPI_Request counts = MPI_REQUEST_NULL;
    MPI_Ialltoall(sent_.data(), 1, MPI_UINT64_T, coming.data(), 1, MPI_UINT64_T, comm_, &counts);
    for (int done = 0; !done;) {
      MPI_Test(&counts, &done, MPI_STATUS_IGNORE);
      poll();
    }
    std::uint64_t expected = 0;
    for (const std::uint64_t count : coming) expected += count;
    while (received_ < expected) poll();
    std::fill(sent_.begin(), sent_.end(), 0);
    received_ -= expected;
  }

 private:
#ifdef HEADWAY_SMPI  // which miscounts persistent requests that are cancelled
  static constexpr bool persistent = false;
#else
  static constexpr bool persistent = true;
#endif

  void start(int slot) {
    MPI_Request& receive = receives_[std::size_t(slot)];
    if constexpr (persistent)
      MPI_Start(&receive);
    else
      MPI_Irecv(receive_memory_.data() + std::size_t(slot) * stride_, int(item_bytes_), MPI_BYTE, MPI_ANY_SOURCE, tag_,
                comm_, &receive);
  }

  static constexpr std::size_t window_bytes_max = std::size_t(16) << 20;
  static constexpr int poll_every = 16;

  MPI_Comm comm_;
  int tag_;
  std::size_t item_bytes_, stride_;
  int window_;  // at most so many sends are under way, and so many receives posted
  Handle handle_;
  int ranks_ = 1, me_ = 0;
  int slot_ = 0, receive_slot_ = 0;
  std::vector<std::byte> send_memory_, receive_memory_;
  std::vector<MPI_Request> sends_, receives_;
  std::vector<std::uint64_t> sent_;
  std::uint64_t received_ = 0;
};

}  // namespace headway::peers
