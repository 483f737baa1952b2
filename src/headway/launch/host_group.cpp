// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <headway/launch/host_group.hpp>

namespace headway::launch {

SegmentAddress SegmentAddress::of(const local::Segment& segment) {
  struct stat status {};
  fstat(segment.descriptor(), &status);
  return {getpid(), segment.descriptor(), status.st_dev, status.st_ino};
}

std::unique_ptr<local::Segment> try_attach(const SegmentAddress& address) {
  const int descriptor =
      open(fmt::format("/proc/{}/fd/{}", address.pid, address.descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  // In another pid namespace the pid may name an unrelated process.
  if (fstat(descriptor, &status) != 0 || status.st_dev != address.device || status.st_ino != address.inode) {
    close(descriptor);
    return nullptr;
  }
  try {
    return std::make_unique<local::Segment>(descriptor);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace headway::launch
