/// How UCX is to send what it is not told otherwise, for plug-ins that use it or whose MPI may.
#pragma once

#include <filesystem>
#include <system_error>

namespace headway::wire {

/// Up to so much it sends without asking its receiver for room, for which both sides would have to call it at once, and
/// receives are kept posted. For UCX_RNDV_THRESH.
inline constexpr const char* ucx_eager_bytes = "512K";

/// It is right to ask where a device then fetches the message by itself.
inline bool has_fetching_devices() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

}  // namespace headway::wire
