// SPDX-License-Identifier: BSD-3-Clause
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <headway/transport/count/hardware.hpp>

namespace headway::count {
namespace {

constexpr std::uint64_t events[hardware_counters] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                                     PERF_COUNT_HW_CACHE_MISSES};

int open_event(std::uint64_t event, int leader) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof attributes;
  attributes.config = event;
  attributes.read_format = PERF_FORMAT_GROUP;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return int(syscall(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Hardware::~Hardware() {
  for (const int file : files_) {
    if (file >= 0) close(file);
  }
}

int Hardware::open() {
  for (std::size_t i = 0; i < hardware_counters; ++i) {
    files_[i] = open_event(events[i], files_[0]);
    if (i == 0 && files_[0] < 0) return errno;
  }
  return 0;
}

HardwareCounts Hardware::read() const {
  HardwareCounts counts;
  counts.fill(not_counted);
  struct {
    std::uint64_t values;
    std::uint64_t value[hardware_counters];
  } group{};
  if (files_[0] < 0 || ::read(files_[0], &group, sizeof group) <= 0) return counts;
  std::size_t next = 0;
  for (std::size_t i = 0; i < hardware_counters; ++i) {
    if (files_[i] >= 0 && next < group.values) counts[i] = group.value[next++];
  }
  return counts;
}

}  // namespace headway::count
