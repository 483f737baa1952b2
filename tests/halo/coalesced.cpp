// SPDX-License-Identifier: BSD-3-Clause
/// coalesced HOSTS: exchanges over that many hosts, in streams and apart. Ends with 1 if an element is wrong, if
/// streams of small messages do not send 3 times fewer messages between hosts, if an element that several PEs of a
/// host need crosses twice, if large messages are coalesced without request, or if a rebuilt exchange sends other
/// numbers than a new one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/halo/grid.hpp>
#include <headway/headway.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using headway::halo::Coalescing;

constexpr std::uint64_t rounds = 7, cells = 12, large_cells = 15000;

headway::halo::HostTraffic sum_of(headway::Pe& pe, const headway::halo::HostTraffic& own) {
  return {headway::allreduce(pe, own.messages, std::plus<>()), headway::allreduce(pe, own.bytes, std::plus<>())};
}

double value_of(std::uint64_t id, std::uint64_t round) { return double(id * 1000 + round); }

/// The arrays of an exchange.
struct Arrays {
  std::vector<double> values;
  std::vector<std::uint32_t> numbers;

  explicit Arrays(std::size_t n) : values(n), numbers(n) {}
  std::vector<headway::halo::FieldRef> fields() {
    return {headway::halo::field(values), headway::halo::field(numbers)};
  }
};

/// Several exchanges. Returns what all PEs have sent in one of them.
headway::halo::HostTraffic repeat(headway::Pe& pe, headway::halo::Exchange& exchange, Arrays& arrays,
                                  std::uint64_t owned, const std::vector<std::uint64_t>& ids) {
  const headway::halo::HostTraffic before = sum_of(pe, exchange.sent_to_other_hosts());
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (std::uint64_t i = 0; i != owned; ++i) {
      arrays.values[i] = value_of(ids[i], round);
      arrays.numbers[i] = std::uint32_t(ids[i] + round);
    }
    exchange();
    for (std::uint64_t i = owned; i != ids.size(); ++i) {
      if (arrays.values[i] != value_of(ids[i], round) || arrays.numbers[i] != std::uint32_t(ids[i] + round))
        throw std::logic_error("element " + std::to_string(ids[i]) + " is wrong in round " + std::to_string(round));
    }
  }
  headway::halo::HostTraffic sent = sum_of(pe, exchange.sent_to_other_hosts());
  sent = {sent.messages - before.messages, sent.bytes - before.bytes};
  if (sent.messages % rounds != 0) throw std::logic_error("exchanges send different numbers of messages");
  return {sent.messages / rounds, sent.bytes / rounds};
}

/// All PEs send this in one exchange of a plan. `ids` names the elements of this PE: its `owned` ones, then ghosts.
headway::halo::HostTraffic exchange(headway::Pe& pe, const headway::halo::Plan& plan, std::uint64_t owned,
                                    const std::vector<std::uint64_t>& ids, Coalescing coalescing) {
  Arrays arrays(ids.size());
  headway::halo::Exchange exchange(pe, plan, arrays.fields(), headway::halo::CombineOrder::any, coalescing);
  if (pe.id() == 0) std::printf("%s", exchange.description().c_str());
  return repeat(pe, exchange, arrays, owned, ids);
}

/// Each PE needs the first cells of all PEs, and one that no other needs.
headway::halo::Plan all_to_all(headway::Pe& pe, std::vector<std::uint64_t>& ids) {
  for (std::uint64_t i = 0; i != cells; ++i) ids.push_back(pe.id() * cells + i);
  std::vector<headway::halo::Place> places;
  for (std::size_t other = 0; other != pe.size(); ++other) {
    for (const std::uint64_t index : {std::uint64_t(0), std::uint64_t(1), 2 + pe.id() % (cells - 2)}) {
      places.push_back({other, index});
      ids.push_back(other * cells + index);
    }
  }
  return headway::halo::Plan::receiving(pe, cells, places);
}

/// A ring of rows: each PE needs rows of PEs at the next and the last host.
headway::halo::Plan neighbours(headway::Pe& pe, std::size_t hosts, std::vector<std::uint64_t>& ids) {
  const std::size_t per_host = pe.size() / hosts, host = pe.id() / per_host, at = pe.id() % per_host;
  for (std::uint64_t i = 0; i != cells; ++i) ids.push_back(pe.id() * cells + i);
  std::vector<headway::halo::Place> places;
  for (const std::size_t other : {(host + 1) % hosts, (host + hosts - 1) % hosts}) {
    for (std::size_t shift = 0; shift != 3; ++shift) {
      const std::size_t from = other * per_host + (at + shift) % per_host;
      for (std::uint64_t i = 0; i != (shift == 1 ? cells : 1); ++i) {
        places.push_back({from, i});
        ids.push_back(from * cells + i);
      }
    }
  }
  return headway::halo::Plan::receiving(pe, cells, places);
}

