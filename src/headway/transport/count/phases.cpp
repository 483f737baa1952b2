// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <headway/transport/count/phases.hpp>
#include <numeric>

namespace headway::count {
namespace {

constexpr const char* name_of_others = "(further phases)";

}  // namespace

std::size_t Phases::find_or_add(std::string_view name) {
  const std::uint32_t parent = open_.empty() ? no_parent : std::uint32_t(open_.back().index);
  name = name.substr(0, sizeof PhaseCounts::name - 1);
  auto find = [&](std::string_view wanted, std::uint32_t in) {
    std::size_t i = 0;
    while (i < phases_.size() && !(phases_[i].parent == in && wanted == phases_[i].name)) ++i;
    return i;
  };
  if (const std::size_t found = find(name, parent); found < phases_.size()) return found;
  if (phases_.size() + 1 >= phases_max) {
    if (const std::size_t found = find(name_of_others, no_parent); found < phases_.size()) return found;
    name = name_of_others;
  }
  PhaseCounts& phase = phases_.emplace_back();
  name.copy(phase.name, sizeof phase.name - 1);
  phase.parent = name == name_of_others ? no_parent : parent;
  sums_.emplace_back();
  return phases_.size() - 1;
}

void Phases::begin(std::string_view name) {
  if (phases_.empty()) hardware_errno_ = simulated_ ? ENOTSUP : hardware_.open();
  const std::size_t index = find_or_add(name);
  open_.push_back({index, split_->sums(), hardware_.read()});
}

void Phases::end() {
  if (open_.empty()) return;
  const Open open = open_.back();
  open_.pop_back();
  PhaseCounts& phase = phases_[open.index];
  ++phase.calls;
  for (const Open& outer : open_) {
    if (outer.index == open.index) return;  // within itself: that time includes this one
  }
  const HardwareCounts hardware = hardware_.read();
  for (std::size_t i = 0; i < hardware_counters; ++i) {
    const bool counts = hardware[i] != not_counted && open.hardware[i] != not_counted;
    phase.hardware[i] = counts ? phase.hardware[i] + (hardware[i] - open.hardware[i]) : not_counted;
  }
  const TimeSplit::Sums& now = split_->sums();
  for (std::size_t i = 0; i < spendings; ++i) sums_[open.index][i] += now[i] - open.sums[i];
}

std::vector<PhaseCounts> Phases::counts(std::uint64_t run_ns) {
  const TimeSplit::Sums& all = split_->sums();
  const std::uint64_t ticks = std::accumulate(all.begin(), all.end(), std::uint64_t(0));
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    for (std::size_t i = 0; i < spendings; ++i) {
      const std::uint64_t sum = sums_[p][i];
      phases_[p].ns[i] = ticks == run_ns ? sum : std::uint64_t(double(run_ns) * (double(sum) / double(ticks)));
    }
  }
  return phases_;
}

}  // namespace headway::count
