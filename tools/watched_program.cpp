// SPDX-License-Identifier: BSD-3-Clause
// A program for tests of `headway watch`. All PEs but PE 0 wait for messages.
//   watched_program busy SECONDS      PE 0 computes and sends
//   watched_program spill SECONDS     a handler of PE 0 sends more than fits in a small HEADWAY_BUDGET
//   watched_program outside SECONDS   PE 0 makes no call of the library
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <headway/headway.hpp>
#include <string>

namespace {

void send_until(headway::Pe& pe, double end) {
  std::uint64_t received = 0;
  headway::Aggregator<std::uint64_t> numbers(pe);
  numbers.on([&](std::uint64_t) { ++received; });
  if (pe.id() == 0) {
    volatile std::uint64_t work = 0;
    while (headway::wtime(pe) < end) {
      for (unsigned i = 0; i < 64'000; ++i) {
        work = work + i;
        if (i % 1000 != 0) continue;
        for (std::size_t target = 1; target < pe.size(); ++target) numbers.send(target, std::uint64_t(work));
      }
      pe.progress();
    }
  }
  pe.quiesce();
}

struct Large {
  std::uint64_t words[32];
};

/// Handlers may not wait for frame memory, so that frames for the slow PE 1 are spilled.
void spill(headway::Pe& pe, double seconds) {
  headway::Aggregator<Large> slow(pe);
  slow.on([](const Large&) { usleep(50); });
  headway::Aggregator<std::uint64_t> starts(pe);
  starts.on([&](std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) slow.send(1, Large{});
  });
  if (pe.id() == 0) starts.send(0, std::uint64_t(seconds * 1e4));
  pe.quiesce();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 0;
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const double end = headway::wtime(pe) + seconds;
    if (mode == "busy") send_until(pe, end);
    if (mode == "spill") spill(pe, seconds);
    if (mode == "outside" && pe.id() == 0) usleep(useconds_t(seconds * 1e6));
    return 0;
  });
}
