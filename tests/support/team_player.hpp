// SPDX-License-Identifier: BSD-3-Clause
/// The actions of team members, each in an order of its own, and the results of a serial program for the same values.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/pe.hpp>
#include <headway/am/task.hpp>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <headway/collective/team.hpp>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <support/team_script.hpp>
#include <vector>

namespace headway::testing {

/// As values are added along the tree, in the order of ranks.
inline double sum_in_order(const Step& step, std::size_t rank, std::size_t size, std::size_t i) {
  double sum = step.real(rank, i);
  for (std::size_t bit = 1; (rank & bit) == 0 && rank + bit < size; bit <<= 1) {
    sum += sum_in_order(step, rank + bit, size, i);
  }
  return sum;
}

struct Wrong : std::logic_error {
  Wrong(const Step& step, std::size_t rank, const char* what)
      : std::logic_error(fmt::format("step {} (kind {}, team {}, root {}, count {}), rank {}: {}", step.number % 1000,
                                     int(step.what), step.team, step.root, step.count, rank, what)) {}
};

/// One member's part of a step. Where many elements are checked, some of them are.
inline Task<> run_step(const Team team, const Step step, std::uint64_t& done) {
  const std::size_t rank = team.rank(), size = team.size(), n = step.count;
  const std::size_t stride = n < 100 ? 1 : 997;
  const auto check = [&](bool right, const char* what) {
    if (!right) throw Wrong(step, rank, what);
  };
  const auto elements = [&](std::size_t of_rank) {
    std::vector<std::uint64_t> own(n);
    for (std::size_t i = 0; i < n; ++i) own[i] = step.value(of_rank, i);
    return own;
  };
  const auto check_sums = [&](std::span<const std::uint64_t> got, std::size_t first, std::size_t last,
                              std::uint64_t from) {
    check(got.size() == n, "another number of elements");
    for (std::size_t i = 0; i < n; i += stride) {
      std::uint64_t sum = from;
      for (std::size_t r = first; r < last; ++r) sum += step.value(r, i);
      check(got[i] == sum, "another sum");
    }
  };
  switch (step.what) {
    case Collective::sum:
    case Collective::in_place: {
      std::vector<std::uint64_t> own = elements(rank);
      if (step.what == Collective::in_place) {
        if (step.all)
          co_await allreduce_in_place_async(team, std::span(own), std::plus<>(), {.ordered = step.ordered});
        else
          co_await reduce_in_place_async(team, std::span(own), std::plus<>(), step.root, {.ordered = step.ordered});
        if (step.all || rank == step.root) check_sums(own, 0, size, 0);
      } else if (step.all) {
        check_sums(co_await allreduce_async(team, std::span(own), std::plus<>(), {.ordered = step.ordered}), 0, size,
                   0);
      } else {
        auto future = reduce_async(team, std::span(own), std::plus<>(), step.root, {.ordered = step.ordered});
        std::ranges::fill(own, 1);
        const std::vector<std::uint64_t> sums = co_await future;
        if (rank == step.root) check_sums(sums, 0, size, 0);
        check(rank == step.root || sums.empty(), "a result that is the root's");
      }
      break;
    }
    case Collective::ordered_sum: {
      std::vector<double> own(n);
      for (std::size_t i = 0; i < n; ++i) own[i] = step.real(rank, i);
      auto future = step.all ? allreduce_async(team, std::span(own), std::plus<>(), {.ordered = true})
                             : reduce_async(team, std::span(own), std::plus<>(), step.root, {.ordered = true});
      const std::vector<double> sums = co_await future;
      check(sums.size() == (step.all || rank == step.root ? n : 0), "another number of elements");
      for (std::size_t i = 0; i < sums.size(); i += stride) {
        check(sums[i] == sum_in_order(step, 0, size, i), "not the same to the bit");
      }
      break;
    }
    case Collective::bits: {
      const auto either = [](std::uint32_t a, std::uint32_t b) { return a | b; };
      std::uint32_t expected = 0;
      for (std::size_t r = 0; r < size; ++r) expected |= std::uint32_t(step.value(r, 2));
      check(co_await allreduce_async(team, std::uint32_t(step.value(rank, 2)), either) == expected, "other bits");
      break;
    }
    case Collective::text: {
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      std::string expected;
      for (std::size_t r = 0; r < size; ++r) expected += step.text(r);
      const std::string own = step.text(rank);
      if (step.all) {
        check(co_await allreduce_async(team, own, join, {.ordered = true}) == expected, "another text");
      } else {
        const std::optional<std::string> got = co_await reduce_async(team, own, join, step.root, {.ordered = true});
        check(got.has_value() == (rank == step.root) && got.value_or(expected) == expected, "another text");
      }
      break;
    }
    case Collective::broadcast: {
      const bool is_root = rank == step.root;
      const std::vector<std::uint64_t> own = elements(step.root);
      if (step.all) {
        const auto given = is_root ? std::span(own) : std::span(own).first(0);
        const std::string text = is_root ? step.text(rank) : "not looked at";
        auto elements_to_come = broadcast_async(team, given, step.root);
        auto text_to_come = broadcast_async(team, text, step.root);
        check(co_await elements_to_come == own, "other elements");
        check(co_await text_to_come == step.text(step.root), "another text");
      } else {
        std::vector<std::uint64_t> here = is_root ? own : std::vector<std::uint64_t>(n);
        co_await broadcast_in_place_async(team, std::span(here), step.root);
        check(here == own, "other elements");
      }
      break;
    }
    case Collective::barrier: co_await barrier_async(team); break;
    case Collective::scan: {
      const std::vector<std::uint64_t> own = elements(rank);
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      const std::string text = step.text(rank);
      auto sums_to_come = scan_async(team, std::span(own), std::plus<>());
      auto text_to_come = scan_async(team, text, join);
      std::string expected;
      for (std::size_t r = 0; r <= rank; ++r) expected += step.text(r);
      check_sums(co_await sums_to_come, 0, rank + 1, 0);
      check(co_await text_to_come == expected, "another text");
      break;
    }
    case Collective::exclusive_scan: {
      const std::vector<std::uint64_t> own = elements(rank);
      check_sums(co_await exclusive_scan_async(team, std::span(own), 5, std::plus<>()), 0, rank, 5);
      break;
    }
    case Collective::gather: {
      const auto block = [&](std::size_t r) {
        std::vector<std::uint64_t> values = elements(r);
        values.resize(step.block(r));
        return values;
      };
      if (!step.all && step.ordered) {  // the other direction
        std::vector<std::vector<std::uint64_t>> given;
        for (std::size_t r = 0; rank == step.root && r < size; ++r) given.push_back(block(r));
        check(co_await scatter_async(team, given, step.root) == block(rank), "another block");
        break;
      }
      const std::vector<std::uint64_t> own = block(rank);
      auto blocks_to_come =
          step.all ? all_gather_async(team, std::span(own)) : gather_async(team, std::span(own), step.root);
      const std::vector<std::vector<std::uint64_t>> blocks = co_await blocks_to_come;
      check(blocks.size() == (step.all || rank == step.root ? size : 0), "another number of blocks");
      for (std::size_t r = 0; r < blocks.size(); ++r) check(blocks[r] == block(r), "another block");
      break;
    }
    case Collective::gather_text: {
      if (!step.all && step.ordered) {
        std::vector<std::string> given;
        for (std::size_t r = 0; rank == step.root && r < size; ++r) given.push_back(step.text(r));
        check(co_await scatter_async(team, given, step.root) == step.text(rank), "another text");
        break;
      }
      const std::string own = step.text(rank);
      auto texts_to_come = step.all ? all_gather_async(team, own) : gather_async(team, own, step.root);
      const std::vector<std::string> texts = co_await texts_to_come;
      check(texts.size() == (step.all || rank == step.root ? size : 0), "another number of texts");
      for (std::size_t r = 0; r < texts.size(); ++r) check(texts[r] == step.text(r), "another text");
      break;
    }
    case Collective::exchange: {
      const std::size_t block = n / size;
      const auto value = [&](std::size_t from, std::size_t to, std::size_t i) {
        return step.value(from, to * 100 + i);
      };
      if (step.all) {  // blocks of different lengths
        const auto block_of = [&](std::size_t from, std::size_t to, std::size_t length_from) {
          std::vector<std::uint64_t> values(step.value(length_from, to) % (block + 2));
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(from, to, i);
          return values;
        };
        std::vector<std::vector<std::uint64_t>> given(size);
        if (step.ordered) {
          for (std::size_t r = 0; r < size; ++r) given[r] = block_of(rank, r, 0);
          std::vector<std::uint64_t> expected = block_of(0, rank, 0);
          for (std::size_t r = 1; r < size; ++r) {
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += value(r, rank, i);
          }
          check(co_await reduce_scatter_async(team, given, std::plus<>()) == expected, "another sum");
          break;
        }
        for (std::size_t r = 0; r < size; ++r) given[r] = block_of(rank, r, rank);
        const std::vector<std::vector<std::uint64_t>> blocks = co_await all_to_all_async(team, given);
        check(blocks.size() == size, "another number of blocks");
        for (std::size_t r = 0; r < size; ++r) check(blocks[r] == block_of(r, rank, r), "another block");
        break;
      }
      std::vector<std::uint64_t> own(block * size);
      for (std::size_t at = 0; at < own.size(); ++at) own[at] = value(rank, at / block, at % block);
      const std::vector<std::uint64_t> got = co_await all_to_all_async(team, std::span(own));
      check(got.size() == own.size(), "another number of elements");
      for (std::size_t at = 0; at < got.size(); ++at)
        check(got[at] == value(at / block, rank, at % block), "another block");
      break;
    }
  }
  ++done;
}

/// One PE's part.
class TeamPlayer {
 public:
  TeamPlayer(Pe& pe, const TeamScript& script) : pe_(&pe) {
    for (const TeamLine& line : script.lines) {
      if (line.pes.empty() || std::ranges::count(line.pes, std::size_t(pe.id())) != 0) lines_.push_back({&line, 0, {}});
    }
  }

