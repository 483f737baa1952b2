// SPDX-License-Identifier: BSD-3-Clause
/// Sample sort on plain MPI, as it is usually written: samples give splitters, each rank groups its keys by their
/// destination, one MPI_Alltoallv exchanges them, and every rank sorts the keys that it received. Also
/// std::sort on one rank.
#include <algorithm>
#include <numeric>
#include <sorting/local_sort.hpp>
#include <sorting/splitters.hpp>
#include <vector>

#include "peer.hpp"

namespace headway::peers {
namespace {

using sorting::Key;

std::vector<Key> keys_from(const sorting::Input& input, std::uint64_t first, std::uint64_t end) {
  std::vector<Key> keys(end - first);
  for (std::uint64_t i = first; i != end; ++i) keys[i - first] = input.key(i);
  return keys;
}

/// Sorts over all ranks.
class Sorter {
 public:
  Sorter(const sorting::Input& input, std::size_t me, std::size_t ranks)
      : input_(input),
        me_(me),
        blocks_(input.keys, ranks),
        given_(keys_from(input, blocks_.first(me), blocks_.first(me + 1))),
        grouped_(given_.size()),
        received_(blocks_.block() + blocks_.block() / 4 + 1024),
        send_counts_(ranks),
        receive_counts_(ranks),
        send_places_(ranks),
        receive_places_(ranks) {}

  void sort(std::size_t oversampling, const std::string& how) {
    group(agree_on_splitters(oversampling));
    MPI_Alltoall(send_counts_.data(), 1, MPI_INT, receive_counts_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(receive_counts_.begin(), receive_counts_.end(), receive_places_.begin(), 0);
    count_ = std::size_t(receive_places_.back()) + std::size_t(receive_counts_.back());
    if (count_ > received_.size()) received_.resize(count_);
    MPI_Alltoallv(grouped_.data(), send_counts_.data(), send_places_.data(), MPI_UINT32_T, received_.data(),
                  receive_counts_.data(), receive_places_.data(), MPI_UINT32_T, MPI_COMM_WORLD);
    sorting::sort(keys(), how);
  }

  std::span<Key> keys() { return std::span(received_).first(count_); }
  std::uint64_t sent() const { return given_.size() - std::size_t(send_counts_[me_]); }

 private:
  std::vector<Key> agree_on_splitters(std::size_t oversampling) const {
    const std::size_t ranks = send_counts_.size();
    const std::vector<Key> mine = sorting::draw_samples(input_, blocks_.first(me_), given_.size(), oversampling);
    const int count = int(mine.size());
    std::vector<int> counts(ranks), places(ranks);
    MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
    std::vector<Key> all(std::size_t(places.back() + counts.back()));
    MPI_Allgatherv(mine.data(), count, MPI_UINT32_T, all.data(), counts.data(), places.data(), MPI_UINT32_T,
                   MPI_COMM_WORLD);
    return sorting::choose_splitters(std::move(all), ranks);
  }
  /// Counts, then moves, without a branch that depends on keys.
  void group(const std::vector<Key>& splitters) {
    std::ranges::fill(send_counts_, 0);
    for (const Key key : given_) ++send_counts_[sorting::destination(splitters, key)];
    std::exclusive_scan(send_counts_.begin(), send_counts_.end(), send_places_.begin(), 0);
    std::vector<int> places = send_places_;
    for (const Key key : given_) grouped_[std::size_t(places[sorting::destination(splitters, key)]++)] = key;
  }

  sorting::Input input_;
  std::size_t me_;
  sorting::Blocks blocks_;
  std::vector<Key> given_, grouped_, received_;  // the last has memory for more than `count_` keys
  std::size_t count_ = 0;
  std::vector<int> send_counts_, receive_counts_, send_places_, receive_places_;
};

struct Checked {
  std::uint64_t errors = 0, checksum = 0;
};

/// Collective. As sorting::verify(): the order, the digest and the checksum.
Checked check(const sorting::Input& input, std::size_t me, std::size_t ranks, std::span<const Key> keys) {
  const sorting::Blocks blocks(input.keys, ranks);
  struct Ends {
    std::uint64_t count, first, last;
  };
  const Ends mine{keys.size(), keys.empty() ? 0 : keys.front(), keys.empty() ? 0 : keys.back()};
  std::vector<Ends> ends(ranks);
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, ends.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  std::uint64_t place = 0, before = 0, errors = 0, checksum = 0;
  for (std::size_t rank = 0; rank != me; ++rank) {
    place += ends[rank].count;
    if (ends[rank].count != 0) before = ends[rank].last;
  }
  sorting::Digest given, found;
  for (const Key key : keys) {
    errors += key < before;
    before = key;
    checksum += sorting::placed(place++, key);
    found.add(key);
  }
  for (std::uint64_t i = blocks.first(me); i != blocks.first(me + 1); ++i) given.add(input.key(i));
  const auto differ = [](std::uint64_t a, std::uint64_t b) { return total(a) != total(b) ? 1u : 0u; };
  errors = total(errors) + differ(given.count, found.count) + differ(given.sum, found.sum) +
           differ(given.mixed, found.mixed);
  return {errors, total(checksum)};
}

}  // namespace

const std::vector<std::string>& sample_modes() {
  static const std::vector<std::string> modes = {"mpi-samplesort", "mpi-samplesort-radix", "std-sort"};
  return modes;
}

bench::Json run_sample(const Arguments& arguments) {
  int me = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const sorting::Input& input = arguments.sorting;
  std::uint64_t sent = 0;
  double seconds = 0;
  Checked checked;
  if (arguments.mode == "std-sort") {
    std::vector<Key> keys;
    if (me == 0) keys = keys_from(input, 0, input.keys);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    std::ranges::sort(keys);
    seconds = slowest(me == 0 ? MPI_Wtime() - begin : 0);
    checked = check(input, std::size_t(me), std::size_t(ranks), keys);
  } else {
    Sorter sorter(input, std::size_t(me), std::size_t(ranks));
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    sorter.sort(1024, arguments.mode == "mpi-samplesort" ? "std" : "radix");
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = slowest(MPI_Wtime() - begin);
    sent = total(sorter.sent());
    checked = check(input, std::size_t(me), std::size_t(ranks), sorter.keys());
  }
  bench::Json record = make_peer_record(arguments, sizeof(Key), sent, seconds, checked.errors);
  record["keys"] = input.keys;
  record["keys_per_second"] = seconds > 0 ? double(input.keys) / seconds : 0;
  record["checksum"] = checked.checksum;
  record["errors"] = checked.errors;
  return record;
}

}  // namespace headway::peers
