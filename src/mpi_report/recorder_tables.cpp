// SPDX-License-Identifier: BSD-3-Clause
/// What handles mean: datatypes, communicators, windows and requests.
#include <algorithm>

#include "recorder.hpp"

namespace headway::mpi_report {
namespace {

HEADWAY_REAL(Type_size);
HEADWAY_REAL(Type_get_envelope);
HEADWAY_REAL(Type_get_true_extent);
HEADWAY_REAL(Comm_group);
HEADWAY_REAL(Comm_test_inter);
HEADWAY_REAL(Comm_remote_group);
HEADWAY_REAL(Group_size);
HEADWAY_REAL(Group_translate_ranks);
HEADWAY_REAL(Group_free);
HEADWAY_REAL(Win_get_group);
HEADWAY_REAL(Topo_test);
HEADWAY_REAL(Cartdim_get);
HEADWAY_REAL(Cart_shift);
HEADWAY_REAL(Graph_neighbors);
HEADWAY_REAL(Graph_neighbors_count);
HEADWAY_REAL(Dist_graph_neighbors);
HEADWAY_REAL(Dist_graph_neighbors_count);
HEADWAY_REAL(Comm_rank);

/// Ranks of the communicator to which this rank sends in a neighbourhood collective.
std::vector<int> find_neighbours(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  real_Topo_test(comm, &topology);
  std::vector<int> targets;
  if (topology == MPI_CART) {
    int dimensions = 0;
    real_Cartdim_get(comm, &dimensions);
    for (int d = 0; d < dimensions; ++d) {
      int below = -1, above = -1;
      real_Cart_shift(comm, d, 1, &below, &above);
      targets.insert(targets.end(), {below, above});
    }
  } else if (topology == MPI_GRAPH) {
    int n = 0, rank = 0;
    real_Comm_rank(comm, &rank);
    real_Graph_neighbors_count(comm, rank, &n);
    targets.resize(std::size_t(n));
    if (n > 0) real_Graph_neighbors(comm, rank, n, targets.data());
  } else if (topology == MPI_DIST_GRAPH) {
    int in = 0, out = 0, weighted = 0;
    real_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    std::vector<int> sources(std::size_t(in) + 1), in_weights(std::size_t(in) + 1), out_weights(std::size_t(out) + 1);
    targets.resize(std::size_t(out) + 1);
    real_Dist_graph_neighbors(comm, in, sources.data(), in_weights.data(), out, targets.data(), out_weights.data());
    targets.resize(std::size_t(out));
  }
  return targets;
}

}  // namespace

const TypeInfo& Recorder::type_of(MPI_Datatype type) {
  const std::uint64_t key = key_of(type) + 1;  // a handle may be 0
  TypeInfo& info = types_[(key ^ key >> 6 ^ key >> 12) % 64];
  if (info.key == key) return info;
  int size = 0, integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  real_Type_size(type, &size);
  real_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  info = {key, std::uint64_t(std::max(size, 0)), named};
  if (combiner != MPI_COMBINER_NAMED) {
    MPI_Aint low = 0, extent = 0;
    real_Type_get_true_extent(type, &low, &extent);
    info.layout = extent == size ? contiguous : with_gaps;
  }
  return info;
}

void Recorder::forget_type(MPI_Datatype type) {
  for (TypeInfo& info : types_)
    if (info.key == key_of(type) + 1) info = {};
}

Ranks& Recorder::new_ranks(std::uint64_t key, MPI_Group group) {
  auto* const ranks = new Ranks;
  ranks->key = key;
  int size = 0;
  real_Group_size(group, &size);
  std::vector<int> own(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) own[std::size_t(i)] = i;
  ranks->world.assign(std::size_t(size), MPI_UNDEFINED);
  MPI_Group world;
  real_Comm_group(MPI_COMM_WORLD, &world);
  if (size > 0) real_Group_translate_ranks(group, size, own.data(), world, ranks->world.data());
  real_Group_free(&world);
  for (int& rank : ranks->world)
    if (rank < 0) rank = -1;  // MPI_UNDEFINED: of another world
  ranks_.push_back(ranks);
  return *ranks;
}

const Ranks& Recorder::ranks_of(MPI_Comm comm) {
  const std::uint64_t key = key_of(comm) * 2;
  if (last_ranks_ != nullptr && last_ranks_->key == key) return *last_ranks_;
  for (Ranks* const known : ranks_)
    if (known->key == key) return *(last_ranks_ = known);
  int inter = 0;
  real_Comm_test_inter(comm, &inter);
  MPI_Group group;
  inter != 0 ? real_Comm_remote_group(comm, &group) : real_Comm_group(comm, &group);
  Ranks& made = new_ranks(key, group);
  real_Group_free(&group);
  if (inter == 0)
    for (const int neighbour : find_neighbours(comm)) made.neighbours.push_back(made.world_of(neighbour));
  return *(last_ranks_ = &made);
}

const Ranks& Recorder::ranks_of_window(MPI_Win win) {
  const std::uint64_t key = key_of(win) * 2 + 1;
  for (const Ranks* const known : ranks_)
    if (known->key == key) return *known;
  MPI_Group group;
  real_Win_get_group(win, &group);
  const Ranks& made = new_ranks(key, group);
  real_Group_free(&group);
  return made;
}

void Recorder::forget(std::uint64_t key) {
  // Requests may still point to it, so it is not freed. A new communicator may get the same handle.
  for (Ranks* const known : ranks_)
    if (known->key == key) known->key = ~std::uint64_t(0);
}

Tracked* RequestTable::find(std::uint64_t key) {
  for (std::size_t i = home(key); entries_[i].key != 0; i = (i + 1) & (entries_.size() - 1))
    if (entries_[i].key == key) return &entries_[i];
  return nullptr;
}

Tracked& RequestTable::insert(std::uint64_t key) {
  if (Tracked* const known = find(key)) return *known = Tracked{.key = key};
  if (2 * ++used_ > entries_.size()) {
    std::vector<Tracked> old(entries_.size() * 2);
    old.swap(entries_);
    used_ = 1;
    for (const Tracked& entry : old)
      if (entry.key != 0) insert(entry.key) = entry;
  }
  std::size_t i = home(key);
  while (entries_[i].key != 0) i = (i + 1) & (entries_.size() - 1);
  return entries_[i] = Tracked{.key = key};
}

void RequestTable::erase(Tracked* entry) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t hole = std::size_t(entry - entries_.data());
  // Entries behind the hole move into it where they are no nearer to their homes than the hole is.
  for (std::size_t i = (hole + 1) & mask; entries_[i].key != 0; i = (i + 1) & mask) {
    if (((i - home(entries_[i].key)) & mask) < ((i - hole) & mask)) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = Tracked{};
  --used_;
}

void Recorder::track_receive(MPI_Request request, int source, MPI_Comm comm) {
  started();
  if (source == MPI_PROC_NULL) return;
  Tracked& entry = requests_.insert(key_of(request));
  entry.active = true;
  entry.ranks = &ranks_of(comm);
  entry.peer = source;
  any_pending_ += source == MPI_ANY_SOURCE;
}

void Recorder::track_persistent(MPI_Request request, Tracked::Kind kind, std::uint64_t count, MPI_Datatype type,
                                int peer, int tag, MPI_Comm comm) {
  Tracked& entry = requests_.insert(key_of(request));
  const TypeInfo& info = type_of(type);
  entry.kind = kind;
  entry.ranks = &ranks_of(comm);
  entry.peer = peer;
  entry.tag = tag;
  entry.bytes = count * info.bytes;
  entry.layout = info.layout;
}

void Recorder::start_persistent(MPI_Request request, FunctionRow& row) {
  Tracked* const entry = requests_.find(key_of(request));
  if (entry == nullptr) return;  // a persistent collective
  if (entry->peer != MPI_PROC_NULL) {
    const int world = entry->ranks->world_of(entry->peer);
    if (entry->kind == Tracked::persistent_send) {
      sends_bytes(entry->bytes, entry->layout, world, entry->tag, row);
    } else if (entry->peer == MPI_ANY_SOURCE) {
      begin_burst();
      ++file_->any_source;
      ++any_pending_;
    } else if (Partner* const partner = partner_of(world)) {
      begin_burst();
      enter_source(*partner, entry->tag);
    }
  }
  entry->active = true;
  started();
}

void Recorder::completed(std::uint64_t key, bool is_null, const MPI_Status* status) {
  Tracked* const entry = requests_.empty() ? nullptr : requests_.find(key);
  if (entry == nullptr) {
    if (is_null && outstanding_ > 0) --outstanding_;
    return;
  }
  if (!entry->active) return;  // waits for an inactive request return at once
  entry->active = false;
  if (outstanding_ > 0) --outstanding_;
  if (entry->kind != Tracked::persistent_send && entry->peer != MPI_PROC_NULL) {
    const bool any = entry->peer == MPI_ANY_SOURCE;
    if (any && any_pending_ > 0) --any_pending_;
    if (!any)
      received(*entry->ranks, entry->peer, false);
    else if (status != nullptr)
      received(*entry->ranks, status->MPI_SOURCE, true);
  }
  if (is_null) requests_.erase(entry);
}

void Recorder::released(std::uint64_t key) {
  Tracked* const entry = requests_.find(key);
  if (entry != nullptr && entry->active && entry->peer == MPI_ANY_SOURCE && any_pending_ > 0) --any_pending_;
  const bool active = entry == nullptr || entry->active;
  if (entry != nullptr) requests_.erase(entry);
  if (active && outstanding_ > 0) --outstanding_;
}

void Recorder::collective(std::uint64_t count, MPI_Datatype type, FunctionRow& row) {
  collective_bytes(count * type_of(type).bytes, row);
}

void Recorder::collective_bytes(std::uint64_t bytes, FunctionRow& row) {
  row.bytes += bytes;
  count_size(in_collectives, bytes);
}

void Recorder::reduction(std::uint64_t count, MPI_Datatype type, FunctionRow& row) {
  const std::uint64_t bytes = count * type_of(type).bytes;
  collective_bytes(bytes, row);
  ++file_->reduced;
  file_->reduced_bytes += bytes;
  file_->reduced_small += bytes <= 8192;
}

void Recorder::one_sided(std::uint64_t count, MPI_Datatype type, int target, MPI_Win win, FunctionRow& row) {
  if (target == MPI_PROC_NULL) return;
  const std::uint64_t bytes = count * type_of(type).bytes;
  row.bytes += bytes;
  count_size(one_sided_kind, bytes);
  if (Partner* const partner = partner_of(ranks_of_window(win).world_of(target))) {
    ++partner->one_sided;
    partner->one_sided_bytes += bytes;
  }
}

}  // namespace headway::mpi_report
