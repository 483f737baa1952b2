// SPDX-License-Identifier: BSD-3-Clause
/// Halo exchanges on plain MPI, packed by hand or by derived datatypes.
#include <fmt/format.h>

#include <halo/lists.hpp>
#include <halo/measure.hpp>
#include <halo/packing.hpp>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "peer.hpp"
#ifdef HEADWAY_PEER_PETSC
#include "halo_petsc.hpp"
#endif
#ifdef HEADWAY_PEER_TPETRA
#include "halo_tpetra.hpp"
#endif

namespace headway::peers {

const std::vector<std::string>& halo_modes() {
  static const std::vector<std::string> all = {
    "isend",
    "persistent",
    "neighbor-v",
    "neighbor-w",
#if MPI_VERSION >= 4
    "partitioned",
#endif
#ifdef HEADWAY_PEER_PETSC
    "petsc",
#endif
#ifdef HEADWAY_PEER_TPETRA
    "tpetra",
#endif
  };
  return all;
}

namespace {

using bench::HaloArrays;
using bench::HaloLists;
using bench::HaloPartner;

constexpr int tag = 0;

std::vector<HaloPartner> without(std::vector<HaloPartner> partners, std::size_t me) {
  std::erase_if(partners, [me](const HaloPartner& one) { return one.pe == me; });
  return partners;
}

std::vector<HaloPartner> only(std::vector<HaloPartner> partners, std::size_t me) {
  std::erase_if(partners, [me](const HaloPartner& one) { return one.pe != me; });
  return partners;
}

/// What all peers share: the check, and a copy of the elements that a rank sends to itself.
template <class T>
class Checked {
 public:
  Checked(const HaloLists& lists, const HaloArrays<T>& arrays) : lists_(&lists), arrays_(&arrays) {}
  std::uint64_t errors(std::uint64_t round) const { return bench::count_halo_errors(*lists_, *arrays_, round); }
  void corrupt() { bench::corrupt_halo(*lists_, *arrays_); }

 protected:
  const HaloLists& lists() const { return *lists_; }
  const HaloArrays<T>& arrays() const { return *arrays_; }

 private:
  const HaloLists* lists_;
  const HaloArrays<T>* arrays_;
};

/// Messages between ranks that are packed by hand; a rank's own elements pass through a buffer without MPI.
template <class T>
class Messages : public Checked<T> {
 public:
  Messages(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t me)
      : Checked<T>(lists, arrays),
        sends_(without(lists.sends, me), arrays.size()),
        receives_(without(lists.receives, me), arrays.size()),
        own_sends_(only(lists.sends, me), arrays.size()),
        own_receives_(only(lists.receives, me), arrays.size()),
        requests_(receives_.lists.size() + sends_.lists.size(), MPI_REQUEST_NULL) {}

 protected:
  int receive_count() const { return int(receives_.lists.size()); }
  MPI_Request* send_requests() { return requests_.data() + receives_.lists.size(); }

  void copy_own() {
    for (std::size_t i = 0; i < own_sends_.lists.size(); ++i) {
      own_sends_.lists[i].pack(this->arrays(), own_sends_.of(i));
      own_receives_.lists[i].unpack(own_sends_.of(i), this->arrays());
    }
  }
  /// Unpacks in the order of arrival, after the computation of the program.
  template <class Clock>
  void finish(Clock& clock) {
    clock.compute();
    for (int left = receive_count(); left > 0; --left) {
      int which = 0;
      MPI_Waitany(receive_count(), requests_.data(), &which, MPI_STATUS_IGNORE);
      clock.phase("wait");
      receives_.lists[std::size_t(which)].unpack(receives_.of(std::size_t(which)), this->arrays());
      clock.phase("unpack");
    }
    MPI_Waitall(int(sends_.lists.size()), send_requests(), MPI_STATUSES_IGNORE);
    clock.phase("wait");
  }

