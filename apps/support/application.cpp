// SPDX-License-Identifier: BSD-3-Clause
#include "application.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <record/time_left.hpp>
#include <utility>

namespace headway::apps {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool Common::is_told() const {
  const AggregatorOptions& of = aggregation;
  return of.topology != derived_topology || of.buffer_bytes != derived_bytes || of.threshold != derived_fraction ||
         of.cutoff != derived_fraction || of.timeout != derived_timeout || !of.flush_when_idle || of.ordered;
}

void add_common_options(bench::CommandLine& app, Common& common) {
  static const std::array<std::string, 4> strategies = {"none", "greedy", "refine", "rotate"};
  common.shows_progress = ::isatty(STDERR_FILENO) == 1;
  bench::add_aggregator_options(app, common.aggregation);
  app.add_choice(
      "--balance", "NAME",
      "between phases, move elements: greedy, refine (as few as will do), rotate (all, to test); or none [none]",
      common.balance, strategies);
  app.add_count("--balance-every", "N", "steps of a phase [1]", common.balance_every, 1, 1 << 30);
  app.add_json(common.json);
}

Progress::Progress(Pe& pe, const Common& common, std::string what, std::uint64_t of)
    : engine_(&pe.engine()),
      shown_(common.shows_progress && pe.id() == 0),
      what_(std::move(what)),
      of_(of),
      begin_(engine_->now()) {}

Progress::~Progress() {
  if (printed_) print("\r\033[K");
}

void Progress::at(std::uint64_t done) {
  if (!shown_) return;
  const std::int64_t now = engine_->now();
  if (now < next_) return;
  next_ = now + 200'000'000;
  const double seconds = double(now - begin_) * 1e-9;
  print(fmt::format("\r{} {} of {}{}\033[K", what_, done, of_, bench::time_left(double(done), double(of_), seconds)));
  printed_ = true;
}

}  // namespace headway::apps
