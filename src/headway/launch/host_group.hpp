// SPDX-License-Identifier: BSD-3-Clause
/// Processes of a launcher on one host share a segment: which processes, and how they open it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <span>

namespace headway::launch {

/// Processes `first` to `last` - 1, consecutive and on one host. The first one makes the segment.
struct HostGroup {
  std::size_t first = 0, last = 1;

  std::size_t size() const { return last - first; }
  bool operator==(const HostGroup&) const = default;
};

/// The group of `process`. is_together(a, b) says whether consecutive processes a and b are on one host.
template <class IsTogether>
HostGroup host_group_of(std::size_t process, std::size_t processes, IsTogether is_together) {
  HostGroup group{process, process + 1};
  while (group.first > 0 && is_together(group.first - 1, group.first)) --group.first;
  while (group.last < processes && is_together(group.last - 1, group.last)) ++group.last;
  return group;
}

/// Names a segment for other processes of the group: the open descriptor of the process that made it.
struct SegmentAddress {
  std::int32_t pid = 0, descriptor = -1;
  std::uint64_t device = 0, inode = 0;

  static SegmentAddress of(const local::Segment& segment);
};

/// Attaches to the segment. nullptr if the system refuses, for example between pid namespaces or users.
std::unique_ptr<local::Segment> try_attach(const SegmentAddress& address);

}  // namespace headway::launch
