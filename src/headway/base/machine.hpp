/// What this process may use of its machine: affinity masks and cgroup limits count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headway {

/// Cores this process may run on: the affinity mask, cut by a cgroup CPU quota (rounded up). At least 1.
std::size_t available_cores();

/// The processors of the affinity mask, ascending; those that PEs are bound to.
std::vector<int> allowed_processors();

/// Of the machine, whoever may use them.
std::size_t processors_online();

/// CPUs' worth of time the cgroup quota allows, or 0 where there is none.
double cgroup_cpu_limit();

/// Physical memory, cut by the cgroup's limit and this process's limit of address space (ulimit -v), in bytes.
std::uint64_t available_memory_bytes();

/// The cgroup's memory limit in bytes, or 0 where there is none.
std::uint64_t cgroup_memory_limit_bytes();

/// Bytes of cache of a core. 0 where the system does not say.
struct CacheSizes {
  std::size_t own = 0;    // the second level, where it is the core's own
  /// Of the third level, divided by the cores that have it together; at most share_max, for a guest may be told the cache of
  /// a whole socket for the two cores that it was given (260 MiB; 32 MiB stay there no more).
  std::size_t share = 0;
  static constexpr std::size_t share_max = std::size_t(16) << 20;
};
CacheSizes cache_sizes();

}  // namespace headway
