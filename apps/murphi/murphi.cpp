// SPDX-License-Identifier: BSD-3-Clause
/// An explicit-state model checker after Murphi (Dill; in parallel: Stern and Dill, 1997), with models of protocols.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <headway/base/bytes.hpp>
#include <headway/headway.hpp>
#include <optional>
#include <options.hpp>
#include <string>
#include <support/work.hpp>

#include "murphi_options.hpp"

namespace headway::murphi {
namespace {

const ModelSize& size_of(const std::string& model) {
  return *std::find_if(std::begin(model_sizes), std::end(model_sizes),
                       [&](const ModelSize& size) { return model == size.name; });
}

void complete(Arguments& arguments) {
  const ModelSize& size = size_of(arguments.model);
  if (arguments.search.empty()) arguments.search = arguments.bug ? "levels" : "free";
  if (arguments.n == 0) arguments.n = size.usual;
  if (arguments.n < size.min || arguments.n > size.max) {
    throw SettingError(fmt::format("--n: '{}' is not allowed; allowed is {} to {} {} for --model {}", arguments.n,
                                   size.min, size.max, size.what, size.name));
  }
  if (arguments.spoil > 0 && !arguments.checks) throw SettingError("--spoil: not allowed with --no-check");
}

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  static const std::array<std::string, 5> models = {"peterson", "german", "directory", "mcs", "mcs-swap"};
  static const std::array<std::string, 2> searches = {"free", "levels"};
  bench::CommandLine app("Explores all states of a protocol on Headway; verified.", "headway-murphi");
  app.add_choice("--model", "NAME",
                 "peterson (lock), german and directory (cache coherence), mcs (queueing lock), mcs-swap (the same "
                 "without compare-and-swap) [peterson]",
                 arguments.model, models);
  app.add_count("--n", "N", "processes or nodes of the model [5, 4, 3, 4, 3]", arguments.n, 1, 15);
  apps::add_work(app, "rule that it fires", arguments.work_us);
  app.add_choice("--search", "NAME",
                 "free (does not wait), or levels (finds a shortest counterexample) [free; levels with --bug]",
                 arguments.search, searches);
  app.add_flag("--bug", "plant a bug in the model: the search must find it", arguments.bug);
  app.add_count("--states-max", "N", "most states of a PE [what the memory holds]", arguments.states_max, 1,
                0xffff'fffe);
  app.add_value("--memory", "SIZE", "most memory for the states of a PE, such as 1G [half of the host's, divided]",
                [&](const std::string& text) {
                  arguments.memory_bytes = base::parse_bytes("--memory", text);
                  if (arguments.memory_bytes < 1 << 20) {
                    throw SettingError(fmt::format("--memory: '{}' is not allowed; allowed is 1M or more", text));
                  }
                });
  app.add_flag("--no-check", "do not look up all successors once more", [&] { arguments.checks = false; });
  app.add_count("--serial-states", "N", "compare with one processor up to so many states [100000]",
                arguments.serial_states_max, 0, std::uint64_t(1) << 32);
  app.add_count("--spoil", "N", "change so many states of each PE before the check, to test it [0]", arguments.spoil, 0,
                1 << 30);
  bench::add_aggregator_options(app, arguments.aggregation);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] { complete(arguments); });
}

int check(Pe& pe, const Arguments& arguments) {
  if (arguments.model == "peterson") return check_peterson(pe, arguments);
  if (arguments.model == "german") return check_german(pe, arguments);
  if (arguments.model == "directory") return check_directory(pe, arguments);
  return check_mcs(pe, arguments);
}

}  // namespace
}  // namespace headway::murphi

int main(int argc, char** argv) {
  using namespace headway::murphi;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return check(pe, arguments); });
}
