// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/error.hpp>
#include <headway/halo/parts.hpp>

namespace headway::halo {

Parts::Parts(std::size_t parts, const PartRule& rule, std::span<const IndexList* const> lists)
    : partners_of_part_(parts),
      partners_count_(lists.size()),
      partners_(new Partner[lists.size()]),
      ready_(new std::atomic<std::uint32_t>[parts] {}) {
  for (std::uint32_t partner = 0; partner != lists.size(); ++partner) {
    for (const std::uint64_t index : lists[partner]->indices()) {
      const std::size_t part = rule(index);
      if (part >= parts) {
        throw UsageError(
            fmt::format("element {} of a halo exchange is given to part {}; the exchange has parts 0 to {}", index,
                        part, parts - 1));
      }
      std::vector<std::uint32_t>& partners = partners_of_part_[part];
      if (!partners.empty() && partners.back() == partner) continue;
      partners.push_back(partner);
      ++partners_[partner].parts;
    }
  }
}

void Parts::begin() {
  for (std::size_t i = 0; i != partners_count_; ++i) {
    partners_[i].missing.store(partners_[i].parts, std::memory_order_relaxed);
    partners_[i].state.store(State::waiting, std::memory_order_relaxed);
  }
}

std::vector<std::size_t> Parts::unmarked(std::uint32_t generation) const {
  std::vector<std::size_t> parts;
  for (std::size_t part = 0; part != size(); ++part) {
    if (!partners_of_part_[part].empty() && ready_[part].load(std::memory_order_relaxed) != generation)
      parts.push_back(part);
  }
  return parts;
}

void Parts::require_new(std::size_t part, std::uint32_t generation) {
  if (part >= size())
    throw UsageError(fmt::format("part {} of a halo exchange is marked; it has parts 0 to {}", part, size() - 1));
  if (ready_[part].exchange(generation, std::memory_order_relaxed) == generation)
    throw UsageError(fmt::format("part {} of a halo exchange is marked twice; expected once for each begin", part));
}

}  // namespace headway::halo
