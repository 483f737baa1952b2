// SPDX-License-Identifier: BSD-3-Clause
/// Reads what headway-probe has measured, and compares it with the dial of the run:
///
///     read_probe DIAL NS WITHOUT.json WITH.json
///
/// The value that DIAL changes is read within 2 % of NS (G: ns a byte). o, item_o and L are added to those of the run
/// without dials. g and G run beside those of the network, and the longer one counts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <probe/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using headway::bench::ProbeResult;

ProbeResult read(const char* path) {
  std::ifstream file(path);
  const std::vector<headway::bench::ProbeLaunch> launches = {
      headway::bench::probe_launch_of(headway::bench::Json::parse(file))};
  return headway::bench::evaluate(launches);
}

/// Observed and expected values.
std::vector<std::pair<double, double>> compared(const std::string& dial, double ns, const ProbeResult& without,
                                                const ProbeResult& with) {
  if (dial == "o") {
    return {{with.overhead_of_sender.value, without.overhead_of_sender.value + ns},
            {with.overhead_of_receiver.value, without.overhead_of_receiver.value + ns}};
  }
  if (dial == "item_o") return {{with.item.value, without.item.value + ns}};
  if (dial == "L") return {{with.latency.value, without.latency.value + ns}};
  if (dial == "g") return {{with.gap().value, std::max(without.gap().value, ns)}};
  if (dial == "G") return {{with.gap_per_byte().value, std::max(without.gap_per_byte().value, ns)}};
  throw std::invalid_argument("no dial: " + dial);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    const double ns = std::atof(argv[2]);
    bool right = ns > 0;
    for (const auto& [observed, expected] : compared(argv[1], ns, read(argv[3]), read(argv[4]))) {
      const double error = (observed - expected) / ns;
      std::printf("%s=%g ns: observed %.4g, expected %.4g, error %+.2f %%\n", argv[1], ns, observed, expected,
                  100 * error);
      right = right && std::abs(error) <= 0.02;
    }
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_probe: %s\n", error.what());
    return 2;
  }
}