  bench::HandPackedSide<T> sends_, receives_, own_sends_, own_receives_;
  std::vector<MPI_Request> requests_;  // receives, then sends
};

template <class T>
class Isend : public Messages<T> {
 public:
  using Messages<T>::Messages;

  template <class Clock>
  void exchange(Clock& clock) {
    auto &sends = this->sends_, &receives = this->receives_;
    for (std::size_t i = 0; i < receives.lists.size(); ++i) {
      MPI_Irecv(receives.of(i), int(receives.bytes(i)), MPI_BYTE, int(receives.lists[i].pe()), tag, MPI_COMM_WORLD,
                &this->requests_[i]);
    }
    clock.phase("post");
    for (std::size_t i = 0; i < sends.lists.size(); ++i) {
      sends.lists[i].pack(this->arrays(), sends.of(i));
      clock.phase("pack");
      MPI_Isend(sends.of(i), int(sends.bytes(i)), MPI_BYTE, int(sends.lists[i].pe()), tag, MPI_COMM_WORLD,
                this->send_requests() + i);
      clock.phase("post");
    }
    this->copy_own();
    clock.phase("pack");
    this->finish(clock);
  }
};

/// Base of the methods that make their requests once, at set-up.
template <class T>
class KeptRequests : public Messages<T> {
 public:
  using Messages<T>::Messages;
  KeptRequests(const KeptRequests&) = delete;
  KeptRequests& operator=(const KeptRequests&) = delete;
  ~KeptRequests() {
    for (MPI_Request& one : this->requests_) {
      if (one != MPI_REQUEST_NULL) MPI_Request_free(&one);
    }
  }

 protected:
  void start_receives() {
    if (this->receive_count() > 0) MPI_Startall(this->receive_count(), this->requests_.data());
  }
};

template <class T>
class Persistent : public KeptRequests<T> {
 public:
  Persistent(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t me) : KeptRequests<T>(lists, arrays, me) {
    auto &sends = this->sends_, &receives = this->receives_;
    for (std::size_t i = 0; i < receives.lists.size(); ++i) {
      MPI_Recv_init(receives.of(i), int(receives.bytes(i)), MPI_BYTE, int(receives.lists[i].pe()), tag, MPI_COMM_WORLD,
                    &this->requests_[i]);
    }
    for (std::size_t i = 0; i < sends.lists.size(); ++i) {
      MPI_Send_init(sends.of(i), int(sends.bytes(i)), MPI_BYTE, int(sends.lists[i].pe()), tag, MPI_COMM_WORLD,
                    this->send_requests() + i);
    }
  }

  template <class Clock>
  void exchange(Clock& clock) {
    this->start_receives();
    clock.phase("post");
    for (std::size_t i = 0; i < this->sends_.lists.size(); ++i) {
      this->sends_.lists[i].pack(this->arrays(), this->sends_.of(i));
      clock.phase("pack");
      MPI_Start(this->send_requests() + i);
      clock.phase("post");
    }
    this->copy_own();
    clock.phase("pack");
    this->finish(clock);
  }
};

#if MPI_VERSION >= 4
/// A partition for each field.
template <class T>
class Partitioned : public KeptRequests<T> {
 public:
  Partitioned(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t me)
      : KeptRequests<T>(lists, arrays, me) {
    auto &sends = this->sends_, &receives = this->receives_;
    const int fields = int(arrays.size());
    for (std::size_t i = 0; i < receives.lists.size(); ++i) {
      MPI_Precv_init(receives.of(i), fields, MPI_Count(receives.bytes(i) / arrays.size()), MPI_BYTE,
                     int(receives.lists[i].pe()), tag, MPI_COMM_WORLD, MPI_INFO_NULL, &this->requests_[i]);
    }
    for (std::size_t i = 0; i < sends.lists.size(); ++i) {
      MPI_Psend_init(sends.of(i), fields, MPI_Count(sends.bytes(i) / arrays.size()), MPI_BYTE, int(sends.lists[i].pe()),
                     tag, MPI_COMM_WORLD, MPI_INFO_NULL, this->send_requests() + i);
    }
    for (const std::span<T> array : arrays) each_.push_back({array});
  }

