// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/model/trace/host_clocks.hpp>

namespace headway::model::trace {

HostClocks::HostClocks(std::size_t hosts) : hosts_(hosts), least_(hosts * hosts, never) {}

void HostClocks::add_frame(std::size_t from, std::size_t to, std::int64_t taken_minus_posted_ns) {
  if (taken_minus_posted_ns < -offset_most || taken_minus_posted_ns > offset_most) return;
  std::int64_t& least = least_[from * hosts_ + to];
  least = std::min(least, taken_minus_posted_ns);
}

/// A spanning tree of the least residuals, as Prim's algorithm grows it.
std::vector<HostClocks::Clock> HostClocks::align(const std::vector<std::int64_t>& assumed_ns) const {
  std::vector<Clock> clocks(hosts_);
  std::vector<bool> done(hosts_);
  for (std::size_t begin = 0; begin < hosts_; ++begin) {
    if (done[begin]) continue;
    clocks[begin].offset_ns = std::clamp(assumed_ns[begin], -offset_most, offset_most);
    if (begin == 0) clocks[begin].residual_ns = 0;
    done[begin] = true;
    const bool known = begin == 0;
    for (;;) {
      std::int64_t best = never;
      std::size_t from = 0, to = 0;
      for (std::size_t a = 0; a < hosts_; ++a) {
        for (std::size_t b = 0; b < hosts_; ++b) {
          if (!done[a] || done[b] || least(a, b) == never || least(b, a) == never) continue;
          if (clocks[a].residual_ns.has_value() != known) continue;
          const std::int64_t residual = (least(a, b) + least(b, a)) / 2;
          if (residual >= best) continue;
          best = residual, from = a, to = b;
        }
      }
      if (best == never) break;
      const std::int64_t offset = clocks[from].offset_ns + (least(from, to) - least(to, from)) / 2;
      clocks[to].offset_ns = std::clamp(offset, -offset_most, offset_most);
      if (known) clocks[to].residual_ns = best;
      done[to] = true;
    }
  }
  return clocks;
}

}  // namespace headway::model::trace
