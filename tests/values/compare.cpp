// SPDX-License-Identifier: BSD-3-Clause
#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "made.hpp"

namespace values {
namespace {

using headway::Pe;
using headway::Random;

constexpr std::string_view names[] = {"all", "every", "large"};

/// Of each family: the team that this PE is in, if any.
std::vector<std::optional<headway::Team>> teams_with(Pe& pe) {
  std::vector<std::optional<headway::Team>> mine{headway::Team(pe)};
  for (std::size_t family = 1; family < families; ++family) {
    auto& place = mine.emplace_back();
    for (const std::vector<std::size_t>& team : teams_of(family, pe.size())) {
      if (std::ranges::find(team, std::size_t(pe.id())) != team.end()) place.emplace(pe, team);
    }
  }
  return mine;
}

}  // namespace

void compare(Pe& pe, const Options& options, Oracle& oracle) {
  const std::vector<Call> calls = calls_for(pe.size(), options.which);
  const auto teams = teams_with(pe);
  Random lateness(pe.id());
  std::uint64_t compared = 0;
  for (std::size_t first = 0; first < calls.size(); first += options.in_flight) {
    const std::span batch = std::span(calls).subspan(first, std::min(options.in_flight, calls.size() - first));
    if (lateness.one_in(4)) std::this_thread::sleep_for(std::chrono::microseconds(lateness.below(300)));
    std::vector<std::unique_ptr<Made>> made(batch.size());
    // Each PE takes the teams in another order: only those of one team have one.
    for (std::size_t f = 0; f < families; ++f) {
      const std::size_t family = (f + pe.id() + first) % families;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (batch[i].family == family && teams[family]) made[i] = make(*teams[family], batch[i]);
      }
      if (lateness.one_in(8)) pe.progress();
    }
    barrier(pe);  // a PE that waits for memory to begin a call needs handlers of PEs that would wait in MPI
    oracle.find_out(batch);
    for (std::size_t i = batch.size(); i-- > 0;) {
      if (!made[i]) continue;
      Bytes outcome = made[i]->take();
      if (options.spoils == batch[i].number && pe.id() == batch[i].root_of(pe.size()) && !outcome.empty()) {
        outcome.back() ^= std::byte(1);
      }
      if (const std::string wrong = oracle.complaint(i, outcome); !wrong.empty()) {
        throw std::runtime_error(fmt::format("{}: {}", describe(batch[i]), wrong));
      }
      ++compared;
    }
  }
  const std::uint64_t all = headway::allreduce(pe, compared, std::plus<>());
  if (pe.id() != 0) return;
  std::printf("%zu PEs: %zu calls, %zu outcomes compared\n", pe.size(), calls.size(), std::size_t(all));
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--which") {
      const auto found = std::ranges::find(names, value);
      if (found == std::end(names)) {
        throw std::invalid_argument(fmt::format("--which {}: allowed is all, every or large", value));
      }
      options.which = Which(found - names);
    } else if (name == "--in-flight") {
      options.in_flight = std::max(1ul, std::strtoul(argv[i + 1], nullptr, 10));
    } else if (name == "--spoil") {
      options.spoils = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--folder") {
      options.folder = value;
    } else {
      throw std::invalid_argument(fmt::format("{}: allowed are --which, --in-flight, --spoil and --folder", name));
    }
  }
  return options;
}

std::uint64_t digest(const Call& call, std::span<const std::byte> outcome) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ outcome.size();  // FNV-1a
  if (call.inexact) return hash;
  for (const std::byte byte : outcome) hash = (hash ^ std::uint64_t(byte)) * 0x100000001b3;
  return hash;
}

std::filesystem::path record_of(const std::filesystem::path& folder, Which which, std::size_t pes, std::size_t pe) {
  return folder / fmt::format("{}_{}_of_{}", names[std::size_t(which)], pe, pes);
}

}  // namespace values
