// SPDX-License-Identifier: BSD-3-Clause
/// Teams of random lists of PEs, and what their members call: drawn from a seed. For tests on every transport.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace headway::testing {

enum class Collective {
  sum,
  ordered_sum,
  bits,
  text,
  broadcast,
  barrier,
  scan,
  exclusive_scan,
  gather,
  gather_text,
  exchange,
  in_place
};
inline constexpr std::uint64_t collectives = 12;

/// A call that all members of a team make; drawn from the seed alone.
struct Step {
  Collective what;
  std::size_t team, root, count;
  bool all;  // a reduction for all
  bool ordered;
  std::uint64_t number;

  std::uint64_t value(std::size_t rank, std::size_t i) const { return Random(number * 64 + rank).next() * (2 * i + 1); }
  /// Of wild magnitudes: each order of additions gives another sum.
  double real(std::size_t rank, std::size_t i) const {
    const std::uint64_t v = value(rank, i);
    return double(std::int64_t(v)) * std::exp2(double(v % 60));
  }
  std::string text(std::size_t rank) const { return std::string(value(rank, 0) % 20, char('a' + rank % 26)); }
  std::size_t block(std::size_t rank) const { return value(rank, 1) % (count + 1); }
};

/// What every member of a list does with a team of that list.
struct TeamAction {
  enum class What : std::uint8_t { make, call, destroy };
  What what = What::make;
  std::size_t team = 0;   // of its list, which may have several at once
  std::size_t phase = 0;  // neither before nor after this one
  Step step = {};         // of a call
};

/// All teams of one list. Each member takes all actions, in this order; those of different lists have no order.
struct TeamLine {
  std::vector<std::size_t> pes;  // by rank; empty: Team(pe), of all
  std::vector<TeamAction> actions;

  std::size_t size(std::size_t all) const { return pes.empty() ? all : pes.size(); }
};

struct TeamScriptLimits {
  std::size_t lines_max = 6;
  std::size_t calls_max = 6;         // of a team
  std::size_t elements_max = 40;     // of most calls
  std::size_t many_elements = 5000;  // of one in 20
  std::size_t phases = 1;
};

struct TeamScript {
  std::vector<TeamLine> lines;

  std::size_t calls() const {
    std::size_t calls = 0;
    for (const TeamLine& line : lines) {
      calls += std::size_t(std::ranges::count(line.actions, TeamAction::What::call, &TeamAction::what));
    }
    return calls;
  }
};

/// Half of them are short: lists of equal PEs in another order, or with one more, which a weak hash takes for one.
inline std::vector<std::size_t> draw_list(Random& random, std::size_t pes) {
  static const std::vector<std::vector<std::size_t>> alike{{0},    {1},    {2},    {3},    {2, 3},    {2, 1},
                                                           {1, 2}, {3, 0}, {0, 1}, {1, 0}, {3, 0, 1}, {0, 1, 2}};
  if (random.one_in(2)) {
    const std::vector<std::size_t>& list = alike[random.below(alike.size())];
    if (std::ranges::max(list) < pes) return list;
  }
  std::vector<std::size_t> list(pes);
  std::iota(list.begin(), list.end(), 0);
  for (std::size_t i = pes; i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
  if (!random.one_in(4)) list.resize(random.size(1, pes));
  return list;
}

inline Step draw_step(Random& random, std::size_t members, const TeamScriptLimits& limits) {
  Step step{};
  step.what = Collective(random.below(collectives));
  step.root = random.below(members);
  step.count = random.one_in(20) ? random.size(0, limits.many_elements) : random.size(0, limits.elements_max);
  step.all = random.one_in(2);
  step.ordered = random.one_in(2);
  step.number = random.next() >> 8;
  return step;
}

/// Makes teams of one list, several at once too, calls collectives on them, and destroys them, also before those are
/// over.
inline TeamLine draw_line(Random& random, std::vector<std::size_t> list, std::size_t pes,
                          const TeamScriptLimits& limits) {
  TeamLine line{std::move(list), {}};
  std::vector<std::size_t> calls_left;  // by team
  const std::size_t teams = random.size(1, 5);
  std::size_t phase = 0, destroyed = 0;
  std::vector<bool> is_there;
  const auto add = [&](TeamAction::What what, std::size_t team) {
    if (random.one_in(4) && phase + 1 < limits.phases) ++phase;
    line.actions.push_back({what, team, phase, {}});
  };
  while (destroyed < teams) {
    const std::size_t team = random.below(std::min(is_there.size() + 1, teams));
    if (team == is_there.size()) {
      add(TeamAction::What::make, team);
      is_there.push_back(true);
      calls_left.push_back(random.size(0, limits.calls_max));
    } else if (!is_there[team]) {
      continue;
    } else if (calls_left[team] == 0) {
      add(TeamAction::What::destroy, team);
      is_there[team] = false;
      ++destroyed;
    } else {
      add(TeamAction::What::call, team);
      line.actions.back().step = draw_step(random, line.size(pes), limits);
      line.actions.back().step.team = team;
      --calls_left[team];
    }
  }
  return line;
}

inline TeamScript draw_team_script(Random& random, std::size_t pes, const TeamScriptLimits& limits) {
  TeamScript script;
  for (std::size_t lines = random.size(1, limits.lines_max); lines > 0; --lines) {
    std::vector<std::size_t> list = draw_list(random, pes);
    // Each list of PEs has one line: all its teams are made in one order.
    if (std::ranges::count(script.lines, list, &TeamLine::pes) == 0) {
      script.lines.push_back(draw_line(random, std::move(list), pes, limits));
    }
  }
  if (random.one_in(3)) script.lines.push_back(draw_line(random, {}, pes, limits));
  return script;
}

}  // namespace headway::testing
