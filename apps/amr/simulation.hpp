// SPDX-License-Identifier: BSD-3-Clause
/// The whole computation, for any communication; one PE alone; and the options that decide the result.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "mesh.hpp"
#include "refine.hpp"

namespace headway::amr {

struct Options {
  unsigned level = 5;   // of the coarsest cells
  unsigned levels = 3;  // above it, of the finest ones
  std::uint64_t steps = 100;
  std::uint64_t refine_every = 5;  // steps
  bool check_every_mesh = false;
  bool spoil = false;  // before the last step, to test the checks
};

/// The same on all PEs, but for the times, the ghosts and the errors.
struct Outcome {
  std::uint64_t hash = 0, cells = 0, meshes = 0;
  double volume = 0, lost = 0;  // the latter as a fraction of the volume at first
  double simulated = 0;         // seconds of the water
  Times times;
  double seconds = 0;
  std::uint64_t pushed = 0, cell_steps = 0;  // ghosts that arrived, and cells computed, on this PE
  std::uint64_t errors = 0;                  // on this PE

  /// Rounding in a step changes a height by a few times 2^-53 of it.
  bool is_conserved(std::uint64_t steps) const { return std::abs(lost) <= 4 * 0x1p-52 * double(steps + 1); }
};

/// Collective.
template <class Pes>
Outcome simulate(Pes& pes, const Options& options) {
  const unsigned level_max_wanted = options.level + options.levels;
  Mesh<Pes> mesh(pes, options.level);
  for (unsigned level = 0; level != options.levels && refine(mesh, level_max_wanted); ++level)
    mesh.set_initial_states();
  Outcome outcome;
  const double volume_first = mesh.volume().value();
  mesh.times() = {};
  const double begin = pes.now();
  for (std::uint64_t step = 0; step != options.steps; ++step) {
    if (step % options.refine_every == 0 && refine(mesh, level_max_wanted)) {
      ++outcome.meshes;
      if (options.check_every_mesh) outcome.errors += mesh.count_errors();
    }
    if (options.spoil && step + 1 == options.steps) mesh.spoil();
    const double time = mesh.stable_time();
    mesh.advance(time);
    outcome.simulated += time;
    outcome.pushed += mesh.ghosts();
    outcome.cell_steps += mesh.owned();
  }
  outcome.seconds = pes.now() - begin;
  outcome.times = mesh.times();
  outcome.hash = pes.sum(mesh.hash());
  outcome.cells = mesh.cells();
  outcome.volume = mesh.volume().value();
  outcome.lost = (volume_first - outcome.volume) / volume_first;
  outcome.errors += mesh.count_errors();
  return outcome;
}

/// One PE without others.
class OnePe {
 public:
  static std::size_t id() { return 0; }
  static std::size_t size() { return 1; }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static double minimum(double value) { return value; }
  static std::uint64_t sum(std::uint64_t count) { return count; }
  template <class T>
  static std::vector<T> all_gather(const T& value) {
    return {value};
  }
  template <class T>
  static const Lists<T>& swap(const Lists<T>& lists) {
    return lists;
  }
  struct Ghosts {
    template <class... Arrays>
    explicit Ghosts(const OnePe&, const Arrays&...) {}
    void begin() {}
    void end() {}
    void exchange_targets() {}
  };
};

/// What one PE alone computes; larger runs take too long for a comparison.
inline constexpr std::uint64_t serial_cell_steps_max = std::uint64_t(1) << 22;
inline std::uint64_t serial_hash(Options options) {
  OnePe alone;
  options.spoil = false;
  return simulate(alone, options).hash;
}

}  // namespace headway::amr
