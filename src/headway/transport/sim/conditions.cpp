// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <headway/base/error.hpp>
#include <headway/base/nanoseconds.hpp>
#include <headway/transport/sim/conditions.hpp>
#include <optional>

namespace headway::sim {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0) || number > 1e15) return std::nullopt;
  return number;
}

constexpr std::string_view allowed =
    "a list of L, o, g, G, delay=TIME (such as 2us), refuse=0...0.9, past-caches=0...1, in-place=0...1, jitter=FACTOR, "
    "compute=FACTOR, inbox=FRAMES, per-process=PES, per-host=PES[:PES...], slow=PE:FACTOR, stop=PE@TIME[+TIME]";

class Parser {
 public:
  Parser(Conditions& conditions, std::string_view what, std::string_view text, std::size_t pes)
      : conditions_(&conditions), what_(what), text_(text), pes_(pes) {}

  void parse() {
    for (std::string_view rest = text_; !rest.empty();) {
      const std::size_t comma = rest.find(',');
      item_ = rest.substr(0, comma);
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
      const std::size_t equals = item_.find('=');
      if (equals == item_.npos) refuse(allowed);
      take(item_.substr(0, equals), item_.substr(equals + 1));
    }
  }

 private:
  void take(std::string_view key, std::string_view value) {
    if (key == "L") {
      conditions_->latency_ns = std::int64_t(time(value));
    } else if (key == "o") {
      conditions_->overhead_ns = std::int64_t(time(value));
    } else if (key == "g") {
      conditions_->gap_ns = std::int64_t(time(value));
    } else if (key == "G") {
      conditions_->gap_per_byte_ns = time(value);
    } else if (key == "delay") {
      conditions_->delay_ns_max = std::int64_t(time(value));
    } else if (key == "refuse") {
      conditions_->refuse = number(value, 0, 0.9);
    } else if (key == "past-caches") {
      conditions_->past_caches = number(value, 0, 1);
    } else if (key == "in-place") {
      conditions_->in_place = number(value, 0, 1);
    } else if (key == "jitter") {
      conditions_->jitter = number(value, 0, 1e6);
    } else if (key == "compute") {
      conditions_->compute = number(value, 0, 1e6);
    } else if (key == "inbox") {
      conditions_->inbox_frames = whole(value, 1, 1e9);
    } else if (key == "per-process") {
      conditions_->pes_per_process = whole(value, 1, 1e9);
    } else if (key == "per-host") {
      take_hosts(value);
    } else if (key == "slow") {
      const auto [pe, factor] = split(value, ':');
      conditions_->slow.push_back({pe_number(pe), number(factor, 1, 1e6)});
    } else if (key == "stop") {
      const auto [pe, times] = split(value, '@');
      const std::size_t plus = times.find('+');
      const auto at = std::int64_t(time(times.substr(0, plus)));
      conditions_->stops.push_back(
          {pe_number(pe), at, plus == times.npos ? forever : std::int64_t(time(times.substr(plus + 1)))});
    } else {
      refuse(allowed);
    }
  }

  void take_hosts(std::string_view value) {
    conditions_->pes_per_host.clear();
    for (std::size_t colon = 0; colon != value.npos; value.remove_prefix(colon + 1)) {
      colon = value.find(':');
      conditions_->pes_per_host.push_back(whole(value.substr(0, colon), 1, 1e9));
      if (colon == value.npos) return;
    }
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw SettingError(fmt::format("{}={}: '{}': allowed is {}", what_, text_, item_, why));
  }
  double time(std::string_view text) const {
    const auto ns = base::parse_nanoseconds(text);
    if (!ns) refuse("a time such as 200ns, 2us or 1ms");
    return *ns;
  }
  double number(std::string_view text, double low, double high) const {
    const auto value = parse_number(text);
    if (!value || *value < low || *value > high) refuse(fmt::format("a number from {} to {}", low, high));
    return *value;
  }
  std::size_t whole(std::string_view text, double low, double high) const {
    const auto value = parse_number(text);
    if (!value || *value < low || *value > high || *value != std::floor(*value)) {
      refuse(fmt::format("a whole number from {} to {}", low, high));
    }
    return std::size_t(*value);
  }
  std::size_t pe_number(std::string_view text) const {
    const auto value = parse_number(text);
    if (!value || *value >= double(pes_) || *value != double(std::size_t(*value))) {
      refuse(fmt::format("a PE from 0 to {}", pes_ - 1));
    }
    return std::size_t(*value);
  }
  std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) const {
    const std::size_t at = text.find(separator);
    if (at == text.npos) refuse(allowed);
    return {text.substr(0, at), text.substr(at + 1)};
  }

  Conditions* conditions_;
  std::string_view what_, text_, item_;
  std::size_t pes_;
};

}  // namespace

void Conditions::parse(std::string_view what, std::string_view text, std::size_t pes) {
  Parser(*this, what, text, pes).parse();
}

std::vector<std::size_t> Conditions::host_firsts(std::size_t pes) const {
  std::vector<std::size_t> firsts = {0};
  for (std::size_t host = 0, next = 0; !pes_per_host.empty(); ++host) {
    next += pes_per_host[host % pes_per_host.size()];
    if (next >= pes) break;
    firsts.push_back(next);
  }
  return firsts;
}

Conditions random_conditions(Random& random, std::size_t pes) {
  Conditions c;
  c.latency_ns = std::int64_t(random.size(0, 20'000));
  c.overhead_ns = std::int64_t(random.size(0, 2'000));
  c.gap_ns = random.one_in(2) ? 0 : std::int64_t(random.size(0, 2'000));
  c.gap_per_byte_ns = random.one_in(2) ? 0 : random.fraction();
  c.delay_ns_max = random.one_in(3) ? 0 : std::int64_t(random.size(0, 1'000'000));
  c.refuse = random.one_in(2) ? 0 : random.fraction() * random.fraction() * 0.9;
  c.jitter = random.one_in(3) ? 0 : double(random.size(0, 20));
  c.inbox_frames = random.one_in(2) ? 1024 : random.size(1, 64);
  c.by_value_bytes_max =
      random.one_in(2) ? transport::by_value_bytes_most : random.size(0, transport::by_value_bytes_most);
  while (random.one_in(3)) {
    const Conditions::Slow slow{random.below(pes), double(random.size(2, 1'000))};
    if (std::ranges::count(c.slow, slow.pe, &Conditions::Slow::pe) == 0) c.slow.push_back(slow);
  }
  while (random.one_in(3)) {
    c.stops.push_back(
        {random.below(pes), std::int64_t(random.size(0, 1'000'000)), std::int64_t(random.size(0, 10'000'000))});
  }
  c.past_caches = random.one_in(2) ? 0 : random.fraction();
  c.in_place = random.one_in(2) ? 1 : random.fraction();
  return c;
}

}  // namespace headway::sim
