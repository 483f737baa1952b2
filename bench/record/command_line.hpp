// SPDX-License-Identifier: BSD-3-Clause
/// Command lines: a refused value gets one line with its name, its text and the allowed values.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headway::bench {

// Each throws SettingError with `what`, the text and the allowed values.

/// "1000000", "1e6", "10^6", "2^20"; within [min, max].
std::uint64_t parse_count(std::string_view what, std::string_view text, std::uint64_t min, std::uint64_t max);

/// A number within [min, max].
double parse_number(std::string_view what, std::string_view text, double min, double max);

/// A number from 0 to 1; 0 itself only where `zero` says so.
double parse_fraction(std::string_view what, std::string_view text, bool zero);

/// "100us", "10ms", "1.5s", "500ns", or "none" for nanoseconds::max().
std::chrono::nanoseconds parse_time(std::string_view what, std::string_view text);

/// "a,b,c" as its parts; no part may be empty.
std::vector<std::string> parse_list(std::string_view what, std::string_view text);

/// `text` if it is one of `allowed`; else an error with the nearest and all of them.
std::string parse_choice(std::string_view what, std::string_view text, std::span<const std::string> allowed);

inline constexpr const char* patient_help =
    "an idle PE waits for full buffers, or --timeout, instead of sending what it has";

/// The entry of `allowed` that `text` was probably meant to be, or empty.
std::string nearest(std::string_view text, std::span<const std::string> allowed);

/// Adds `--name VALUE` and gives its text to `store`; a SettingError from there ends parsing, with the option's name.
CLI::Option* add_value(CLI::App& app, const std::string& name, std::function<void(const std::string&)> store,
                       const std::string& value_name, const std::string& help);

/// Parses. Returns the exit status to end with (0 after --help, 2 after an error, which is on standard error in one
/// line), or nothing where the program goes on.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace headway::bench
