// SPDX-License-Identifier: BSD-3-Clause
/// A halo exchange of elements that an OpenMP loop computes: each thread marks its rows when they are ready. The row
/// for a neighbour leaves while other threads compute.
#include <omp.h>

#include "plate.hpp"

constexpr int threads = 3;

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    const headway::halo::Grid grid = program::plate_grid(pe);
    headway::halo::Field<double> heat(pe, grid.elements()), mean(pe, grid.elements());
    program::Rows block(grid.first(0), grid.size(0), heat, mean);
    headway::halo::Exchange exchange(pe, grid.plan(), {headway::halo::field(heat)});

    // A part is one row. The rule knows elements of the array, so it counts the row of ghosts before the first row.
    exchange.divide(block.rows(), [&](std::uint64_t index) { return std::size_t(index / grid.extent(1) - 1); });

    for (std::size_t step = 0; step < program::plate_steps; ++step) {
      exchange.begin_parts();
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
      for (std::size_t row = 0; row < block.rows(); ++row) {
        block.add_sources(row, row + 1);
        exchange.ready(row);
      }
      exchange.end();  // by the PE's own thread, and outside of the loop

#pragma omp parallel for num_threads(threads)
      for (std::size_t row = 0; row < block.rows(); ++row) block.spread(row, row + 1);
    }

    const bool right = block.equals(program::serial_plate());
    return program::finish(pe, right, "checksum of the plate", program::sum(pe, block.checksum()));
  });
}