  template <class Clock>
  void exchange(Clock& clock) {
    this->start_receives();
    if (!this->sends_.lists.empty()) MPI_Startall(int(this->sends_.lists.size()), this->send_requests());
    clock.phase("post");
    for (std::size_t i = 0; i < this->sends_.lists.size(); ++i) {
      const std::size_t elements = this->sends_.lists[i].size() / each_.size();
      for (std::size_t field = 0; field < each_.size(); ++field) {
        this->sends_.lists[i].pack(each_[field], this->sends_.of(i) + field * elements);
        clock.phase("pack");
        MPI_Pready(int(field), this->send_requests()[i]);
        clock.phase("post");
      }
    }
    this->copy_own();
    clock.phase("pack");
    this->finish(clock);
  }

 private:
  std::vector<HaloArrays<T>> each_;  // one array each
};
#endif

/// The partners as a distributed graph, own elements included.
class Neighbours {
 public:
  explicit Neighbours(const HaloLists& lists) {
    const std::vector<int> sources = ranks_of(lists.receives), targets = ranks_of(lists.sends);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, int(lists.receives.size()), sources.data(), MPI_UNWEIGHTED,
                                   int(lists.sends.size()), targets.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours() { MPI_Comm_free(&graph_); }
  MPI_Comm get() const { return graph_; }

 private:
  /// With one entry more, so that no list has a null address.
  static std::vector<int> ranks_of(const std::vector<HaloPartner>& partners) {
    std::vector<int> ranks;
    for (const HaloPartner& one : partners) ranks.push_back(int(one.pe));
    ranks.push_back(0);
    return ranks;
  }
  MPI_Comm graph_ = MPI_COMM_NULL;
};

template <class T>
class NeighborV : public Checked<T> {
 public:
  NeighborV(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t /*me*/)
      : Checked<T>(lists, arrays),
        graph_(lists),
        sends_(lists.sends, arrays.size()),
        receives_(lists.receives, arrays.size()),
        send_ints_(sends_),
        receive_ints_(receives_) {}

  template <class Clock>
  void exchange(Clock& clock) {
    clock.compute();
    for (std::size_t i = 0; i < sends_.lists.size(); ++i) sends_.lists[i].pack(this->arrays(), sends_.of(i));
    clock.phase("pack");
    MPI_Neighbor_alltoallv(sends_.buffer.data(), send_ints_.counts.data(), send_ints_.begins.data(), MPI_BYTE,
                           receives_.buffer.data(), receive_ints_.counts.data(), receive_ints_.begins.data(), MPI_BYTE,
                           graph_.get());
    clock.phase("wait");
    for (std::size_t i = 0; i < receives_.lists.size(); ++i) receives_.lists[i].unpack(receives_.of(i), this->arrays());
    clock.phase("unpack");
  }

 private:
  struct Ints {
    explicit Ints(const bench::HandPackedSide<T>& side) {
      for (std::size_t i = 0; i < side.lists.size(); ++i) {
        counts.push_back(int(side.bytes(i)));
        begins.push_back(int(side.begins[i] * sizeof(T)));
      }
      counts.push_back(0);
      begins.push_back(0);
    }
    std::vector<int> counts, begins;  // bytes
  };

  Neighbours graph_;
  bench::HandPackedSide<T> sends_, receives_;
  Ints send_ints_, receive_ints_;
};

/// A derived datatype for each partner: the runs of neighbouring elements of all fields.
template <class T>
class NeighborW : public Checked<T> {
 public:
  NeighborW(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t /*me*/)
      : Checked<T>(lists, arrays), graph_(lists), sends_(lists.sends, arrays), receives_(lists.receives, arrays) {}

