// SPDX-License-Identifier: BSD-3-Clause
/// PETSc's star forest behind an interface without PETSc's macros, which rename calls of MPI.
#pragma once

#include <cstddef>
#include <halo/lists.hpp>
#include <memory>
#include <vector>

namespace headway::peers {

/// Copies elements of other ranks' arrays to this rank's array. Roots and leaves are indices of the same array.
class StarForest {
 public:
  /// Collective. Sets up the communication. Throws std::runtime_error with PETSc's reason.
  StarForest(std::size_t elements, const std::vector<bench::HaloPartner>& receives, std::size_t element_bytes);
  StarForest(const StarForest&) = delete;
  StarForest& operator=(const StarForest&) = delete;
  ~StarForest();

  /// Several arrays may be in flight.
  void begin(void* array);
  void end(void* array);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headway::peers
