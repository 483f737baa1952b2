// SPDX-License-Identifier: BSD-3-Clause
/// Command lines: a refused value gets one line with its name, its text and the allowed values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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

/// The command line of a program. Variables that options are stored to must outlive parse().
class CommandLine {
 public:
  using Store = std::function<void(const std::string&)>;

  /// `help` describes the program `name`.
  CommandLine(const std::string& help, const std::string& name);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // --- options; `name` is "--name", for add_value() also "-n,--name"

  /// Adds `--name VALUE` and gives its text to `store`; a SettingError from there ends parsing, with the option's name.
  void add_value(const std::string& name, const std::string& value_name, const std::string& help, Store store);
  void add_text(const std::string& name, const std::string& value_name, const std::string& help, std::string& text);
  template <class Number>
  void add_count(const std::string& name, const std::string& value_name, const std::string& help, Number& count,
                 std::uint64_t min, std::uint64_t max) {
    add_value(name, value_name, help,
              [&count, name, min, max](const std::string& text) { count = Number(parse_count(name, text, min, max)); });
  }
  void add_number(const std::string& name, const std::string& value_name, const std::string& help, double& number,
                  double min, double max);
  /// From 0 to 1; 0 itself only where `zero` says so.
  void add_fraction(const std::string& name, const std::string& value_name, const std::string& help, double& fraction,
                    bool zero);
  /// `allowed` must outlive parse().
  void add_choice(const std::string& name, const std::string& value_name, const std::string& help, std::string& choice,
                  std::span<const std::string> allowed);
  /// `--json FILE`, where the record goes.
  void add_json(std::string& file);
  void add_flag(const std::string& name, const std::string& help, bool& flag);
  void add_flag(const std::string& name, const std::string& help, std::function<void()> set);

  // --- what no option takes

  void add_positional(const std::string& name, const std::string& help, const Store& store, bool needed = false);
  /// All that follow; one is needed.
  void add_rest(const std::string& name, const std::string& help, std::vector<std::string>& rest);

  /// Parses, then calls `complete`, which may throw SettingError too. Returns the exit status to end with (0 after
  /// --help, 2 after an error, which is on standard error in one line), or nothing where the program goes on.
  std::optional<int> parse(int argc, const char* const* argv, const std::function<void()>& complete = nullptr);

  const std::string& name() const;
  /// Whether parse() found the option.
  bool given(const std::string& option) const;
  /// Whether the option is one with a value.
  bool takes_value(const std::string& option) const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace headway::bench
