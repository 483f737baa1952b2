// SPDX-License-Identifier: BSD-3-Clause
#include "halo_petsc.hpp"

#include <fmt/format.h>
#include <petscsf.h>

#include <cstdint>
#include <stdexcept>

namespace headway::peers {
namespace {

void check(PetscErrorCode error, const char* call) {
  if (error == 0) return;
  const char* text = nullptr;
  PetscErrorMessage(error, &text, nullptr);
  throw std::runtime_error(fmt::format("{} failed: {}", call, text == nullptr ? "unknown error" : text));
}

/// PETSc starts with the first star forest and ends before MPI does.
void start_petsc() {
  PetscBool is_started = PETSC_FALSE;
  check(PetscInitialized(&is_started), "PetscInitialized");
  if (!is_started) check(PetscInitializeNoArguments(), "PetscInitialize");
}

}  // namespace

struct StarForest::State {
  PetscSF forest = nullptr;
  MPI_Datatype element = MPI_DOUBLE;
  bool is_own_type = false;
};

StarForest::StarForest(std::size_t elements, const std::vector<bench::HaloPartner>& receives, std::size_t element_bytes)
    : state_(std::make_unique<State>()) {
  start_petsc();
  // Elements of 8 bytes have a type that PETSc packs by loops of its own.
  if (element_bytes != sizeof(double)) {
    MPI_Type_contiguous(int(element_bytes / sizeof(std::int32_t)), MPI_INT32_T, &state_->element);
    MPI_Type_commit(&state_->element);
    state_->is_own_type = true;
  }
  std::vector<PetscInt> leaves;
  std::vector<PetscSFNode> roots;
  for (const bench::HaloPartner& from : receives) {
    for (std::size_t i = 0; i < from.indices.size(); ++i) {
      leaves.push_back(PetscInt(from.indices[i]));
      roots.push_back({PetscInt(from.pe), PetscInt(from.remote[i])});
    }
  }
  check(PetscSFCreate(PETSC_COMM_WORLD, &state_->forest), "PetscSFCreate");
  check(PetscSFSetGraph(state_->forest, PetscInt(elements), PetscInt(leaves.size()), leaves.data(), PETSC_COPY_VALUES,
                        roots.data(), PETSC_COPY_VALUES),
        "PetscSFSetGraph");
  check(PetscSFSetUp(state_->forest), "PetscSFSetUp");
}

StarForest::~StarForest() {
  PetscSFDestroy(&state_->forest);
  if (state_->is_own_type) MPI_Type_free(&state_->element);
}

void StarForest::begin(void* array) {
  check(PetscSFBcastBegin(state_->forest, state_->element, array, array, MPI_REPLACE), "PetscSFBcastBegin");
}

void StarForest::end(void* array) {
  check(PetscSFBcastEnd(state_->forest, state_->element, array, array, MPI_REPLACE), "PetscSFBcastEnd");
}

}  // namespace headway::peers
