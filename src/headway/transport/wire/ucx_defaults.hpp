// SPDX-License-Identifier: BSD-3-Clause
/// Defaults for UCX, for plug-ins that use UCX or an MPI on UCX.
#pragma once

#include <filesystem>
#include <system_error>

namespace headway::wire {

/// UCX_RNDV_THRESH: longer messages wait for their receiver's answer, so that both sides must call UCX. Posted receives
/// make that unnecessary for frames.
inline constexpr const char* ucx_eager_bytes = "512K";

/// True if the host has InfiniBand devices. They fetch a message that waits for an answer, so the default is best
/// there.
inline bool has_fetching_devices() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

}  // namespace headway::wire
