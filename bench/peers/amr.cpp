// SPDX-License-Identifier: BSD-3-Clause
/// Shallow water on an adaptive mesh, with exchanges written by hand: the same mesh and flow as those of headway-amr.
#include <algorithm>
#include <amr/report.hpp>
#include <amr/simulation.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "peer.hpp"

namespace headway::peers {
namespace {

enum Tag : int { swap_tag = 1, states_tag, targets_tag };

class Ranks {
 public:
  Ranks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &id_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  std::size_t id() const { return std::size_t(id_); }
  std::size_t size() const { return std::size_t(size_); }
  static double now() { return MPI_Wtime(); }
  static double minimum(double value) {
    double least = 0;
    MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return least;
  }
  static std::uint64_t sum(std::uint64_t count) { return total(count); }
  template <class T>
  std::vector<T> all_gather(const T& value) const {
    std::vector<T> all(size());
    MPI_Allgather(&value, sizeof(T), MPI_BYTE, all.data(), sizeof(T), MPI_BYTE, MPI_COMM_WORLD);
    return all;
  }
  template <class T>
  amr::Lists<T> swap(const amr::Lists<T>& lists) const {
    std::vector<int> counts(size(), 0), expected(size(), 0);
    for (const auto& [rank, list] : lists) counts[rank] = int(list.size());
    MPI_Alltoall(counts.data(), 1, MPI_INT, expected.data(), 1, MPI_INT, MPI_COMM_WORLD);
    amr::Lists<T> came;
    std::vector<MPI_Request> requests;
    for (std::size_t rank = 0; rank != size(); ++rank) {
      if (expected[rank] == 0) continue;
      came[rank].resize(std::size_t(expected[rank]));
      receive(std::span(came[rank]), rank, swap_tag, requests);
    }
    for (const auto& [rank, list] : lists) send(std::span(list), rank, swap_tag, requests);
    wait(requests);
    return came;
  }

  class Ghosts {
   public:
    Ghosts(Ranks& ranks, std::uint64_t owned, std::span<const std::uint64_t> ids,
           const std::vector<std::uint64_t>& first_ids, std::vector<amr::State>& states,
           std::vector<std::uint8_t>& targets)
        : states_(states), targets_(targets) {
      amr::Lists<std::uint64_t> wanted;
      for (std::size_t i = 0; i != ids.size(); ++i) {
        const auto next = std::ranges::upper_bound(first_ids, ids[i]);
        const auto rank = std::size_t(next - first_ids.begin()) - 1;
        // Ids are sorted, so those of one rank are neighbours in the arrays, and arrive in place.
        if (receives_.empty() || receives_.back().rank != rank) receives_.push_back({rank, owned + i, 0});
        ++receives_.back().count;
        wanted[rank].push_back(ids[i] - next[-1]);
      }
      sends_ = ranks.swap(wanted);
      std::size_t elements = 0;
      for (const auto& [rank, indices] : sends_) elements += indices.size();
      packed_states_.resize(elements);
      packed_targets_.resize(elements);
    }
    void begin() { start(states_, packed_states_, states_tag); }
    void end() { wait(requests_); }
    void exchange_targets() {
      start(targets_, packed_targets_, targets_tag);
      wait(requests_);
    }

   private:
    struct Receive {
      std::size_t rank, first, count;
    };
    template <class T>
    void start(std::vector<T>& array, std::vector<T>& packed, Tag tag) {
      for (const Receive& one : receives_)
        receive(std::span(array).subspan(one.first, one.count), one.rank, tag, requests_);
      std::size_t at = 0;
      for (const auto& [rank, indices] : sends_) {
        const std::span<T> message = std::span(packed).subspan(at, indices.size());
        for (std::size_t i = 0; i != indices.size(); ++i) message[i] = array[indices[i]];
        send(std::span<const T>(message), rank, tag, requests_);
        at += indices.size();
      }
    }

    std::vector<amr::State>& states_;
    std::vector<std::uint8_t>& targets_;
    std::vector<Receive> receives_;
    amr::Lists<std::uint64_t> sends_;
    std::vector<amr::State> packed_states_;
    std::vector<std::uint8_t> packed_targets_;
    std::vector<MPI_Request> requests_;
  };

 private:
  template <class T>
  static void receive(std::span<T> into, std::size_t rank, Tag tag, std::vector<MPI_Request>& requests) {
    MPI_Irecv(into.data(), int(into.size_bytes()), MPI_BYTE, int(rank), tag, MPI_COMM_WORLD, &requests.emplace_back());
  }
  template <class T>
  static void send(std::span<const T> list, std::size_t rank, Tag tag, std::vector<MPI_Request>& requests) {
    MPI_Isend(list.data(), int(list.size_bytes()), MPI_BYTE, int(rank), tag, MPI_COMM_WORLD, &requests.emplace_back());
  }
  static void wait(std::vector<MPI_Request>& requests) {
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
  }

  int id_ = 0, size_ = 1;
};

}  // namespace

bench::Json run_amr(const Arguments& arguments) {
  Ranks ranks;
  const amr::Options& options = arguments.amr;
  const amr::Outcome outcome = amr::simulate(ranks, options);
  const std::vector<amr::Times> times = ranks.all_gather(outcome.times);
  const std::uint64_t pushed = total(outcome.pushed), cell_steps = total(outcome.cell_steps);
  std::uint64_t errors = outcome.errors + !outcome.is_conserved(options.steps);
  if (ranks.id() == 0 && cell_steps <= amr::serial_cell_steps_max) errors += amr::serial_hash(options) != outcome.hash;
  bench::Json record = make_peer_record(arguments, sizeof(amr::State), pushed, slowest(outcome.seconds), total(errors));
  amr::add_outcome(record, options, outcome, times, cell_steps);
  return record;
}

}  // namespace headway::peers