  template <class Clock>
  void exchange(Clock& clock) {
    clock.compute();
    void* const base = this->arrays()[0].data();
    MPI_Neighbor_alltoallw(base, sends_.counts.data(), sends_.begins.data(), sends_.types.data(), base,
                           receives_.counts.data(), receives_.begins.data(), receives_.types.data(), graph_.get());
    clock.phase("all");
  }

 private:
  struct Types {
    Types(const std::vector<HaloPartner>& partners, const HaloArrays<T>& arrays)
        : counts(partners.size() + 1, 1), begins(partners.size() + 1, 0) {
      MPI_Datatype element = MPI_DATATYPE_NULL;
      MPI_Type_contiguous(int(T::words), sizeof(typename T::Word) == 8 ? MPI_UINT64_T : MPI_UINT32_T, &element);
      for (const HaloPartner& one : partners) types.push_back(type_of(one, arrays, element));
      MPI_Type_free(&element);
      types.push_back(MPI_BYTE);  // so that no list is empty
    }
    Types(const Types&) = delete;
    Types& operator=(const Types&) = delete;
    ~Types() {
      types.pop_back();
      for (MPI_Datatype& one : types) MPI_Type_free(&one);
    }

    static MPI_Datatype type_of(const HaloPartner& partner, const HaloArrays<T>& arrays, MPI_Datatype element) {
      MPI_Aint base = 0;
      MPI_Get_address(arrays[0].data(), &base);
      std::vector<int> lengths;
      std::vector<MPI_Aint> places;
      for (const std::span<T> array : arrays) {
        for (std::size_t i = 0; i < partner.indices.size(); ++i) {
          if (i > 0 && partner.indices[i] == partner.indices[i - 1] + 1) {
            ++lengths.back();
            continue;
          }
          MPI_Aint at = 0;
          MPI_Get_address(array.data() + partner.indices[i], &at);
          lengths.push_back(1);
          places.push_back(at - base);
        }
      }
      MPI_Datatype type = MPI_DATATYPE_NULL;
      MPI_Type_create_hindexed(int(lengths.size()), lengths.data(), places.data(), element, &type);
      MPI_Type_commit(&type);
      return type;
    }

    std::vector<int> counts;
    std::vector<MPI_Aint> begins;
    std::vector<MPI_Datatype> types;
  };

  Neighbours graph_;
  Types sends_, receives_;
};

#ifdef HEADWAY_PEER_PETSC
/// PETSc's star forest, one for all fields; a message for each field and partner.
template <class T>
class Petsc : public Checked<T> {
 public:
  Petsc(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t /*me*/)
      : Checked<T>(lists, arrays), forest_(lists.elements, lists.receives, sizeof(T)) {}

  template <class Clock>
  void exchange(Clock& clock) {
    for (const std::span<T> array : this->arrays()) forest_.begin(array.data());
    clock.phase("begin");
    clock.compute();
    for (const std::span<T> array : this->arrays()) forest_.end(array.data());
    clock.phase("end");
  }

 private:
  StarForest forest_;
};
#endif

#ifdef HEADWAY_PEER_TPETRA
/// Tpetra's Distributor, with elements that are packed by hand.
template <class T>
class Tpetra : public Checked<T> {
 public:
  Tpetra(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t /*me*/)
      : Checked<T>(lists, arrays),
        sends_(lists.sends, arrays.size()),
        receives_(lists.receives, arrays.size()),
        distributor_(ranks_of(sends_), counts_of(sends_), receives_.buffer.size(), sizeof(T)) {}

