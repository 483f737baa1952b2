// SPDX-License-Identifier: BSD-3-Clause
/// write_platform MACHINE RANKS RANKS_PER_HOST FOLDER: writes platform.xml and hosts there, as `headway platform` does,
/// and prints the time of a message, one way, in ns, and of a byte.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <headway/model/simgrid_platform.hpp>
#include <string>

int main(int argc, char** argv) {
  using namespace headway::model;
  if (argc != 5) return 2;
  try {
    const Machine machine = find_machine(argv[1]);
    const std::size_t ranks = std::strtoull(argv[2], nullptr, 10), per_host = std::strtoull(argv[3], nullptr, 10);
    const LogGP network = network_of(machine);
    const std::string folder = argv[4];
    std::ofstream(folder + "/platform.xml") << simgrid_platform(machine, network, ranks, per_host);
    std::ofstream(folder + "/hosts") << simgrid_hosts(machine, ranks, per_host);
    std::printf("%.9g %.9g\n", 2 * network.overhead_ns + network.latency_ns, network.gap_per_byte_ns);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
