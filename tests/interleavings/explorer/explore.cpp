// SPDX-License-Identifier: BSD-3-Clause
#include "explore.hpp"

#include <fmt/format.h>

#include <chrono>

#include "execution.hpp"

namespace headway::explore {
namespace {

/// The execution of these choices once more, with its trace.
std::string trace_of(Options options, const std::vector<unsigned>& choices,
                     const std::function<std::unique_ptr<Program>()>& make) {
  Search search(options.preemptions_max);
  search.repeat(choices);
  search.restart();
  Execution execution(options, search);
  execution.run(make, true);
  return fmt::format("{}  choices: {{{}}}\n", execution.trace(), fmt::join(choices, ", "));
}

}  // namespace

Result explore(const Options& options, const std::function<std::unique_ptr<Program>()>& make) {
  const auto start = std::chrono::steady_clock::now();
  Search search(options.preemptions_max);
  Execution execution(options, search);
  Result result;
  if (!options.repeat.empty()) search.repeat(options.repeat);
  do {
    search.restart();
    const Execution::End end = execution.run(make, false);
    ++(end == Execution::End::complete ? result.executions : result.cut_short);
    result.steps += execution.steps();
    result.deaths += end == Execution::End::complete && execution.anybody_died() ? 1 : 0;
    if (!execution.failure().empty()) {
      result.failure = execution.failure();
      result.choices = search.choices();
      result.trace = trace_of(options, result.choices, make);
    }
    result.complete = options.repeat.empty() && result.failure.empty() && !search.advance();
  } while (!result.complete && result.failure.empty() && options.repeat.empty() &&
           result.executions + result.cut_short < options.executions_max);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void check(bool condition, std::string_view what) {
  if (!condition) Execution::current().fail(std::string(what));
}

bool wait_for_news() { return Execution::current().wait_for_news(); }

bool died(unsigned thread) { return Execution::current().died(thread); }

}  // namespace headway::explore
