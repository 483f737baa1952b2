// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <halo/lists.hpp>
#include <headway/base/random.hpp>
#include <numeric>
#include <tuple>

namespace headway::bench {
namespace {

using Cell = std::array<std::int64_t, 3>;

std::uint64_t count_in(const std::vector<HaloPartner>& partners) {
  std::uint64_t count = 0;
  for (const HaloPartner& one : partners) count += one.indices.size();
  return count;
}

/// A stream of random numbers of its own for each pair of numbers.
Random random_of(const HaloWork& work, std::uint64_t a, std::uint64_t b) {
  return Random(Random(Random(work.seed + a).next() + b).next());
}

/// Both neighbours in a line of PEs get the elements at their end of the row.
HaloRule row_rule(const HaloWork& work, std::size_t pe, std::size_t pes) {
  HaloRule rule{2 * work.elements, {}};
  const auto add = [&](std::size_t sender, std::uint64_t first) {
    std::vector<std::uint64_t>& indices = rule.needs[sender];
    indices.resize(work.elements);
    std::iota(indices.begin(), indices.end(), first);
  };
  if (pe > 0) add(pe - 1, work.elements);
  if (pe + 1 < pes) add(pe + 1, 0);
  return rule;
}

constexpr std::size_t random_partners_a_side = 4;

/// Different elements in random order from up to four PEs on each side of a ring.
HaloRule random_rule(const HaloWork& work, std::size_t pe, std::size_t pes) {
  HaloRule rule{4 * work.elements, {}};
  for (std::size_t step = 1; step <= std::min(random_partners_a_side, pes / 2); ++step) {
    for (const std::size_t sender : {(pe + step) % pes, (pe + pes - step) % pes}) {
      if (rule.needs.contains(sender)) continue;
      Random random = random_of(work, pe, sender);
      std::vector<std::uint64_t> all(rule.owned);
      std::iota(all.begin(), all.end(), std::uint64_t(0));
      for (std::size_t i = 0; i < work.elements; ++i) std::swap(all[i], all[random.between(i, all.size() - 1)]);
      all.resize(work.elements);
      rule.needs[sender] = std::move(all);
    }
  }
  return rule;
}

/// Directions from a block to its neighbours: 26, or 6 with `points` 7.
std::vector<Cell> directions(std::size_t points, bool self) {
  std::vector<Cell> all;
  for (std::int64_t z = -1; z <= 1; ++z) {
    for (std::int64_t y = -1; y <= 1; ++y) {
      for (std::int64_t x = -1; x <= 1; ++x) {
        const std::int64_t distance = std::abs(z) + std::abs(y) + std::abs(x);
        if ((distance == 0 && !self) || (points == 7 && distance > 1)) continue;
        all.push_back({z, y, x});
      }
    }
  }
  return all;
}

std::int64_t wrap(std::int64_t at, std::size_t size) { return (at + std::int64_t(size)) % std::int64_t(size); }

/// A tenth of the particles leave to the 26 neighbours, or stay and are copied; periodic.
HaloRule particles_rule(const HaloWork& work, std::size_t pe, std::size_t pes) {
  HaloRule rule{work.elements, {}};
  const std::vector<std::size_t> blocks = halo_blocks(pes);
  const Cell own = {std::int64_t(pe / blocks[2] / blocks[1]), std::int64_t(pe / blocks[2] % blocks[1]),
                    std::int64_t(pe % blocks[2])};
  const std::vector<Cell> all = directions(27, true);
  for (std::size_t d = 0; d < all.size(); ++d) {
    std::int64_t sender = 0;
    for (std::size_t i = 0; i < 3; ++i) sender = sender * std::int64_t(blocks[i]) + wrap(own[i] - all[d][i], blocks[i]);
    Random random = random_of(work, std::uint64_t(sender), d);
    // A sender's particles with numbers d, d + 27, ... may leave in direction d, so none leaves twice.
    for (std::uint64_t i = d; i < work.elements; i += all.size()) {
      if (random.chance(0.1)) rule.needs[std::size_t(sender)].push_back(i);
    }
  }
  return rule;
}

HaloLists lists_of_rules(const std::vector<HaloRule>& rules, std::size_t me) {
  HaloLists lists;
  lists.owned = lists.elements = rules[me].owned;
  for (const auto& [sender, remote] : rules[me].needs) {
    if (remote.empty()) continue;
    std::vector<std::uint64_t> indices(remote.size());
    std::iota(indices.begin(), indices.end(), lists.elements);
    lists.elements += remote.size();
    lists.receives.push_back({sender, std::move(indices), remote});
  }
  for (std::size_t pe = 0; pe < rules.size(); ++pe) {
    const auto found = rules[pe].needs.find(me);
    if (found != rules[pe].needs.end() && !found->second.empty()) lists.sends.push_back({pe, found->second, {}});
  }
  return lists;
}

/// Cubic blocks in a periodic grid, so many along each side of a PE's part, each with ghosts of its own. All blocks of
/// a PE lie in one array.
class Blocks {
 public:
  Blocks(const HaloWork& work, std::size_t pes)
      : work_(&work), a_side_(work.name == "blocks" ? 4 : 1), pes_(halo_blocks(pes)) {}

  HaloLists lists(std::size_t me) const {
    HaloLists lists;
    lists.owned = lists.elements = a_side_ * a_side_ * a_side_ * block_elements();
    // Pieces by partner, sending block and direction: the order in which they travel.
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::pair<Cell, Cell>> sends, receives;
    const std::vector<Cell> all = directions(work_->points, false);
    for (std::size_t local = 0; local < a_side_ * a_side_ * a_side_; ++local) {
      const Cell block = block_of(me, local);
      for (std::size_t d = 0; d < all.size(); ++d) {
        const Cell to = moved(block, all[d], 1), from = moved(block, all[d], -1);
        sends[{pe_of(to), number_of(block), d}] = {block, to};
        receives[{pe_of(from), number_of(from), d}] = {from, block};
      }
    }
    for (const auto& [key, blocks] : sends) append(lists.sends, key, blocks, all, false);
    for (const auto& [key, blocks] : receives) append(lists.receives, key, blocks, all, true);
    return lists;
  }

