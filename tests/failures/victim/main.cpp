// SPDX-License-Identifier: BSD-3-Clause
#include "scenarios.hpp"

int main(int argc, char** argv) {
  victim::Scenarios all;
  for (auto scenarios :
       {victim::working, victim::starting, victim::waiting, victim::writing, victim::meddling, victim::reporting}) {
    all.merge(scenarios());
  }
  const auto scenario = all.find(argc > 1 ? argv[1] : "");
  if (scenario == all.end()) {
    std::fprintf(stderr, "victim: no such scenario\n");
    return 99;
  }
  return scenario->second(argc, argv);
}