/// Each PE needs all elements of the PE at its place on each other host.
headway::halo::Plan large(headway::Pe& pe, std::size_t hosts, std::vector<std::uint64_t>& ids) {
  const std::size_t per_host = pe.size() / hosts;
  std::vector<headway::halo::Place> places;
  for (std::uint64_t i = 0; i != large_cells; ++i) ids.push_back(pe.id() * large_cells + i);
  for (std::size_t from = pe.id() % per_host; from < pe.size(); from += per_host) {
    for (std::uint64_t i = 0; from != pe.id() && i != large_cells; ++i) {
      places.push_back({from, i});
      ids.push_back(from * large_cells + i);
    }
  }
  return headway::halo::Plan::receiving(pe, large_cells, places);
}

}  // namespace

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    if (argc != 2) return 2;
    const std::size_t hosts = std::strtoull(argv[1], nullptr, 10);
    bool is_good = true;
    const auto compare = [&](const char* name, const headway::halo::Plan& plan, const std::vector<std::uint64_t>& ids,
                             bool shares) {
      const auto apart = exchange(pe, plan, cells, ids, Coalescing::never);
      for (const Coalescing coalescing : {Coalescing::where_it_pays, Coalescing::always}) {
        const auto together = exchange(pe, plan, cells, ids, coalescing);
        if (pe.id() == 0) {
          std::printf(
              "%s, %zu PEs on %zu hosts: %llu messages between hosts apart, %llu in streams; %llu and %llu bytes\n",
              name, pe.size(), hosts, static_cast<unsigned long long>(apart.messages),
              static_cast<unsigned long long>(together.messages), static_cast<unsigned long long>(apart.bytes),
              static_cast<unsigned long long>(together.bytes));
        }
        is_good &= together.messages != 0 && together.messages * 3 <= apart.messages;
        is_good &= shares ? together.bytes < apart.bytes : together.bytes <= apart.bytes;
      }
    };
    std::vector<std::uint64_t> ids, of_ring;
    const headway::halo::Plan all = all_to_all(pe, ids), ring = neighbours(pe, hosts, of_ring);
    compare("all", all, ids, true);
    compare("ring", ring, of_ring, false);

    std::vector<std::uint64_t> of_large;
    const headway::halo::Plan blocks = large(pe, hosts, of_large);
    const auto apart = exchange(pe, blocks, large_cells, of_large, Coalescing::never);
    const auto by_rule = exchange(pe, blocks, large_cells, of_large, Coalescing::where_it_pays);
    const auto together = exchange(pe, blocks, large_cells, of_large, Coalescing::always);  // in several frames
    is_good &= by_rule.messages == apart.messages && together.bytes == apart.bytes;
    is_good &= together.messages > hosts * (hosts - 1) && together.messages < apart.messages;

    // A rebuilt exchange sends as much as a new one, and keeps its wish.
    for (const Coalescing coalescing : {Coalescing::where_it_pays, Coalescing::always, Coalescing::never}) {
      Arrays arrays(of_ring.size());
      headway::halo::Exchange rebuilt(pe, ring, arrays.fields(), headway::halo::CombineOrder::any, coalescing);
      const auto is_as_new = [&](const headway::halo::Plan& plan, std::uint64_t owned,
                                 const std::vector<std::uint64_t>& elements) {
        Arrays next(elements.size());
        rebuilt.rebuild(plan, next.fields());
        const auto sent = repeat(pe, rebuilt, next, owned, elements);
        const auto anew = exchange(pe, plan, owned, elements, coalescing);
        is_good &= sent.messages == anew.messages && sent.bytes == anew.bytes;
        rebuilt.rebuild(ring, arrays.fields());
      };
      for (int time = 0; time != 3; ++time) {
        is_as_new(all, cells, ids);
        is_as_new(blocks, large_cells, of_large);
        is_as_new(ring, cells, of_ring);
      }
      repeat(pe, rebuilt, arrays, cells, of_ring);
    }
    return is_good ? 0 : 1;
  });
}
