// SPDX-License-Identifier: BSD-3-Clause
/// How a message is declared to an aggregator: `--type` of the benchmarks' programs and of the command.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <message/message.hpp>
#include <string>
#include <vector>

namespace headway::bench {

inline constexpr std::size_t message_bytes_max = std::size_t(1) << 30;

/// fixed: a struct of words, of one of FixedSizes; bytes: a span, read in place; vector, string: owning ones, handed to
/// the handler; struct: of a vector and a string, which is serialized.
inline const std::vector<std::string> message_types = {"fixed", "bytes", "vector", "string", "struct"};
inline constexpr const char* message_types_help =
    "what a message is: fixed, bytes (a span, read in place), vector, string, struct (of both) [fixed where the size "
    "is]";

/// What "" stands for.
inline std::string type_or_default(const std::string& type, std::size_t bytes) {
  return type.empty() ? (is_fixed_size(bytes) ? "fixed" : "bytes") : type;
}

/// Throws SettingError for what cannot be together. `threshold` and `cutoff` are at most 0 where they are derived.
inline void check_type(const std::string& type, std::size_t bytes, double threshold, double cutoff) {
  const bool fixed = type_or_default(type, bytes) == "fixed";
  if (fixed && !is_fixed_size(bytes)) {
    std::string sizes;
    [&]<std::size_t... Sizes>(std::index_sequence<Sizes...>) {
      ((sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", Sizes)), ...);
    }
    (FixedSizes{});
    throw SettingError(
        fmt::format("--type: 'fixed' is not allowed with {}; allowed are {}", base::counted(bytes, "byte"), sizes));
  }
  if (!fixed && threshold > 0 && cutoff > 0 && threshold + cutoff > 1) {
    throw SettingError(fmt::format(
        "--threshold {} and --cutoff {} are not allowed together; for messages of variable size their sum is at most 1",
        threshold, cutoff));
  }
}

}  // namespace headway::bench
