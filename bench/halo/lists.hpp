// SPDX-License-Identifier: BSD-3-Clause
/// The plan of a case: which elements each PE sends and receives. Made by each PE for itself, without communication,
/// so Headway's program and its peers exchange the same elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <halo/work.hpp>
#include <map>
#include <vector>

namespace headway::bench {

struct HaloPartner {
  std::size_t pe;
  std::vector<std::uint64_t> indices;  // local, in the order in which elements travel
  std::vector<std::uint64_t> remote;   // in receives: the sender's indices, for the check
};

/// One PE's side. Partners are sorted by PE. A PE may be its own partner. No list is empty.
struct HaloLists {
  std::uint64_t owned = 0;     // elements 0 to owned - 1; in grids all elements of the array
  std::uint64_t elements = 0;  // of an array, with ghosts
  std::vector<HaloPartner> sends, receives;

  std::uint64_t sent() const;
  std::uint64_t received() const;
};

/// Throws SettingError if a plan file cannot be read, has a mistake, or is of another number of PEs.
HaloLists make_halo_lists(const HaloWork& work, std::size_t me, std::size_t pes);

/// The elements that a PE needs: indices of each sender, in the order in which they travel.
using HaloNeeds = std::map<std::size_t, std::vector<std::uint64_t>>;

/// Both depend on their arguments alone, so each PE computes them for every other.
struct HaloRule {
  std::uint64_t owned;
  HaloNeeds needs;
};
HaloRule recorded_rule(const HaloWork& work, std::size_t pe, std::size_t pes);

/// A plan in a text file, one statement a line; `#` begins a comment.
///
///     pes 2
///     owned 0 100          # elements of PE 0; without this line one more than its largest index in a list
///     send 0 1: 5 7-9 3    # PE 0 sends elements 5, 7, 8, 9, 3 to PE 1
///
/// A receiver keeps the elements from index `owned` on, by rising number of the sender.
/// Throws SettingError if the file cannot be read, has a mistake, or is for another number of PEs.
std::vector<HaloRule> read_halo_plan(const std::string& path, std::size_t pes);

/// Blocks by dimension, nearly cubic: the product is `pes`.
std::vector<std::size_t> halo_blocks(std::size_t pes);

}  // namespace headway::bench
