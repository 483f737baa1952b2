// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <headway/base/type_text.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace headway::base {
namespace {

/// A template of the standard library and the defaults of its last arguments; $0 and $1 are its first two arguments.
struct Defaults {
  std::string_view name;
  std::size_t first;  // index of the first argument with a default
  std::array<std::string_view, 3> arguments;
};
constexpr std::array defaults{
    Defaults{"std::basic_string", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    Defaults{"std::basic_string_view", 1, {"std::char_traits<$0>"}},
    Defaults{"std::span", 1, {"18446744073709551615"}},
    Defaults{"std::vector", 1, {"std::allocator<$0>"}},
    Defaults{"std::deque", 1, {"std::allocator<$0>"}},
    Defaults{"std::list", 1, {"std::allocator<$0>"}},
    Defaults{"std::forward_list", 1, {"std::allocator<$0>"}},
    Defaults{"std::set", 1, {"std::less<$0>", "std::allocator<$0>"}},
    Defaults{"std::multiset", 1, {"std::less<$0>", "std::allocator<$0>"}},
    Defaults{"std::map", 2, {"std::less<$0>", "std::allocator<std::pair<const $0, $1>>"}},
    Defaults{"std::multimap", 2, {"std::less<$0>", "std::allocator<std::pair<const $0, $1>>"}},
    Defaults{"std::unordered_set", 1, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
    Defaults{"std::unordered_multiset", 1, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
    Defaults{
        "std::unordered_map", 2, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<const $0, $1>>"}},
    Defaults{"std::unordered_multimap",
             2,
             {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<const $0, $1>>"}},
    Defaults{"std::unique_ptr", 1, {"std::default_delete<$0>"}},
    Defaults{"std::plus", 0, {"void"}},
    Defaults{"std::minus", 0, {"void"}},
    Defaults{"std::multiplies", 0, {"void"}},
    Defaults{"std::divides", 0, {"void"}},
    Defaults{"std::modulus", 0, {"void"}},
    Defaults{"std::equal_to", 0, {"void"}},
    Defaults{"std::not_equal_to", 0, {"void"}},
    Defaults{"std::less", 0, {"void"}},
    Defaults{"std::less_equal", 0, {"void"}},
    Defaults{"std::greater", 0, {"void"}},
    Defaults{"std::greater_equal", 0, {"void"}},
    Defaults{"std::logical_and", 0, {"void"}},
    Defaults{"std::logical_or", 0, {"void"}},
    Defaults{"std::bit_and", 0, {"void"}},
    Defaults{"std::bit_or", 0, {"void"}},
    Defaults{"std::bit_xor", 0, {"void"}},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> short_names{{
    {"std::basic_string<char>", "std::string"},
    {"std::basic_string<wchar_t>", "std::wstring"},
    {"std::basic_string<char8_t>", "std::u8string"},
    {"std::basic_string<char16_t>", "std::u16string"},
    {"std::basic_string<char32_t>", "std::u32string"},
    {"std::basic_string_view<char>", "std::string_view"},
    {"std::basic_string_view<char16_t>", "std::u16string_view"},
    {"std::basic_string_view<char32_t>", "std::u32string_view"},
}};

/// Longer names first, because they contain shorter ones.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> integers{{
    {"long long unsigned int", "unsigned long long"},
    {"long unsigned int", "unsigned long"},
    {"short unsigned int", "unsigned short"},
    {"long long int", "long long"},
    {"long int", "long"},
    {"short int", "short"},
}};

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':'; }

/// The position of the bracket that closes the one at `open`.
std::optional<std::size_t> closing(std::string_view text, std::size_t open) {
  std::string expected;
  for (std::size_t at = open; at < text.size(); ++at) {
    switch (text[at]) {
      case '<': expected += '>'; break;
      case '(': expected += ')'; break;
      case '[': expected += ']'; break;
      case '{': expected += '}'; break;
      case '>':
      case ')':
      case ']':
      case '}':
        if (expected.empty() || expected.back() != text[at]) return std::nullopt;
        expected.pop_back();
        if (expected.empty()) return at;
        break;
      default: break;
    }
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The parts between commas outside of brackets.
std::optional<std::vector<std::string_view>> split(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (std::string_view("<([{").find(list[at]) != std::string_view::npos) {
      const std::optional<std::size_t> end = closing(list, at);
      if (!end) return std::nullopt;
      at = *end;
    } else if (list[at] == ',') {
      parts.push_back(trimmed(list.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  parts.push_back(trimmed(list.substr(begin)));
  return parts;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result(text);
  for (std::size_t at = 0; (at = result.find(what, at)) != std::string::npos; at += by.size())
    result.replace(at, what.size(), by);
  return result;
}

/// Const pointers have "const" behind the star.
bool is_default(std::string_view pattern, const std::vector<std::string>& arguments, std::string_view given) {
  const std::string second = arguments.size() > 1 ? arguments[1] : "";
  const auto filled = [&](std::string_view with) { return replaced(replaced(with, "$0", arguments[0]), "$1", second); };
  return given == filled(pattern) || given == filled(replaced(pattern, "const $0", "$0 const")) ||
         given == filled(replaced(pattern, "const $0", "$0const"));
}

std::string template_of(std::string_view name, std::vector<std::string> arguments) {
  const auto known = std::ranges::find(defaults, name, &Defaults::name);
  if (known != defaults.end()) {
    while (arguments.size() > known->first) {
      const std::size_t number = arguments.size() - 1 - known->first;
      if (number >= known->arguments.size() || known->arguments[number].empty() ||
          !is_default(known->arguments[number], arguments, arguments.back()))
        break;
      arguments.pop_back();
    }
  }
  std::string text(name);
  text += '<';
  for (std::size_t i = 0; i < arguments.size(); ++i) text += (i == 0 ? "" : ", ") + arguments[i];
  text += '>';
  const auto shorter =
      std::ranges::find(short_names, std::string_view(text), &std::pair<std::string_view, std::string_view>::first);
  return shorter == short_names.end() ? text : std::string(shorter->second);
}

std::string integers_in(std::string_view text) {
  std::string result(text);
  for (const auto& [compilers, programs] : integers) {
    for (std::size_t at = 0; (at = result.find(compilers, at)) != std::string::npos;) {
      const std::size_t end = at + compilers.size();
      const bool is_word =
          (at == 0 || !is_of_name(result[at - 1])) && (end == result.size() || !is_of_name(result[end]));
      if (is_word) result.replace(at, compilers.size(), programs);
      at += is_word ? programs.size() : 1;
    }
  }
  return result;
}

/// Empty if brackets do not match.
std::optional<std::string> rewritten(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && is_of_name(text[at])) ++at;
    const std::string name = replaced(text.substr(begin, at - begin), "std::__cxx11::", "std::");
    const bool is_template =
        at < text.size() && text[at] == '<' && !name.empty() && !name.ends_with(':') && !name.ends_with("operator");
    if (!is_template) {
      result += name;
      if (at < text.size()) result += text[at++];
      continue;
    }
    const std::optional<std::size_t> end = closing(text, at);
    const auto given = end ? split(text.substr(at + 1, *end - at - 1)) : std::nullopt;
    if (!given) return std::nullopt;
    std::vector<std::string> arguments;
    for (const std::string_view one : *given) {
      std::optional<std::string> argument = rewritten(one);
      if (!argument) return std::nullopt;
      arguments.push_back(std::move(*argument));
    }
    result += template_of(name, std::move(arguments));
    at = *end + 1;
  }
  return integers_in(result);
}

}  // namespace

std::string short_type_names(std::string_view types) {
  std::optional<std::string> text = rewritten(types);
  return text ? std::move(*text) : std::string(types);
}

}  // namespace headway::base
