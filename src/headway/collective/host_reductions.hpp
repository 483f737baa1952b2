/// Calls of all PEs where these are on several hosts: what a host's members have given climbs a tree of hosts, and what
/// it has become comes down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/collective/descriptor.hpp>
#include <headway/collective/reduction_cell.hpp>
#include <headway/transport/endpoint.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway::collective {

/// Where the hosts of a run are.
struct Hosts {
  std::vector<std::size_t> firsts;  // the first PE of each, ascending from 0
  std::size_t pes, pes_per_process;
  std::size_t own;  // this one

  std::size_t size() const { return firsts.size(); }
  std::size_t pes_end(std::size_t host) const { return host + 1 == size() ? pes : firsts[host + 1]; }
  std::size_t host_of(std::size_t pe) const;
};

/// Of a process. All it touches is memory that its host shares, and the messages that it sends; any thread may call it.
/// So it goes on whatever the PEs are at, in whichever thread finds that a message has come.
///
///     up:    a host's own reduction -- those of the hosts below it --> all there --> to the host above, or at the top:
///     over down:  over, with the result where all need it: shown in the cell, which is free then, and passed on
///
/// The tree is binomial, over hosts, from that of the root. A host sends for call f + cells_count only when f is over
/// there; where it is not yet over above, all hosts have come to it, so f - cells_count is: what comes up finds the
/// place of even or of odd generation free.
class HostReductions {
 public:
  /// What hosts need to agree on of a call, and who says it.
  struct Said {
    std::uint64_t reduction, count;
    std::uint32_t number, what, root;  // of Call
    std::uint32_t pe;                  // who has called it
  };

  static std::size_t area_bytes(std::size_t hosts);
  /// `areas` are those of the PEs of this host, `parts` memory of area_bytes() of each, zero at first.
  HostReductions(Hosts hosts, Services& services, std::vector<CellArea*> areas, std::vector<std::byte*> parts);
  HostReductions(const HostReductions&) = delete;
  HostReductions& operator=(const HostReductions&) = delete;
  ~HostReductions();

  const Hosts& hosts() const { return hosts_; }

  /// All PEs of this host have given their part: this is their reduction.
  void arrive(const Said& said, Bytes bytes);
  bool is_over(std::uint64_t reduction) const {
    return head(reduction).generation.load(std::memory_order_acquire) > generation_of(reduction);
  }
  /// Of one that is over; until the caller's host comes to the next one in its cell.
  Bytes result(std::uint64_t reduction, std::size_t bytes) const { return content(reduction, result_part, bytes); }
  /// Changes whenever one is over.
  std::uint64_t ends() const { return areas_[0]->begun.ends.load(std::memory_order_acquire); }

  /// PEs of other hosts that a call waits for whose own part is there: the first of each host.
  void add_missing(std::uint64_t reduction, std::uint32_t root, std::vector<std::uint32_t>& pes) const;
  /// What a host has called instead, where that has come before any member here has called; at the end of a run.
  bool first_early(std::uint64_t reduction, Said& said) const;

 private:
  enum class Direction : std::uint32_t { up, down };
  struct Message {
    Said said;
    Direction direction;
    std::uint32_t host;  // whose it is
  };
  // Parts of a cell: the host's own, one for each child from 1 on, and the result.
  static constexpr unsigned own_part = 0, result_part = ~0u;

  static std::uint64_t generation_of(std::uint64_t reduction) { return reduction / cells_count; }
  CellHead& head(std::uint64_t reduction) const {
    return areas_[reduction % cells_count % areas_.size()]->heads[reduction % cells_count];
  }
  HostParts parts(std::uint64_t reduction) const {
    return HostParts(head(reduction).parts[generation_of(reduction) % 2]);
  }
  std::byte* area(std::uint64_t reduction) const { return parts_[reduction % cells_count % parts_.size()]; }
  std::size_t place(std::uint64_t reduction, unsigned part) const;
  CellSlot& slot(std::uint64_t reduction, unsigned part) const;
  Bytes content(std::uint64_t reduction, unsigned part, std::size_t bytes) const;
  void write(unsigned part, const Said& said, Bytes bytes);
  Said said_in(std::uint64_t reduction, unsigned part) const;

  std::size_t from_root(std::size_t host, std::uint32_t root) const;
  std::size_t host_at(std::size_t from_root, std::uint32_t root) const;
  /// Bits of the children's parts.
  std::uint32_t children(std::uint32_t root) const;

  void take(std::size_t process, std::span<const std::byte> bytes);
  void take_up(std::size_t host, const Said& said, Bytes bytes);
  void find_stray(std::uint64_t reduction, HostParts::Parts now) const;
  void go_on(const Said& said, std::uint32_t below, Bytes own);
  void end(const Said& said, Bytes result);
  void send(std::size_t host, const Said& said, Direction direction, Bytes bytes);
  [[noreturn]] void differ(const Said& here, const Said& there) const;
  [[noreturn]] void differ_late(const Said& there) const;

  Hosts hosts_;
  Services* services_;
  std::vector<CellArea*> areas_;
  std::vector<std::byte*> parts_;
  unsigned parts_per_generation_;
};

}  // namespace headway::collective
