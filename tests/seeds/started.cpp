// SPDX-License-Identifier: BSD-3-Clause
/// Runs random programs, one a seed. The mpirun of an MPI or `headway run` starts this program, or it starts alone.
///
///     headway_random_programs --pes N [--first SEED] [--count N] [--verbose]
///
/// Seeds with another number of PEs are skipped. Every PE compares the messages that it has handled with a serial run.
/// Ends with 0 if all agree.

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <headway/base/bytes.hpp>
#include <headway/launch/run.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "participant.hpp"

namespace seeds {
namespace {

using namespace headway::literals;

// As many as one machine runs within seconds, most of which go into starting them.
constexpr ProgramLimits limits{
    .pes_max = 7, .messages_max = 1000, .bytes_max = 400'000, .budget_bytes_min = 1_MiB, .floods = false};

struct Options {
  std::size_t pes = 0;
  std::uint64_t first = 1, count = 20;
  bool verbose = false;
};

std::uint64_t number(std::string_view option, const char* text) {
  std::uint64_t value = 0;
  const std::string_view digits = text != nullptr ? text : "";
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc() || end != digits.end() || digits.empty()) {
    throw std::invalid_argument(fmt::format("{} {}: allowed is a whole number", option, digits));
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--verbose") {
      options.verbose = true;
      continue;
    }
    const std::uint64_t value = number(option, i + 1 < argc ? argv[++i] : nullptr);
    if (option == "--pes")
      options.pes = value;
    else if (option == "--first")
      options.first = value;
    else if (option == "--count")
      options.count = value;
    else
      throw std::invalid_argument(
          fmt::format("unknown option '{}'; allowed are --pes, --first, --count, --verbose", option));
  }
  if (options.pes == 0 || options.pes > limits.pes_max) {
    throw std::invalid_argument(fmt::format("--pes {}: allowed is 1 to {}", options.pes, limits.pes_max));
  }
  return options;
}

int run_program(const Program& program) {
  const Expectation expectation = expect(program);
  setenv("HEADWAY_BUDGET", std::to_string(program.budget_bytes).c_str(), 1);
  setenv("HEADWAY_TEST_SIZES", program.has_small_sizes ? "small" : "normal", 1);
  return headway::run(0, nullptr, [&](Pe& pe) {
    if (pe.size() != program.pes) throw std::runtime_error(fmt::format("{} PEs were started", pe.size()));
    Ledger ledger;
    const std::uint64_t digest = Participant(pe, program, expectation, ledger).run();
    if (digest != expectation.digests[pe.id()]) throw Violation("other messages were handled than a serial run says");
  });
}

int run_programs(const Options& options) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = options.first; found < options.count; ++seed) {
    Program program;
    draw(program, seed, limits);
    if (program.pes != options.pes) continue;
    ++found;
    if (options.verbose) fmt::print("seed {}: {}\n", seed, program.describe());
    if (const int status = run_program(program); status != 0) {
      fmt::print(stderr, "seed {}: status {}; in: {}\n", seed, status, program.describe());
      return status;
    }
  }
  fmt::print("{} programs of {} PEs agree\n", found, options.pes);
  return 0;
}

}  // namespace
}  // namespace seeds

int main(int argc, char** argv) {
  try {
    return seeds::run_programs(seeds::parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "headway_random_programs: {}\n", error.what());
    return 2;
  }
}
