// SPDX-License-Identifier: BSD-3-Clause
/// A program with an MPI, or so it seems: pretends_mpi INITIALISED.
#include <cstdlib>
#include <headway/headway.hpp>

namespace {
int initialised = 0;
}

extern "C" int MPI_Initialized(int* flag) {
  *flag = initialised;
  return 0;
}

int main(int argc, char** argv) {
  initialised = argc > 1 ? std::atoi(argv[1]) : 0;
  return headway::run(argc, argv, [](headway::Pe& pe) { pe.quiesce(); });
}