 private:
  std::size_t extent() const { return work_->elements + 2 * work_->width; }
  std::size_t block_elements() const { return extent() * extent() * extent(); }
  std::size_t size(std::size_t dimension) const { return pes_[dimension] * a_side_; }

  Cell block_of(std::size_t pe, std::size_t local) const {
    const std::size_t part[] = {pe / pes_[2] / pes_[1], pe / pes_[2] % pes_[1], pe % pes_[2]};
    const std::size_t in_part[] = {local / a_side_ / a_side_, local / a_side_ % a_side_, local % a_side_};
    Cell block{};
    for (std::size_t i = 0; i < 3; ++i) block[i] = std::int64_t(part[i] * a_side_ + in_part[i]);
    return block;
  }
  std::size_t pe_of(const Cell& block) const {
    std::size_t pe = 0;
    for (std::size_t i = 0; i < 3; ++i) pe = pe * pes_[i] + std::size_t(block[i]) / a_side_;
    return pe;
  }
  std::size_t local_of(const Cell& block) const {
    std::size_t local = 0;
    for (std::size_t i = 0; i < 3; ++i) local = local * a_side_ + std::size_t(block[i]) % a_side_;
    return local;
  }
  std::size_t number_of(const Cell& block) const {
    std::size_t number = 0;
    for (std::size_t i = 0; i < 3; ++i) number = number * size(i) + std::size_t(block[i]);
    return number;
  }
  Cell moved(const Cell& block, const Cell& by, std::int64_t sign) const {
    Cell to{};
    for (std::size_t i = 0; i < 3; ++i) to[i] = wrap(block[i] + sign * by[i], size(i));
    return to;
  }

  /// The cells of `block` within `width` of its side in `direction`, or the ghosts beyond its opposite side.
  std::vector<std::uint64_t> cells(const Cell& block, const Cell& direction, bool ghosts) const {
    const auto side = std::int64_t(work_->elements), width = std::int64_t(work_->width);
    Cell first{}, count{};
    for (std::size_t i = 0; i < 3; ++i) {
      count[i] = direction[i] == 0 ? side : width;
      if (ghosts)
        first[i] = direction[i] == 0 ? width : direction[i] > 0 ? 0 : side + width;
      else
        first[i] = direction[i] > 0 ? side : width;
    }
    std::vector<std::uint64_t> indices;
    const std::size_t begin = local_of(block) * block_elements();
    for (std::int64_t z = first[0]; z < first[0] + count[0]; ++z) {
      for (std::int64_t y = first[1]; y < first[1] + count[1]; ++y) {
        const std::size_t row = begin + (std::size_t(z) * extent() + std::size_t(y)) * extent();
        for (std::int64_t x = first[2]; x < first[2] + count[2]; ++x) indices.push_back(row + std::size_t(x));
      }
    }
    return indices;
  }

  void append(std::vector<HaloPartner>& partners, const std::tuple<std::size_t, std::size_t, std::size_t>& key,
              const std::pair<Cell, Cell>& blocks, const std::vector<Cell>& all, bool receives) const {
    const std::size_t pe = std::get<0>(key);
    const Cell& direction = all[std::get<2>(key)];
    if (partners.empty() || partners.back().pe != pe) partners.push_back({pe, {}, {}});
    const auto add = [](std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    const std::vector<std::uint64_t> sent = cells(blocks.first, direction, false);
    if (receives) {
      add(partners.back().indices, cells(blocks.second, direction, true));
      add(partners.back().remote, sent);
    } else {
      add(partners.back().indices, sent);
    }
  }

  const HaloWork* work_;
  std::size_t a_side_;  // blocks
  std::vector<std::size_t> pes_;
};

}  // namespace

std::uint64_t HaloLists::sent() const { return count_in(sends); }
std::uint64_t HaloLists::received() const { return count_in(receives); }

std::vector<std::size_t> halo_blocks(std::size_t pes) {
  std::vector<std::size_t> best = {pes, 1, 1};
  for (std::size_t a = 1; a * a * a <= pes; ++a) {
    if (pes % a != 0) continue;
    for (std::size_t b = a; a * b * b <= pes; ++b) {
      if (pes / a % b != 0) continue;
      const std::vector<std::size_t> blocks = {pes / a / b, b, a};
      if (blocks[0] + b + a < best[0] + best[1] + best[2]) best = blocks;
    }
  }
  return best;
}

namespace {

HaloLists lists_of_case(const HaloWork& work, std::size_t me, std::size_t pes) {
  if (work.name == "grid27" || work.name == "blocks") return Blocks(work, pes).lists(me);
  std::vector<HaloRule> rules;
  if (!work.plan.empty()) return lists_of_rules(read_halo_plan(work.plan, pes), me);
  const auto rule = work.name == "row"         ? row_rule
                    : work.name == "random"    ? random_rule
                    : work.name == "particles" ? particles_rule
                                               : recorded_rule;
  for (std::size_t pe = 0; pe < pes; ++pe) rules.push_back(rule(work, pe, pes));
  return lists_of_rules(rules, me);
}

}  // namespace

HaloLists make_halo_lists(const HaloWork& work, std::size_t me, std::size_t pes) {
  HaloLists lists = lists_of_case(work, me, pes);
  work.check_bytes(double(std::max(lists.elements, lists.sent())));
  return lists;
}

}  // namespace headway::bench
