// SPDX-License-Identifier: BSD-3-Clause
/// Tpetra's Distributor behind an interface without Trilinos.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace headway::peers {

/// Moves packed elements, which lie in Kokkos' memory: `counts[i]` of them to rank `ranks[i]`, ranks rising.
class PackedDistributor {
 public:
  /// Collective. Throws std::runtime_error if this rank would not receive `received` elements.
  PackedDistributor(const std::vector<int>& ranks, const std::vector<std::size_t>& counts, std::size_t received,
                    std::size_t element_bytes);
  PackedDistributor(const PackedDistributor&) = delete;
  PackedDistributor& operator=(const PackedDistributor&) = delete;
  ~PackedDistributor();

  /// Where the caller packs, and where elements arrive in the order of their senders' ranks.
  void* sent();
  const void* received() const;
  void exchange();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headway::peers
