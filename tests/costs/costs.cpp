// SPDX-License-Identifier: BSD-3-Clause
/// costs.cpp write KEPT UNSTEADY: writes kept results of a probe below two folders. costs.cpp PAIR [attach]: each PE of
/// a run checks that it has the costs of that pair, and the buffers that follow from them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <headway/am/engine.hpp>
#include <headway/headway.hpp>
#include <headway/transport/local/local.hpp>
#include <headway/transport/probed_costs.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <numbers>
#include <string>
#include <vector>

namespace {

using headway::transport::FrameCosts;

// With these values 9 o / G decides the size of buffers.
constexpr FrameCosts of_threads = {300e3, 10, 5}, of_processes = {600e3, 10, 7}, of_wire = {1200e3, 10, 9};
constexpr FrameCosts of_no_run = {1, 1, 1};  // of pairs that no test uses

void write(const std::string& folder, double line_ns_most) {
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  std::filesystem::create_directories(headway::transport::probe_directory());
  for (const char* transport : {"local", "openmpi", "mpich", "ucx"}) {
    const bool is_local = std::strcmp(transport, "local") == 0;
    const std::vector<headway::transport::ProbedPair> pairs = {
        {"thread", is_local ? of_threads : of_no_run, 45, line_ns_most},
        {"process", is_local ? of_no_run : of_wire, 45, line_ns_most},
        {is_local ? "process_apart" : "host", is_local ? of_processes : of_no_run, 45, line_ns_most}};
    std::ofstream(headway::transport::probed_costs_path(transport)) << headway::transport::to_text(pairs);
  }
}

/// Process 0 alone reads the results: the other ones of a launcher would not find them.
void hide_from_others() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    const char* const rank = std::getenv(variable);
    if (rank != nullptr && std::strcmp(rank, "0") != 0) ::setenv("XDG_CACHE_HOME", "/nonexistent", 1);
  }
}

class Check {
 public:
  explicit Check(headway::Pe& pe) : pe_(pe) {}

  void same(const char* what, double value, double expected) {
    if (value == expected) return;
    std::printf("PE %zu: %s is %g instead of %g\n", std::size_t(pe_.id()), what, value, expected);
    good_ = false;
  }
  void costs(const char* where, const headway::transport::TransportCosts& costs, const FrameCosts& expected) {
    same(fmt::format("{}: o", where).c_str(), costs.overhead_ns, expected.overhead_ns);
    same(fmt::format("{}: G", where).c_str(), costs.gap_per_byte_ns, expected.gap_per_byte_ns);
    same(fmt::format("{}: L", where).c_str(), costs.latency_ns, expected.latency_ns);
  }
  bool good() const { return good_; }

 private:
  headway::Pe& pe_;
  bool good_ = true;
};

FrameCosts estimates(const headway::transport::TransportCosts& costs) {
  return {costs.overhead_ns, costs.gap_per_byte_ns, costs.latency_ns};
}

/// The power of two next to 9 o / G, of frames that the network sends at once.
double buffer_of(const FrameCosts& costs, std::size_t eager_bytes) {
  const double bytes = 9 * costs.overhead_ns / costs.gap_per_byte_ns;
  const std::size_t power = std::bit_floor(std::size_t(bytes * std::numbers::sqrt2));
  return double(std::max(std::min(power, eager_bytes), headway::base::buffer_bytes_min));
}

bool has_costs(headway::Pe& pe, const std::string& pair) {
  Check check(pe);
  const headway::transport::Endpoint& endpoint = pe.engine().endpoint();
  headway::Aggregator<std::uint64_t> words(pe);
  words.on([](std::uint64_t) {});
  const headway::transport::TransportCosts costs = endpoint.costs(), within = endpoint.costs_within_host();
  if (pair == "default") {
    check.costs("run", costs, estimates(headway::local::costs));
    check.same("bytes of a buffer", double(words.options().buffer_bytes), 64 * 1024);
  } else if (pair == "sim") {
    check.costs("run", costs, {600, 0.1, 2000});
  } else {
    const bool on_wire = pair.starts_with("wire");
    const FrameCosts& expected = on_wire ? of_wire : pair == "thread" ? of_threads : of_processes;
    check.costs("run", costs, expected);
    check.costs("host", within,
                pair == "wire"              ? estimates(headway::local::costs)
                : pair == "wire_of_threads" ? of_threads
                                            : expected);
    check.same("bytes of a buffer", double(words.options().buffer_bytes), buffer_of(expected, costs.eager_bytes));
  }
  pe.quiesce();
  return check.good();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "write" && argc == 4) {
    write(argv[2], 54);
    write(argv[3], 200);
    return 0;
  }
  hide_from_others();
  if (argc > 2 && std::string(argv[2]) == "attach") {
    const bool good = has_costs(headway::attach(), what);
    return headway::detach(good ? 0 : 1);
  }
  return headway::run(argc, argv, [&](headway::Pe& pe) { return has_costs(pe, what) ? 0 : 1; });
}
