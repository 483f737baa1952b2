// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>

namespace headway::base {

void throw_errno(const char* call) {
  const int error = errno;
  throw SystemError(fmt::format("{}: {} (errno {})", call, std::strerror(error), error));
}

void throw_destination_out_of_range(std::size_t destination, std::size_t pes) {
  throw UsageError(fmt::format("destination PE {} is out of range: this run has {}, 0 to {}",
                               static_cast<std::ptrdiff_t>(destination), counted(pes, "PE"), pes - 1));
}

}  // namespace headway::base
