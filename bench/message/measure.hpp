// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the programs that send numbered messages: a pass that checks every byte, a timed pass, and the record. A
/// Pattern decides which PEs send to which, and which acknowledgements they wait for. It has
///
///     Pattern(pe, arguments)                 collective: makes its aggregators
///     sources()                              the PEs that send to this one
///     on(take)                               take(source, received) is called for each message
///     send(messages)                         sends so many to each PE that it sends to
///     handled(), statistics()                acknowledgements taken since the last start(), and each aggregator's
///     counts start()                                between passes, when nothing is on its way
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <headway/headway.hpp>
#include <map>
#include <message/arguments.hpp>
#include <message/kinds.hpp>
#include <options.hpp>
#include <vector>

namespace headway::bench {

/// Collective. The time from when all are ready to when all has been handled, the longest of any PE.
template <class Pattern>
double timed_pass(Pe& pe, Pattern& pattern, std::uint64_t messages) {
  pattern.start();
  pe.quiesce();
  const std::int64_t begin = pe.engine().now();
  pattern.send(messages);
  pe.quiesce();
  return max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
}

/// Collective. Sends some messages and returns the errors found in every byte of those that came here.
template <class Kind, class Pattern>
std::uint64_t checked_pass(Pe& pe, const Arguments& arguments) {
  const std::uint64_t messages = checked_messages(arguments.messages, arguments.bytes);
  Pattern pattern(pe, arguments);
  std::map<std::size_t, Checker> checkers;
  for (const std::size_t source : pattern.sources()) checkers.try_emplace(source, arguments.bytes, messages, source);
  std::uint64_t strangers = 0;
  pattern.on([&](std::size_t source, typename Kind::Received received) {
    const auto found = checkers.find(source);
    if (found == checkers.end())
      ++strangers;
    else
      Kind::check(found->second, received);
  });
  timed_pass(pe, pattern, messages);
  std::uint64_t errors = strangers + pattern.errors(messages);
  for (const auto& [source, checker] : checkers) errors += checker.errors();
  return errors;
}

/// Collective. Verifies, measures and reports; the status to end with.
template <class Kind, class Pattern>
int measure(Pe& pe, const Arguments& arguments) {
  std::uint64_t errors = checked_pass<Kind, Pattern>(pe, arguments);

  Pattern pattern(pe, arguments);
  Sum sum;
  pattern.on([&sum](std::size_t /*source*/, typename Kind::Received received) { add(sum, Kind::ends(received)); });
  timed_pass(pe, pattern, warming_messages(arguments.messages, arguments.bytes));
  sum = {};
  const std::vector<AggregatorStatistics> before = pattern.statistics();
  const double seconds = timed_pass(pe, pattern, arguments.messages);
  const std::size_t sources = pattern.sources().size();
  errors += pattern.errors(arguments.messages);
  errors += sum != expected_sum(arguments.messages, arguments.bytes) * sources;
  const Json further = [&] {
    if constexpr (requires { pattern.further_fields(pe); })
      return pattern.further_fields(pe);
    else
      return Json::object();
  }();
  return conclude(
      pe, arguments,
      {seconds, before, pattern.statistics(), pattern.options(), arguments.messages * sources, errors, further});
}

/// The program: `Pattern<Kind>` measured with the Kind that the arguments name.
template <template <class> class Pattern>
int main_of(int argc, char** argv, const About& about) {
  Arguments arguments;
  if (const auto status = parse(argc, argv, about, arguments)) return *status;
  // Else malloc adapts its threshold to freed blocks, and earlier allocations decide whether a large message lies in a
  // mapping of its own or somewhere in the heap: with that the same copies take up to 1.1 times as long.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  return run(argc, argv, [&](Pe& pe) {
    if (!are_enough(pe, arguments)) return exit_status::unusable_arguments;
    return with_kind(arguments.type, arguments.bytes,
                     [&]<class Kind>(std::type_identity<Kind>) { return measure<Kind, Pattern<Kind>>(pe, arguments); });
  });
}

}  // namespace headway::bench
