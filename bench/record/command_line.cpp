// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <headway/base/error.hpp>
#include <iostream>
#include <limits>
#include <numeric>

namespace headway::bench {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string_view allowed) {
  throw SettingError(fmt::format("{}: '{}' is not allowed; allowed is {}", what, text, allowed));
}

template <class Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Insertions, deletions, replacements from `a` to `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The error that CLI11 found, in words that name the allowed values.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what();
  const auto extras = app.remaining(true);
  const std::string extra = extras.empty() ? std::string() : extras.front();
  std::vector<std::string> options;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_snames()) options.push_back("-" + name);
    for (const auto& name : option->get_lnames()) options.push_back("--" + name);
  }
  if (!extra.starts_with("-")) return fmt::format("'{}' was not expected here", extra);
  const std::string name = extra.substr(0, extra.find('='));
  const std::string guess = nearest(name, options);
  return fmt::format("unknown option '{}'{}; allowed are {}", name,
                     guess.empty() ? "" : fmt::format(", did you mean '{}'?", guess), fmt::join(options, ", "));
}

}  // namespace

std::uint64_t parse_count(std::string_view what, std::string_view text, std::uint64_t min, std::uint64_t max) {
  const auto fail = [&] { refuse(what, text, fmt::format("a whole number from {} to {}", min, max)); };
  std::uint64_t count = 0;
  if (!read_whole(text, count)) {
    double value = 0;
    if (const auto caret = text.find('^'); caret != std::string_view::npos) {
      double base = 0, exponent = 0;
      if (!read_whole(text.substr(0, caret), base) || !read_whole(text.substr(caret + 1), exponent)) fail();
      value = std::pow(base, exponent);
    } else if (!read_whole(text, value)) {
      fail();
    }
    if (!(value >= 0) || value >= 0x1p63 || value != std::floor(value)) fail();
    count = std::uint64_t(value);
  }
  if (count < min || count > max) fail();
  return count;
}

double parse_number(std::string_view what, std::string_view text, double min, double max) {
  double value = 0;
  if (!read_whole(text, value) || !(value >= min) || !(value <= max)) {
    refuse(what, text, fmt::format("a number from {} to {}", min, max));
  }
  return value;
}

double parse_fraction(std::string_view what, std::string_view text, bool zero) {
  double value = 0;
  if (!read_whole(text, value) || !(value >= 0) || !(value <= 1) || (value == 0 && !zero)) {
    refuse(what, text, zero ? "a number from 0 to 1" : "a number above 0 and at most 1");
  }
  return value;
}

std::chrono::nanoseconds parse_time(std::string_view what, std::string_view text) {
  if (text == "none") return std::chrono::nanoseconds::max();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, std::size_t(text.data() + text.size() - end));
  double scale = 0;
  if (unit == "s") scale = 1e9;
  if (unit == "ms") scale = 1e6;
  if (unit == "us") scale = 1e3;
  if (unit == "ns") scale = 1;
  if (error != std::errc() || scale == 0 || !(number >= 0) || number * scale > 1e18) {
    refuse(what, text, "a time such as 100us, 10ms or 1s, or none");
  }
  return std::chrono::nanoseconds(std::int64_t(number * scale));
}

std::vector<std::string> parse_list(std::string_view what, std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) refuse(what, text, "a list such as A,B without empty parts");
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string nearest(std::string_view text, std::span<const std::string> allowed) {
  std::size_t best = std::max<std::size_t>(2, text.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : allowed) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best && distance < std::max(text.size(), candidate.size())) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string parse_choice(std::string_view what, std::string_view text, std::span<const std::string> allowed) {
  if (std::ranges::find(allowed, text) != allowed.end()) return std::string(text);
  const std::string guess = nearest(text, allowed);
  refuse(
      what, text,
      fmt::format("{}{}", fmt::join(allowed, ", "), guess.empty() ? "" : fmt::format(" (did you mean '{}'?)", guess)));
}

struct CommandLine::Parser : CLI::App {
  using App::App;
};

CommandLine::CommandLine(const std::string& help, const std::string& name)
    : parser_(std::make_unique<Parser>(help, name)) {}

CommandLine::~CommandLine() = default;

void CommandLine::add_value(const std::string& name, const std::string& value_name, const std::string& help,
                            Store store) {
  const std::string shown = name.substr(name.rfind(',') + 1);
  const auto checked = [store = std::move(store), shown](const std::string& text) {
    try {
      store(text);
    } catch (const SettingError& error) {
      if (std::string_view(error.what()).starts_with(shown)) throw;
      throw SettingError(fmt::format("{}: {}", shown, error.what()));
    }
  };
  parser_->add_option_function<std::string>(name, checked, help)->type_name(value_name);
}

void CommandLine::add_text(const std::string& name, const std::string& value_name, const std::string& help,
                           std::string& text) {
  add_value(name, value_name, help, [&text](const std::string& given) { text = given; });
}

void CommandLine::add_number(const std::string& name, const std::string& value_name, const std::string& help,
                             double& number, double min, double max) {
  add_value(name, value_name, help,
            [&number, name, min, max](const std::string& text) { number = parse_number(name, text, min, max); });
}

void CommandLine::add_fraction(const std::string& name, const std::string& value_name, const std::string& help,
                               double& fraction, bool zero) {
  add_value(name, value_name, help,
            [&fraction, name, zero](const std::string& text) { fraction = parse_fraction(name, text, zero); });
}

void CommandLine::add_choice(const std::string& name, const std::string& value_name, const std::string& help,
                             std::string& choice, std::span<const std::string> allowed) {
  add_value(name, value_name, help,
            [&choice, name, allowed](const std::string& text) { choice = parse_choice(name, text, allowed); });
}

void CommandLine::add_json(std::string& file) {
  add_text("--json", "FILE", "write the record to FILE, or - for standard output", file);
}

void CommandLine::add_flag(const std::string& name, const std::string& help, bool& flag) {
  parser_->add_flag(name, flag, help);
}

void CommandLine::add_flag(const std::string& name, const std::string& help, std::function<void()> set) {
  parser_->add_flag_callback(name, std::move(set), help);
}

void CommandLine::add_positional(const std::string& name, const std::string& help, const Store& store, bool needed) {
  parser_->add_option_function<std::string>(name, store, help)->required(needed);
}

void CommandLine::add_rest(const std::string& name, const std::string& help, std::vector<std::string>& rest) {
  parser_->add_option(name, rest, help)->required();
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv, const std::function<void()>& complete) {
  try {
    parser_->parse(argc, argv);
    if (complete) complete();
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << parser_->help() << std::flush;
    return 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << fmt::format("{}: {}\n", name(), explain(*parser_, error));
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", name(), error.what());
  }
  return exit_status::unusable_arguments;
}

const std::string& CommandLine::name() const { return parser_->get_name(); }

bool CommandLine::given(const std::string& option) const { return parser_->count(option) > 0; }

bool CommandLine::takes_value(const std::string& option) const {
  const CLI::Option* const found = parser_->get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_max() > 0;
}

}  // namespace headway::bench
