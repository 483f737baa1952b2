// SPDX-License-Identifier: BSD-3-Clause
/// What the matrix of `headway probe --calibrate` says of values that were made by hand.
#include "probe_calibration.hpp"

#include <gtest/gtest.h>

namespace headway::tools {
namespace {

model::Estimate exact(double ns) { return {.value = ns, .low = ns, .high = ns}; }

bench::ProbeResult observed(double latency_ns) {
  bench::ProbeResult result;
  result.overhead_of_sender = result.overhead_of_receiver = exact(50);
  result.item = exact(3);
  result.latency = exact(latency_ns);
  result.segments = {{.first_bytes = 1, .last_bytes = 64, .gap = exact(80), .gap_per_byte = exact(0.1)}};
  return result;
}

/// L dialled to 1, 10 and 100 us, and read as this.
std::vector<CalibratedSetting> calibrated(double without_ns, std::vector<double> read_ns) {
  std::vector<CalibratedSetting> settings = {{{}, observed(without_ns)}};
  double dialled = 1e3;
  for (const double ns : read_ns) {
    settings.push_back({{.dial = "L", .dialled_ns = dialled}, observed(ns)});
    dialled *= 10;
  }
  return settings;
}

void expect(const std::vector<CalibratedSetting>& settings, const std::string& part, bool is_there = true) {
  const std::string matrix = matrix_of(settings, true);
  EXPECT_EQ(matrix.find(part) != std::string::npos, is_there) << part << " in " << matrix;
}

TEST(Calibration, names_the_values_that_are_not_read_back) {
  expect(calibrated(10, {1010, 10e3, 100e3}), "| L | 1 us to 100 us |");
  expect(calibrated(10, {1010, 10e3, 150e3}), "| L | 1 us to 10 us; not 100 us |");
  expect(calibrated(10, {2000, 10e3, 100e3}), "| L | 10 us to 100 us; not 1 us |");
  expect(calibrated(10, {2000, 20e3, 100e3}), "| L | 100 us; not 1 us, 10 us |");
  expect(calibrated(10, {1010, 20e3, 100e3}), "| L | 1 us to 100 us; not 10 us |");
  expect(calibrated(10, {2000, 20e3, 200e3}), "| L | none |");
}

TEST(Calibration, names_values_without_delays_that_count_as_0) {
  const char* const line = "Without delays the observed L is below 0";
  std::vector<CalibratedSetting> settings = calibrated(0, {900, 9.9e3, 99.9e3});
  settings[0].result.latency.is_below_zero = true;
  expect(settings, line);
  expect(calibrated(10, {1010, 10e3, 100e3}), line, false);
}

}  // namespace
}  // namespace headway::tools
