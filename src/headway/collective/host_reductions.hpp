// SPDX-License-Identifier: BSD-3-Clause
/// Calls of all PEs on several hosts: the contributions of a host go up a tree of hosts, and the result comes down.
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

/// The hosts of a run.
struct Hosts {
  std::vector<std::size_t> firsts;  // the first PE of each, ascending from 0
  std::size_t pes, pes_per_process;
  std::size_t own;  // this one

  std::size_t size() const { return firsts.size(); }
  std::size_t pes_end(std::size_t host) const { return host + 1 == size() ? pes : firsts[host + 1]; }
  std::size_t host_of(std::size_t pe) const;
};

/// Belongs to a process. It uses only memory that its host shares, and the messages that it sends. Any thread may call
/// it. So a call continues in any thread that receives a message, whatever the PEs do.
///
///     up:    the host's own part -- those of the hosts below it --> complete --> to the host above, or at the top:
///     over down:  over, with the result where all need it: written to the cell, which is free then, and sent on
///
/// The tree of hosts is binomial, from the host of the root. A host sends for call f + cells_count only when f is over
/// there. If f is not over at the host above, all hosts have arrived at f, so call f - cells_count is over everywhere.
/// So a part from below finds its place, of an even or an odd generation, free.
class HostReductions {
 public:
  /// The properties of a call that hosts must agree on, and the PE that has called it.
  struct Said {
    std::uint64_t reduction, count;
    std::uint32_t number, what, root;  // of Call
    std::uint32_t pe;                  // the caller
  };

  static std::size_t area_bytes(std::size_t hosts);
  /// `areas` are those of the PEs of this host, `parts` memory of area_bytes() of each, zero at first.
  HostReductions(Hosts hosts, transport::Services& services, std::vector<CellArea*> areas,
                 std::vector<std::byte*> parts);
  HostReductions(const HostReductions&) = delete;
  HostReductions& operator=(const HostReductions&) = delete;
  ~HostReductions();

  const Hosts& hosts() const { return hosts_; }

  /// Contributes for this host: `bytes` is the reduction of all its PEs.
  void arrive(const Said& said, Bytes bytes);
  bool is_over(std::uint64_t reduction) const {
    return head(reduction).generation.load(std::memory_order_acquire) > generation_of(reduction);
  }
  /// The result of a call that is over. Valid until a PE of the caller's host arrives at the next call in that cell.
  Bytes result(std::uint64_t reduction, std::size_t bytes) const { return content(reduction, result_part, bytes); }
  /// Changes whenever a call ends.
  std::uint64_t ends() const { return areas_[0]->begun.ends.load(std::memory_order_acquire); }

  /// PEs of other hosts for which a call waits after this host has contributed: the first PE of each host.
  void add_missing(std::uint64_t reduction, std::uint32_t root, std::vector<std::uint32_t>& pes) const;
  /// At the end of a run: the call of another host that has contributed before any member here has called.
  bool first_early(std::uint64_t reduction, Said& said) const;

 private:
  enum class Direction : std::uint32_t { up, down };
  struct Message {
    Said said;
    Direction direction;
    std::uint32_t host;  // of the sender
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
  transport::Services* services_;
  std::vector<CellArea*> areas_;
  std::vector<std::byte*> parts_;
  unsigned parts_per_generation_;
};

}  // namespace headway::collective
