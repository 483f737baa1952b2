// SPDX-License-Identifier: BSD-3-Clause
#include "message.hpp"

namespace seeds {
namespace {

// Messages take pieces from different places, so that one is never taken for another.
constexpr std::size_t places = 8192;
constexpr std::size_t bytes_max = 4'000'000;

std::vector<std::uint64_t> make_pool() {
  std::vector<std::uint64_t> pool(places + bytes_max / sizeof(std::uint64_t) + 1);
  Random random(1);
  for (std::uint64_t& word : pool) word = random.next();
  return pool;
}

}  // namespace

Content content_of(std::uint64_t id, std::size_t bytes) {
  static const std::vector<std::uint64_t> pool = make_pool();
  return std::as_bytes(std::span(pool).subspan(mix(id, 0xc0) % places)).first(bytes);
}

}  // namespace seeds
