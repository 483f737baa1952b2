// SPDX-License-Identifier: BSD-3-Clause
/// Collectives by Headway and by the MPI of the same processes, with the same values: every outcome is compared.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <headway/launch/run.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compare.hpp"

namespace {

using namespace values;

void multiply_matrices(void* before, void* running, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const Matrix*>(before);
  auto* b = static_cast<Matrix*>(running);
  for (int i = 0; i < *count; ++i) {
    const auto &x = a[i].at, &y = b[i].at;
    b[i] = {{x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3],  //
             x[2] * y[0] + x[3] * y[2], x[2] * y[1] + x[3] * y[3]}};
  }
}

class Mpi final : public Oracle {
 public:
  explicit Mpi(const Options& options) {
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Type_contiguous(4, MPI_UINT32_T, &matrix_);
    MPI_Type_commit(&matrix_);
    MPI_Op_create(multiply_matrices, 0, &after_);
    for (std::size_t family = 0; family < families; ++family) members_.push_back(communicator(family));
    if (!options.folder.empty()) {
      std::filesystem::create_directories(options.folder);
      record_.open(record_of(options.folder, options.which, processes(), std::size_t(process_)), std::ios::binary);
      if (!record_) throw std::runtime_error(fmt::format("{} cannot be written in", options.folder.string()));
    }
  }
  ~Mpi() override {
    for (MPI_Comm& comm : members_) {
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
    MPI_Op_free(&after_);
    MPI_Type_free(&matrix_);
  }

  std::size_t processes() const { return std::size_t(processes_); }

  void find_out(std::span<const Call> calls) override {
    calls_ = calls;
    given_.assign(calls.size(), {});
    outcomes_.assign(calls.size(), {});
    from_.assign(calls.size(), {});
    to_.assign(calls.size(), {});
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (members_[calls[i].family] == MPI_COMM_NULL) continue;
      if (const MPI_Request request = start(i); request != MPI_REQUEST_NULL) requests.push_back(request);
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);  // a PE that sleeps in Headway does not move what MPI has not sent yet
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (members_[calls[i].family] == MPI_COMM_NULL) continue;
      if (calls[i].kind == Kind::exclusive_scan) begin_with_initial(i);
      if (!record_.is_open()) continue;
      const std::uint64_t word = digest(calls[i], outcomes_[i]);
      record_.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
    if (record_.is_open() && !record_.flush()) throw std::runtime_error("a record cannot be written");
  }

  std::string complaint(std::size_t i, const Bytes& outcome) override {
    const Bytes& expected = outcomes_[i];
    const Call& call = calls_[i];
    if (outcome.size() != expected.size()) {
      return fmt::format("{} bytes instead of the {} of MPI", outcome.size(), expected.size());
    }
    if (call.inexact) return call.type == Type::f32 ? beyond<float>(i, outcome) : beyond<double>(i, outcome);
    const auto at = std::size_t(std::ranges::mismatch(outcome, expected).in1 - outcome.begin());
    if (at == outcome.size()) return "";
    return fmt::format("on process {} element {} of {} is not what MPI has", process_, at / bytes_of(call.type),
                       outcome.size() / bytes_of(call.type));
  }

 private:
  MPI_Comm communicator(std::size_t family) const {
    MPI_Comm comm = MPI_COMM_NULL;
    const auto teams = teams_of(family, std::size_t(processes_));
    if (family + 1 == families) {  // some of the processes, by a group
      const std::vector<int> ranks(teams[0].begin(), teams[0].end());
      MPI_Group all, some;
      MPI_Comm_group(MPI_COMM_WORLD, &all);
      MPI_Group_incl(all, int(ranks.size()), ranks.data(), &some);
      MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
      MPI_Group_free(&some);
      MPI_Group_free(&all);
      return comm;
    }
    int color = MPI_UNDEFINED, key = 0;
    for (std::size_t t = 0; t < teams.size(); ++t) {
      const auto found = std::ranges::find(teams[t], std::size_t(process_));
      if (found == teams[t].end()) continue;
      color = int(t);
      key = int(found - teams[t].begin());
    }
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    return comm;
  }

