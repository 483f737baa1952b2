// SPDX-License-Identifier: BSD-3-Clause
/// The part of the machine that this process may use, by affinity masks and cgroup limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headway::base {

/// Cores this process may run on: the affinity mask, cut by a cgroup CPU quota (rounded up). At least 1.
std::size_t available_cores();

/// The processors of the affinity mask, ascending. PEs are bound to these.
std::vector<int> allowed_processors();

/// All processors of the machine.
std::size_t processors_online();

/// The cgroup's CPU quota in CPUs, or 0 if there is none.
double cgroup_cpu_limit();

/// Physical memory, cut by the cgroup's limit and this process's limit of address space (ulimit -v), in bytes.
std::uint64_t available_memory_bytes();

/// The cgroup's memory limit in bytes, or 0 if there is none.
std::uint64_t cgroup_memory_limit_bytes();

/// Bytes of cache for one core. 0: not known.
struct CacheSizes {
  std::size_t own = 0;  // the second level
  /// The third level, divided by the cores that share it; at most share_max, because a virtual machine with two cores
  /// may report the cache of the whole socket (260 MiB, of which not even 32 MiB stay cached).
  std::size_t share = 0;
  static constexpr std::size_t share_max = std::size_t(16) << 20;
};
CacheSizes cache_sizes();

}  // namespace headway::base