  template <class Clock>
  void exchange(Clock& clock) {
    clock.compute();
    T* const sent = static_cast<T*>(distributor_.sent());
    for (std::size_t i = 0; i < sends_.lists.size(); ++i) sends_.lists[i].pack(this->arrays(), sent + sends_.begins[i]);
    clock.phase("pack");
    distributor_.exchange();
    clock.phase("wait");
    const T* const received = static_cast<const T*>(distributor_.received());
    for (std::size_t i = 0; i < receives_.lists.size(); ++i)
      receives_.lists[i].unpack(received + receives_.begins[i], this->arrays());
    clock.phase("unpack");
  }

 private:
  static std::vector<int> ranks_of(const bench::HandPackedSide<T>& side) {
    std::vector<int> ranks;
    for (const bench::HandPackedList& one : side.lists) ranks.push_back(int(one.pe()));
    return ranks;
  }
  static std::vector<std::size_t> counts_of(const bench::HandPackedSide<T>& side) {
    std::vector<std::size_t> counts;
    for (const bench::HandPackedList& one : side.lists) counts.push_back(one.size());
    return counts;
  }

  bench::HandPackedSide<T> sends_, receives_;
  PackedDistributor distributor_;
};
#endif

double combined(double value, MPI_Op op) {
  double result = 0;
  MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return result;
}

bench::HaloWorld make_world(std::size_t me, std::size_t pes) {
  return {.me = me,
          .pes = pes,
          .meet = [] { MPI_Barrier(MPI_COMM_WORLD); },
          .now_ns = [] { return base::monotonic_ns(); },
          .sum = [](double value) { return combined(value, MPI_SUM); },
          .most = [](double value) { return combined(value, MPI_MAX); }};
}

template <class T>
bench::HaloResult measure(const Arguments& arguments, const bench::HaloWorld& world, const HaloLists& lists) {
  std::vector<std::vector<T>> memory(arguments.halo.fields, std::vector<T>(lists.elements));
  HaloArrays<T> arrays;
  for (std::vector<T>& one : memory) arrays.emplace_back(one);
  const auto with = [&]<class Method>(std::type_identity<Method>) {
    return bench::measure_halo(arguments.halo, world, lists, arrays,
                               [&] { return std::make_unique<Method>(lists, arrays, world.me); });
  };
#if MPI_VERSION >= 4
  if (arguments.mode == "partitioned") return with(std::type_identity<Partitioned<T>>());
#endif
#ifdef HEADWAY_PEER_PETSC
  if (arguments.mode == "petsc") return with(std::type_identity<Petsc<T>>());
#endif
#ifdef HEADWAY_PEER_TPETRA
  if (arguments.mode == "tpetra") return with(std::type_identity<Tpetra<T>>());
#endif
  if (arguments.mode == "persistent") return with(std::type_identity<Persistent<T>>());
  if (arguments.mode == "neighbor-v") return with(std::type_identity<NeighborV<T>>());
  if (arguments.mode == "neighbor-w") return with(std::type_identity<NeighborW<T>>());
  return with(std::type_identity<Isend<T>>());
}

}  // namespace

bench::Json run_halo(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const HaloLists lists = bench::make_halo_lists(arguments.halo, std::size_t(me), std::size_t(pes));
  if (total(lists.received()) == 0) {
    throw SettingError(fmt::format("case {} has nothing to exchange on {}; use more ranks", arguments.halo.name, pes));
  }
  const bench::HaloResult result = bench::with_halo_element(arguments.halo.bytes, [&]<class T>(std::type_identity<T>) {
    return measure<T>(arguments, make_world(std::size_t(me), std::size_t(pes)), lists);
  });
  bench::Json record = make_peer_record(arguments, result.message_bytes, result.messages * result.exchanges,
                                        result.seconds, result.errors);
  const bool is_library = arguments.mode == "petsc" || arguments.mode == "tpetra";
  record["mode"] = is_library ? "peer:" + arguments.mode : fmt::format("peer:{}:{}", arguments.mode, HEADWAY_PEER_MPI);
  record["memory"] = "heap";
  bench::add_halo_result(record, arguments.halo, result);
  return record;
}

}  // namespace headway::peers
