// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/base/clock.hpp>
#include <headway/base/random.hpp>
#include <utility>

#include "watch_source.hpp"

namespace headway::tools {
namespace {

// Each PE's phase is read so often, with many PEs less often: a read takes some 100 ns of this process.
constexpr std::int64_t samples_per_s_most = 100, samples_per_s_least = 20, samples_of_all_pes_per_s = 40'000;
constexpr std::int64_t a_second = 1'000'000'000;
constexpr std::int64_t requests_per_interval = 4, request_interval_ns_max = a_second / 4;

class HereSource : public WatchSource {
 public:
  HereSource(std::vector<std::unique_ptr<WatchedRun>> runs, std::int64_t interval_ns)
      : runs_(std::move(runs)),
        interval_ns_(interval_ns),
        request_ns_(std::min(interval_ns / requests_per_interval, request_interval_ns_max)),
        begin_(base::monotonic_ns()),
        asked_at_(begin_),
        shown_at_(begin_) {
    std::int64_t pes = 0;
    for (const auto& run : runs_) {
      pes += std::int64_t(run->pes());
      run->ask();
    }
    const std::int64_t samples_per_s = samples_of_all_pes_per_s / std::max<std::int64_t>(pes, 1);
    sample_ns_ = a_second / std::clamp(samples_per_s, samples_per_s_least, samples_per_s_most);
  }

  Next next(Wait& wait, WatchOutput&, View& view) override {
    for (;;) {
      // At random times: the program may do the same thing every few milliseconds.
      const auto pause = std::int64_t((0.5 + random_.fraction()) * double(sample_ns_));
      if (!wait.until(base::monotonic_ns() + pause)) return Next::interrupted;
      for (const auto& run : runs_) run->sample();
      const std::int64_t now = base::monotonic_ns();
      if (now - asked_at_ >= request_ns_) {
        asked_at_ = now;
        for (const auto& run : runs_) {
          run->take();
          run->ask();
        }
        if (std::ranges::all_of(runs_, [](const auto& run) { return run->has_ended(); })) return Next::ended;
      }
      if (now - shown_at_ < interval_ns_) continue;
      shown_at_ = now;
      view = {runs_.front()->program(), 1e-9 * double(now - begin_), runs_.front()->is_simulated(), {}};
      for (const auto& run : runs_) run->add_to(view);
      std::ranges::stable_sort(view.pes, {}, &WatchedPe::pe);
      return Next::view;
    }
  }

 private:
  std::vector<std::unique_ptr<WatchedRun>> runs_;
  std::int64_t interval_ns_, request_ns_, begin_, asked_at_, shown_at_, sample_ns_ = 0;
  Random random_{1};
};

}  // namespace

std::unique_ptr<WatchSource> watch_here(std::vector<std::unique_ptr<WatchedRun>> runs, std::int64_t interval_ns) {
  return std::make_unique<HereSource>(std::move(runs), interval_ns);
}

}  // namespace headway::tools
