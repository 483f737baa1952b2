// SPDX-License-Identifier: BSD-3-Clause
/// The check of a run: number and identity of bodies, forces against a direct sum, energy, and one processor alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/headway.hpp>
#include <string>
#include <vector>

#include "serial.hpp"
#include "simulation.hpp"

namespace headway::ebarnes {

struct Found {
  Census census;
  Energy before, after;
  double force_error = 0, force_error_max = 0, drift = 0;
  std::vector<std::string> wrong;  // on every PE the same
};

/// Collective.
inline Census census_of(Pe& pe, const std::vector<Body>& bodies) {
  Census census;
  for (const Body& body : bodies) census.add(body);
  return allreduce(pe, census, std::plus<>());
}
inline Energy energy_of(Pe& pe, const std::vector<Body>& bodies) {
  Energy energy;
  for (const Body& body : bodies) energy.add(body);
  return allreduce(pe, energy, std::plus<>());
}

/// Every `each`-th body, by id, from whichever PE has it.
inline std::vector<Body> bodies_at(Pe& pe, const std::vector<Body>& bodies, std::uint64_t each) {
  std::vector<Body> own, all;
  for (const Body& body : bodies) {
    if (body.id % each == 0) own.push_back(body);
  }
  for (const auto& part : all_gather(pe, std::span<const Body>(own))) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all, {}, &Body::id);
  return all;
}

/// Errors of forces, of all samples together and of the worst, relative to the mean force.
inline void check_forces(Pe& pe, const std::vector<Body>& bodies, const Options& options, std::uint64_t samples,
                         Found& found) {
  const std::vector<Body> chosen = bodies_at(pe, bodies, (options.bodies + samples - 1) / samples);
  std::vector<double> sums;
  for (const Body& body : chosen) {
    for (const double x : direct_pull(bodies, body.at, body.id, options)) sums.push_back(x);
    pe.progress();
  }
  sums = allreduce(pe, std::span<const double>(sums), std::plus<>(), {.ordered = true});
  double errors = 0, pulls = 0, worst = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Vector pull{sums[3 * i], sums[3 * i + 1], sums[3 * i + 2]};
    const double error = std::sqrt(square(chosen[i].acceleration - pull));
    errors += error;
    worst = std::max(worst, error);
    pulls += std::sqrt(square(pull));
  }
  if (pulls == 0) return;  // one body alone
  found.force_error = errors / pulls;
  found.force_error_max = worst * double(chosen.size()) / pulls;
  // Errors of few bodies scatter more.
  const double allowed = force_error_max(options.theta) * (1 + 50 / double(options.bodies));
  // Not of a number: neither is less.
  if (!(found.force_error <= allowed) || !(found.force_error_max <= 10 * allowed)) {
    found.wrong.push_back(
        fmt::format("forces of {} bodies are wrong by {:.2e} in the mean and {:.2e} at most, allowed with --theta {} "
                    "are {:.2e} and "
                    "{:.2e}",
                    chosen.size(), found.force_error, found.force_error_max, options.theta, allowed, 10 * allowed));
  }
}

/// Number, identity and energy of the bodies. `begin` is their energy before the steps.
inline void check_bodies(Pe& pe, const std::vector<Body>& bodies, const Options& options, const Energy& begin,
                         double drift_max, Found& found) {
  Census expected;
  for (std::uint64_t id = options.bodies * pe.id() / pe.size(); id < options.bodies * (pe.id() + 1) / pe.size(); ++id) {
    Body body;
    body.id = id;
    expected.add(body);
  }
  expected = allreduce(pe, expected, std::plus<>());
  found.census = census_of(pe, bodies);
  if (found.census.bodies != expected.bodies || found.census.ids != expected.ids) {
    found.wrong.push_back(fmt::format("{} bodies, the hash of their ids is {:x}, expected are {} and {:x}",
                                      found.census.bodies, found.census.ids, expected.bodies, expected.ids));
  }
  found.before = begin;
  found.after = energy_of(pe, bodies);
  found.drift = std::abs(found.after.total(options.mass()) - begin.total(options.mass())) / 0.25;
  if (!(found.drift <= drift_max)) {
    found.wrong.push_back(fmt::format("the energy has changed by {:.2e} of that of the model, allowed is {} (--drift)",
                                      found.drift, drift_max));
  }
}

/// One processor alone finds the same bits, cells and interactions. Called on one PE.
inline void check_beside_one(const Options& options, const Counts& counts, Found& found) {
  Serial serial(options);
  serial.run();
  Census census;
  for (const Body& body : serial.bodies()) census.add(body);
  if (census.checksum != found.census.checksum) {
    found.wrong.push_back(fmt::format("the checksum of all bodies is {:x}, one processor has {:x}",
                                      found.census.checksum, census.checksum));
  }
  if (serial.cells_made() != counts.cells || serial.interactions() != counts.interactions) {
    found.wrong.push_back(fmt::format("{} cells and {} interactions, one processor has {} and {}", counts.cells,
                                      counts.interactions, serial.cells_made(), serial.interactions()));
  }
}

}  // namespace headway::ebarnes
