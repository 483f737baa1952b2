// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/error.hpp>
#include <headway/object/index.hpp>
#include <span>

namespace headway::object {
namespace {

std::string text_of(const std::int32_t* numbers, unsigned count, const char* between) {
  return fmt::format("{}", fmt::join(std::span(numbers, count), between));
}

}  // namespace

void throw_coordinate(std::int64_t coordinate) {
  throw UsageError(fmt::format("{} is not a coordinate of an element: allowed are 0 to 2147483647", coordinate));
}

void throw_outside(const std::int32_t* index, const std::int32_t* extents, unsigned dimensions) {
  throw UsageError(fmt::format("there is no element ({}) in an array of {}", text_of(index, dimensions, ", "),
                               text_of(extents, dimensions, " x ")));
}

void throw_outside(std::uint32_t number, std::uint32_t size) {
  const auto index = std::int32_t(number), extent = std::int32_t(size);
  throw_outside(&index, &extent, 1);
}

std::uint32_t checked_size(const std::int32_t* extents, unsigned dimensions) {
  std::uint64_t size = 1;
  for (unsigned k = 0; k < dimensions; ++k) {
    if (extents[k] < 0) {
      throw SettingError(
          fmt::format("the extents of an array are {}: each must be at least 0", text_of(extents, dimensions, " x ")));
    }
    size *= std::uint64_t(extents[k]);
    if (size >= (std::uint64_t(1) << 32) - 1) {
      throw SettingError(fmt::format("an array of {} has too many elements: at most 4294967294 are allowed",
                                     text_of(extents, dimensions, " x ")));
    }
  }
  return std::uint32_t(size);
}

}  // namespace headway::object
