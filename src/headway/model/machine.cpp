// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/model/machine.hpp>
#include <headway/model/machine_texts.hpp>
#include <iterator>
#include <map>
#include <sstream>

namespace headway::model {

namespace {

constexpr std::size_t file_bytes_max = 64 << 10, cores_max = 1'000'000;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit times_of_byte[] = {{"ns/B", 1}, {"us/B", 1e3}};
constexpr Unit bandwidths[] = {{"MB/s", 1}, {"GB/s", 1e3}};

/// A number with a unit: allowed values in the first unit.
struct Quantity {
  std::string_view key;
  std::span<const Unit> units;
  double low, high;
};
constexpr Quantity quantities[] = {
    {"alpha", times, 0, 1e9}, {"beta", times_of_byte, 0, 1e6},      {"o", times, 0, 1e9}, {"g", times, 0, 1e9},
    {"L", times, 0, 1e9},     {"bandwidth", bandwidths, 1e-3, 1e9},
};
constexpr std::string_view all_keys = "name, title, source, alpha, beta, o, g, L, bandwidth, cores";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// Reads one file.
class Reader {
 public:
  Reader(std::string_view file, std::string_view text) : file_(file) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(++number, text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    lines_ = number;
  }

  Machine machine() {
    Machine machine;
    machine.name = required("name");
    if (!is_name(machine.name)) refuse("name", "letters, digits, '-' and '_'");
    machine.source = required("source");
    if (has("title")) machine.title = values_.at("title").text;
    if (are_all_or_none({"alpha", "beta"})) machine.alpha_beta = {quantity("alpha"), quantity("beta")};
    if (are_all_or_none({"o", "g", "L", "bandwidth"})) {
      const double ns_per_byte = 1e3 / quantity("bandwidth");
      machine.loggp = {quantity("L"), quantity("o"), quantity("g"), ns_per_byte};
    }
    if (!machine.alpha_beta && !machine.loggp) refuse_missing("alpha and beta, or o, g, L and bandwidth");
    if (has("cores")) machine.cores = cores();
    return machine;
  }

 private:
  struct Value {
    std::string text;
    std::size_t line;
  };

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw SettingError(fmt::format("{}:{}: {}", file_, line, what));
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view allowed) const {
    const Value& value = values_.find(key)->second;
    fail(value.line, fmt::format("{} = '{}': allowed is {}", key, value.text, allowed));
  }
  [[noreturn]] void refuse_missing(std::string_view what) const {
    fail(std::max<std::size_t>(lines_, 1), fmt::format("the file needs {}", what));
  }

  void read_line(std::size_t number, std::string_view line) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) fail(number, fmt::format("'{}': allowed is KEY = VALUE", line));
    const std::string key(trimmed(line.substr(0, equals)));
    const std::string_view value = trimmed(line.substr(equals + 1));
    const bool is_text = key == "name" || key == "title" || key == "source" || key == "cores";
    if (!is_text && std::ranges::find(quantities, key, &Quantity::key) == std::end(quantities)) {
      fail(number, fmt::format("key '{}' is unknown; allowed are {}", key, all_keys));
    }
    if (value.empty()) fail(number, fmt::format("{} has no value", key));
    const auto [place, is_new] = values_.try_emplace(key, Value{std::string(value), number});
    if (!is_new) fail(number, fmt::format("{} comes twice, first in line {}", key, place->second.line));
  }

  bool has(std::string_view key) const { return values_.contains(key); }

  std::string required(std::string_view key) const {
    if (!has(key)) refuse_missing(key);
    return values_.find(key)->second.text;
  }

  bool are_all_or_none(std::initializer_list<std::string_view> keys) const {
    const auto given = std::ranges::count_if(keys, [&](std::string_view key) { return has(key); });
    if (given == 0) return false;
    for (const std::string_view key : keys) {
      if (!has(key)) refuse_missing(fmt::format("{}, as it has others of {}", key, fmt::join(keys, ", ")));
    }
    return true;
  }

  double quantity(std::string_view key) const {
    const Quantity& q = *std::ranges::find(quantities, key, &Quantity::key);
    const std::string& text = values_.find(key)->second.text;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view name = trimmed({end, text.data() + text.size()});
    const auto unit = std::ranges::find(q.units, name, &Unit::name);
    const double value = unit == q.units.end() ? 0 : number * unit->factor;
    if (error != std::errc() || unit == q.units.end() || !(value >= q.low && value <= q.high)) {
      std::vector<std::string_view> names;
      for (const Unit& allowed : q.units) names.push_back(allowed.name);
      refuse(key, fmt::format("{} {} to {:.0f} {}, with a unit of {}", q.low, names[0], q.high, names[0],
                              fmt::join(names, ", ")));
    }
    return value;
  }

  std::size_t cores() const {
    const std::string& text = values_.find("cores")->second.text;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > cores_max) {
      refuse("cores", fmt::format("1 to {}", cores_max));
    }
    return number;
  }

  std::string_view file_;
  std::size_t lines_ = 0;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace

AlphaBeta costs_of(const Machine& machine) {
  if (machine.alpha_beta) return *machine.alpha_beta;
  if (!machine.loggp) throw UsageError("costs_of() needs a machine with alpha and beta, or with LogGP");
  return alpha_beta_of(*machine.loggp);
}

Machine parse_machine(std::string_view file, std::string_view text) { return Reader(file, text).machine(); }

Machine read_machine(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) base::throw_errno(fmt::format("machine file '{}': open", path).c_str());
  std::string text(file_bytes_max + 1, '\0');
  in.read(text.data(), std::ptrdiff_t(text.size()));
  if (in.bad()) base::throw_errno(fmt::format("machine file '{}': read", path).c_str());
  text.resize(std::size_t(in.gcount()));
  if (text.size() > file_bytes_max) {
    throw SettingError(fmt::format("{}:1: the file is longer than {} bytes", path, file_bytes_max));
  }
  return parse_machine(path, text);
}

std::vector<Machine> known_machines() {
  std::vector<Machine> machines;
  for (const MachineText& known : machine_texts()) machines.push_back(parse_machine(known.file, known.text));
  std::ranges::sort(machines, {}, &Machine::name);
  return machines;
}

Machine find_machine(const std::string& name) {
  if (name.find_first_of("/.") != std::string::npos) return read_machine(name);
  std::vector<std::string> names;
  for (Machine& machine : known_machines()) {
    if (machine.name == name) return std::move(machine);
    names.push_back(machine.name);
  }
  throw SettingError(
      fmt::format("machine '{}' is unknown; allowed are {}, and files, as ./my.machine", name, fmt::join(names, ", ")));
}

}  // namespace headway::model
