// SPDX-License-Identifier: BSD-3-Clause
/// What tests of interleavings expect of an exploration, and the line they print about it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <explorer/explore.hpp>
#include <string>

namespace headway::explore {

template <class Make>
void expect_no_violation(const std::string& name, const Options& options, Make make) {
  const Result result = explore(options, make);
  EXPECT_EQ(result.failure, "") << name << "\n" << result.trace;
  EXPECT_TRUE(result.complete) << name << ": more than " << options.executions_max << " interleavings";
  EXPECT_EQ(result.deaths > 0, options.mortal != 0) << name;
  fmt::print("| {} | {} | {} | {:.1f} |\n", name, result.executions,
             options.mortal != 0 ? std::to_string(result.deaths) : "", result.seconds);
  std::fflush(stdout);
}

/// A planted bug: some interleaving must show it, as `what`.
template <class Make>
void expect_found(const std::string& name, const std::string& what, const Options& options, Make make) {
  const Result result = explore(options, make);
  EXPECT_NE(result.failure.find(what), std::string::npos) << name << ": found is \"" << result.failure << "\"\n"
                                                          << result.trace;
  fmt::print("| {} | {} | {} |\n", name, result.failure, result.executions);
  std::fflush(stdout);
}

}  // namespace headway::explore
