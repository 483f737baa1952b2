/// Processes of a launcher that are on one host share a segment: who they are, and how they come to it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <span>

namespace headway::launch {

/// Those whose numbers follow one another on one host: processes `first` to `last` - 1, of which the first one leads.
struct HostGroup {
  std::size_t first = 0, last = 1;

  std::size_t size() const { return last - first; }
  bool operator==(const HostGroup&) const = default;
};

/// The group of `process`, where is_together(a, b) says whether processes a and b, which follow one another, are on one host.
template <class IsTogether>
HostGroup host_group_of(std::size_t process, std::size_t processes, IsTogether is_together) {
  HostGroup group{process, process + 1};
  while (group.first > 0 && is_together(group.first - 1, group.first)) --group.first;
  while (group.last < processes && is_together(group.last - 1, group.last)) ++group.last;
  return group;
}

/// How others of the group find a segment: by the open descriptor of the process that has made it.
struct SegmentAddress {
  std::int32_t pid = 0, descriptor = -1;
  std::uint64_t device = 0, inode = 0;

  static SegmentAddress of(const local::Segment& segment);
};

/// Attaches to it; nullptr where the system does not let this process: other pid namespaces or users, say.
std::unique_ptr<local::Segment> try_attach(const SegmentAddress& address);

}  // namespace headway::launch