  /// Takes one of the actions that are to be taken in this phase. False where there is none left. Runs no handlers but
  /// where a call of a collective does.
  bool take_one(Random& random, std::size_t phase) {
    std::vector<Line*> ready;
    for (Line& line : lines_) {
      if (line.next < line.plan->actions.size() && line.plan->actions[line.next].phase <= phase) ready.push_back(&line);
    }
    if (ready.empty()) return false;
    Line& line = *ready[random.below(ready.size())];
    take(line, line.plan->actions[line.next++]);
    return true;
  }

  /// After a quiescence behind which all members had taken the actions of a phase.
  void check_done() const {
    if (done_ != called_) throw std::logic_error(fmt::format("{} of {} collectives are done", done_, called_));
  }

 private:
  struct Line {
    const TeamLine* plan;
    std::size_t next;
    std::vector<std::unique_ptr<Team>> teams;
  };

  void take(Line& line, const TeamAction& action) {
    switch (action.what) {
      case TeamAction::What::make:
        line.teams.push_back(line.plan->pes.empty() ? std::make_unique<Team>(*pe_)
                                                    : std::make_unique<Team>(*pe_, line.plan->pes));
        return;
      case TeamAction::What::call:
        ++called_;
        return spawn(*pe_, run_step(*line.teams[action.team], action.step, done_));
      case TeamAction::What::destroy: return line.teams[action.team].reset();
    }
  }

  Pe* pe_;
  std::vector<Line> lines_;
  std::uint64_t called_ = 0, done_ = 0;
};

}  // namespace headway::testing