  MPI_Datatype type_of(const Call& call) const {
    switch (call.type) {
      case Type::i8: return MPI_INT8_T;
      case Type::i16: return MPI_INT16_T;
      case Type::i32: return MPI_INT32_T;
      case Type::i64: return MPI_INT64_T;
      case Type::u8: return MPI_UINT8_T;
      case Type::u16: return MPI_UINT16_T;
      case Type::u32: return MPI_UINT32_T;
      case Type::u64: return MPI_UINT64_T;
      case Type::f32: return MPI_FLOAT;
      case Type::f64: return MPI_DOUBLE;
      case Type::matrix: return matrix_;
    }
    return MPI_DATATYPE_NULL;
  }
  MPI_Op op_of(const Call& call) const {
    switch (call.op) {
      case Op::sum: return MPI_SUM;
      case Op::product: return MPI_PROD;
      case Op::least: return MPI_MIN;
      case Op::most: return MPI_MAX;
      case Op::bit_and: return MPI_BAND;
      case Op::bit_or: return MPI_BOR;
      case Op::bit_xor: return MPI_BXOR;
      case Op::logical_and: return MPI_LAND;
      case Op::logical_or: return MPI_LOR;
      case Op::after: return after_;
    }
    return MPI_OP_NULL;
  }

  /// One call in 16 blocks, and has MPI_REQUEST_NULL: few, as an MPI that spins waits long on few cores.
  MPI_Request start(std::size_t i) {
    const Call& call = calls_[i];
    const MPI_Comm comm = members_[call.family];
    const MPI_Datatype type = type_of(call);
    const MPI_Op op = op_of(call);
    const bool blocks = call.number % 16 == 0;
    int rank = 0, members = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &members);
    const int root = int(call.root_of(std::size_t(members))), n = int(call.count);
    const bool is_root = rank == root;
    Bytes &in = given_[i], &out = outcomes_[i];
    in = given(call, std::size_t(rank), std::size_t(members));
    if (call.kind != Kind::reduce || is_root) out.resize(in.size());
    MPI_Request request = MPI_REQUEST_NULL;
    switch (call.kind) {
      case Kind::reduce:
        blocks ? MPI_Reduce(in.data(), out.data(), n, type, op, root, comm)
               : MPI_Ireduce(in.data(), out.data(), n, type, op, root, comm, &request);
        break;
      case Kind::allreduce:
        blocks ? MPI_Allreduce(in.data(), out.data(), n, type, op, comm)
               : MPI_Iallreduce(in.data(), out.data(), n, type, op, comm, &request);
        break;
      case Kind::scan:
        blocks ? MPI_Scan(in.data(), out.data(), n, type, op, comm)
               : MPI_Iscan(in.data(), out.data(), n, type, op, comm, &request);
        break;
      case Kind::exclusive_scan:
        blocks ? MPI_Exscan(in.data(), out.data(), n, type, op, comm)
               : MPI_Iexscan(in.data(), out.data(), n, type, op, comm, &request);
        break;
      case Kind::gather: {
        auto& [counts, places] = to_[i];
        const int elements = is_root ? lay_out(to_[i], members, [&](std::size_t r) { return call.block(r); }) : 0;
        out.assign(std::size_t(elements) * bytes_of(call.type), {});
        const int own = int(call.block(std::size_t(rank)));
        blocks
            ? MPI_Gatherv(in.data(), own, type, out.data(), counts.data(), places.data(), type, root, comm)
            : MPI_Igatherv(in.data(), own, type, out.data(), counts.data(), places.data(), type, root, comm, &request);
        break;
      }
      case Kind::broadcast:
        if (is_root) out = in;
        blocks ? MPI_Bcast(out.data(), n, type, root, comm) : MPI_Ibcast(out.data(), n, type, root, comm, &request);
        break;
      case Kind::all_to_all:
        blocks ? MPI_Alltoall(in.data(), n, type, out.data(), n, type, comm)
               : MPI_Ialltoall(in.data(), n, type, out.data(), n, type, comm, &request);
        break;
      case Kind::all_gather: {
        auto& [counts, places] = to_[i];
        const int elements = lay_out(to_[i], members, [&](std::size_t r) { return call.block(r); });
        out.assign(std::size_t(elements) * bytes_of(call.type), {});
        const int own = counts[std::size_t(rank)];
        blocks ? MPI_Allgatherv(in.data(), own, type, out.data(), counts.data(), places.data(), type, comm)
               : MPI_Iallgatherv(in.data(), own, type, out.data(), counts.data(), places.data(), type, comm, &request);
        break;
      }
      case Kind::scatter: {
        auto& [counts, places] = from_[i];
        const auto length = [&](std::size_t r) { return call.block(std::size_t(root), r); };
        lay_out(from_[i], members, length);
        const int own = counts[std::size_t(rank)];
        out.assign(std::size_t(own) * bytes_of(call.type), {});
        blocks
            ? MPI_Scatterv(in.data(), counts.data(), places.data(), type, out.data(), own, type, root, comm)
            : MPI_Iscatterv(in.data(), counts.data(), places.data(), type, out.data(), own, type, root, comm, &request);
        break;
      }
      case Kind::exchange: {
        const auto own = std::size_t(rank);
        auto& [given_counts, given_places] = from_[i];
        auto& [counts, places] = to_[i];
        lay_out(from_[i], members, [&](std::size_t r) { return call.block(own, r); });
        const int elements = lay_out(to_[i], members, [&](std::size_t r) { return call.block(r, own); });
        out.assign(std::size_t(elements) * bytes_of(call.type), {});
        blocks ? MPI_Alltoallv(in.data(), given_counts.data(), given_places.data(), type, out.data(), counts.data(),
                               places.data(), type, comm)
               : MPI_Ialltoallv(in.data(), given_counts.data(), given_places.data(), type, out.data(), counts.data(),
                                places.data(), type, comm, &request);
        break;
      }
      case Kind::reduce_scatter: {
        auto& [counts, places] = from_[i];
        lay_out(from_[i], members, [&](std::size_t r) { return call.block(std::size_t(rank), r); });
        out.assign(std::size_t(counts[std::size_t(rank)]) * bytes_of(call.type), {});
        blocks ? MPI_Reduce_scatter(in.data(), out.data(), counts.data(), type, op, comm)
               : MPI_Ireduce_scatter(in.data(), out.data(), counts.data(), type, op, comm, &request);
        break;
      }
    }
    return request;
  }

  struct Layout {
    std::vector<int> counts, places;
  };
  /// Blocks of length(rank) elements, one after the other. Returns the number of elements.
  template <class Length>
  static int lay_out(Layout& layout, int members, Length length) {
    layout.counts.resize(std::size_t(members));
    layout.places.resize(std::size_t(members));
    int elements = 0;
    for (std::size_t r = 0; r < layout.counts.size(); ++r) {
      layout.places[r] = elements;
      elements += layout.counts[r] = int(length(r));
    }
    return elements;
  }

  /// What an exclusive scan of Headway's begins with, MPI's has not.
  void begin_with_initial(std::size_t i) {
    const Call& call = calls_[i];
    int rank = 0, members = 0;
    MPI_Comm_rank(members_[call.family], &rank);
    MPI_Comm_size(members_[call.family], &members);
    const Bytes one = initial(call, std::size_t(members));
    Bytes all;
    for (std::size_t e = 0; e < call.count; ++e) all.insert(all.end(), one.begin(), one.end());
    if (rank == 0)
      outcomes_[i] = std::move(all);
    else if (call.count != 0)
      MPI_Reduce_local(all.data(), outcomes_[i].data(), int(call.count), type_of(call), op_of(call));
  }

  template <class T>
  std::string beyond(std::size_t i, const Bytes& outcome) const {
    int members = 0;
    MPI_Comm_size(members_[calls_[i].family], &members);
    const std::vector<double> allowed = bounds(calls_[i], std::size_t(members));
    for (std::size_t e = 0; e < outcome.size() / sizeof(T); ++e) {
      T ours, theirs;
      std::memcpy(&ours, outcome.data() + e * sizeof(T), sizeof(T));
      std::memcpy(&theirs, outcomes_[i].data() + e * sizeof(T), sizeof(T));
      if (!(std::abs(double(ours) - double(theirs)) <= allowed[e])) {
        return fmt::format("on process {} element {} is {} instead of {}, farther than {}", process_, e, ours, theirs,
                           allowed[e]);
      }
    }
    return "";
  }

  int processes_ = 0, process_ = 0;
  MPI_Datatype matrix_;
  MPI_Op after_;
  std::vector<MPI_Comm> members_;  // by family
  std::span<const Call> calls_;
  std::vector<Bytes> given_, outcomes_;
  std::vector<Layout> from_, to_;  // of the blocks that this rank gives and gets
  std::ofstream record_;
};

}  // namespace

int main(int argc, char** argv) {
  int status = 1;
  MPI_Init(&argc, &argv);
  try {
    const Options options = options_of(argc, argv);
    Mpi mpi(options);
    status = headway::run(argc, argv, [&](headway::Pe& pe) {
      if (pe.size() != mpi.processes()) throw std::runtime_error("each process has one PE here");
      compare(pe, options, mpi);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  MPI_Finalize();
  return status;
}
