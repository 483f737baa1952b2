// SPDX-License-Identifier: BSD-3-Clause
/// A list of PEs that call collectives together.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <memory>
#include <string>
#include <vector>

namespace headway {

namespace collective {

/// The same on all members of a team, and of no other team: a fingerprint of 96 bits of its list, and the number of
/// teams of an equal list that its members made before. All 0: the team of all PEs.
struct TeamNumber {
  std::uint64_t list_low = 0;
  std::uint32_t list_high = 0, made_before = 0;

  auto operator<=>(const TeamNumber&) const = default;
};

/// The state of a team on one PE.
struct TeamState {
  Pe* pe;
  TeamNumber number;
  std::uint32_t rank, size;
  std::vector<std::uint32_t> pes;  // by rank; empty: the rank of each PE is its number
  std::uint32_t calls = 0;         // number of calls of this PE
  struct Last {
    std::uint32_t what;
    std::uint64_t count;
    std::uint32_t root;
  } last{};  // of the calls, for texts of errors

  /// For texts of errors.
  std::string name() const;
  std::size_t pe_of(std::size_t rank_of_it) const { return pes.empty() ? rank_of_it : pes[rank_of_it]; }
};

}  // namespace collective

/// Members of a team have ranks from 0 on; a PE may be in many teams. Collectives of one team match by the order in
/// which each member calls them; those of different teams are independent. It may be copied, and destroyed while
/// collectives are in flight. It belongs to the thread of its PE.
class Team {
 public:
  /// All PEs; the rank of each is its number.
  explicit Team(Pe& pe);
  /// `pes` lists the PEs by rank. Every member, and no other PE, makes the team from the same list. Teams of equal
  /// lists are different teams, in the order in which they are made. Sends nothing. Each different list costs its
  /// length times 4 bytes until the end of the run; destroyed teams cost nothing else. UsageError for a list without
  /// this PE, with a PE twice, or with a number that is no PE.
  Team(Pe& pe, const std::vector<std::size_t>& pes);

  std::size_t rank() const { return state_->rank; }
  std::size_t size() const { return state_->size; }
  /// UsageError for a rank out of range.
  PeId pe(std::size_t rank) const;

 private:
  friend class TeamRef;
  std::shared_ptr<collective::TeamState> state_;
};

/// The argument of collectives: a Team, or a Pe&, which stands for all PEs. It keeps nothing alive.
class TeamRef {
 public:
  TeamRef(Pe& pe);
  TeamRef(const Team& team) : state_(&team.state_) {}

  Pe& pe() const { return *(*state_)->pe; }
  const std::shared_ptr<collective::TeamState>& state() const { return *state_; }
  std::size_t rank() const { return (*state_)->rank; }
  std::size_t size() const { return (*state_)->size; }

 private:
  const std::shared_ptr<collective::TeamState>* state_;
};

}  // namespace headway
