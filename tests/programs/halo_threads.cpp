// SPDX-License-Identifier: BSD-3-Clause
/// A halo exchange of elements that several std::thread compute. A thread marks its rows when they are ready, and reads
/// the ghosts of a neighbour as soon as these have arrived. The PE's own thread moves the exchange meanwhile.
#include <algorithm>
#include <barrier>
#include <optional>
#include <thread>
#include <vector>

#include "plate.hpp"

constexpr std::size_t threads = 3;

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    const headway::halo::Grid grid = program::plate_grid(pe);
    headway::halo::Field<double> heat(pe, grid.elements()), mean(pe, grid.elements());
    program::Rows block(grid.first(0), grid.size(0), heat, mean);
    headway::halo::Exchange exchange(pe, grid.plan(), {headway::halo::field(heat)});

    // Thread t has the rows [begin(t), begin(t + 1)), which are part t of the exchange.
    const auto begin = [&](std::size_t thread) { return block.rows() * thread / threads; };
    exchange.divide(threads, [&](std::uint64_t index) {
      const std::uint64_t row = index / grid.extent(1) - 1;
      std::size_t thread = 0;
      while (row >= begin(thread + 1)) ++thread;
      return thread;
    });
    std::optional<headway::PeId> before, behind;
    if (pe.id() > 0) before = headway::PeId(pe.id() - 1);
    if (pe.id() + 1 < pe.size()) behind = headway::PeId(pe.id() + 1);

    std::barrier<> step_begins(threads + 1), step_ends(threads + 1), all_ready(threads);
    const auto wait_for = [&](std::optional<headway::PeId> neighbour) {
      while (neighbour && !exchange.arrived(*neighbour)) std::this_thread::yield();
    };
    const auto work = [&](std::size_t thread) {
      const std::size_t first = begin(thread), end = begin(thread + 1);
      for (std::size_t step = 0; step < program::plate_steps; ++step) {
        step_begins.arrive_and_wait();
        block.add_sources(first, end);
        exchange.ready(thread);       // without a lock; within a host this thread copies the row to the neighbour
        all_ready.arrive_and_wait();  // spread() reads rows of the other threads, too
        const std::size_t inner = std::max<std::size_t>(first, 1), inner_end = std::min(end, block.rows() - 1);
        block.spread(inner, inner_end);
        if (first == 0 && first < end) {
          wait_for(before);
          if (block.rows() == 1) wait_for(behind);
          block.spread(0, 1);
        }
        if (end == block.rows() && first < end && block.rows() > 1) {
          wait_for(behind);
          block.spread(end - 1, end);
        }
        step_ends.arrive_and_wait();
      }
    };
    std::vector<std::jthread> workers;
    for (std::size_t thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);

    for (std::size_t step = 0; step < program::plate_steps; ++step) {
      exchange.begin_parts();
      step_begins.arrive_and_wait();
      exchange.end();  // sends to other hosts, and takes arriving elements
      step_ends.arrive_and_wait();
    }
    workers.clear();

    const bool right = block.equals(program::serial_plate());
    return program::finish(pe, right, "checksum of the plate", program::sum(pe, block.checksum()));
  });
}
