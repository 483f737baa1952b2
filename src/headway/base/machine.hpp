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

}  // namespace headway
