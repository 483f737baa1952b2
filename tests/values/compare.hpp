// SPDX-License-Identifier: BSD-3-Clause
/// Makes calls, many under way at once, and compares their results with those of an oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <headway/am/pe.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calls.hpp"

namespace values {

/// Gives the expected results of calls, for one PE.
class Oracle {
 public:
  Oracle() = default;
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  virtual ~Oracle() = default;
  /// Finds out what these give; all PEs ask for the same ones.
  virtual void find_out(std::span<const Call> calls) = 0;
  /// Describes the error in the outcome of the i-th of them; empty if there is none.
  virtual std::string complaint(std::size_t i, const Bytes& outcome) = 0;
};

struct Options {
  Which which = Which::all;
  std::size_t in_flight = 64;           // so many calls are under way before the first is waited for
  std::optional<std::uint64_t> spoils;  // one PE changes a bit of its outcome of this call
  std::filesystem::path folder;         // of recorded outcomes; empty: none
};
/// From `[--which all|every|large] [--in-flight N] [--spoil NUMBER] [--folder FOLDER]`; else std::invalid_argument.
Options options_of(int argc, char** argv);

/// Makes all calls on this PE. Throws std::runtime_error where one differs, which ends the run.
void compare(headway::Pe& pe, const Options& options, Oracle& oracle);

/// Of a PE's outcomes what recorded.cpp compares. Sums that round have their length alone.
std::uint64_t digest(const Call& call, std::span<const std::byte> outcome);
std::filesystem::path record_of(const std::filesystem::path& folder, Which which, std::size_t pes, std::size_t pe);

}  // namespace values
