// SPDX-License-Identifier: BSD-3-Clause
/// Heat in a plate, for the programs with halo exchanges and threads. In each step every cell gets the heat of its
/// source. Then each cell becomes the mean of itself and its four neighbours. Outside the plate it is cold.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "program.hpp"

namespace program {

constexpr std::size_t plate_rows = 130, plate_columns = 200, plate_steps = 25;

/// Rows of the plate. Row -1, row rows(), and the first and the last element of a row lie outside the PE's block.
template <class Array>
class Rows {
 public:
  /// `heat` and `mean` have (rows + 2) * (plate_columns + 2) elements.
  Rows(std::size_t first, std::size_t rows, Array& heat, Array& mean)
      : first_(first), rows_(rows), heat_(heat), mean_(mean) {
    for (std::size_t i = 0; i < (rows + 2) * stride; ++i) heat_[i] = mean_[i] = 0;
  }

  std::size_t rows() const { return rows_; }
  /// Changes rows [begin, end) of `heat`, from their mean values.
  void add_sources(std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t c = 0; c < plate_columns; ++c)
        heat_[at(row, c)] = mean_[at(row, c)] + double(random((first_ + row) * plate_columns + c) % 1000);
  }
  /// Changes rows [begin, end) of `mean`. Reads `heat` in these rows, and in the rows before and behind them.
  void spread(std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t c = 0; c < plate_columns; ++c) {
        const std::size_t i = at(row, c);
        mean_[i] = (heat_[i] + (heat_[i - stride] + heat_[i + stride]) + (heat_[i - 1] + heat_[i + 1])) / 5;
      }
    }
  }
  bool equals(const std::vector<double>& whole_mean) const {
    bool equal = true;
    for (std::size_t row = 0; row < rows_; ++row)
      equal &= std::memcmp(&mean_[at(row, 0)], &whole_mean[at(first_ + row, 0)], plate_columns * sizeof(double)) == 0;
    return equal;
  }
  /// The same for any division of the plate into rows, once it is summed over all PEs.
  std::uint64_t checksum() const {
    std::uint64_t sum = 0;
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t c = 0; c < plate_columns; ++c)
        sum += random(std::bit_cast<std::uint64_t>(double(mean_[at(row, c)])) + (first_ + row) * plate_columns + c);
    return sum;
  }

 private:
  static constexpr std::size_t stride = plate_columns + 2;
  static std::size_t at(std::size_t row, std::size_t column) { return (row + 1) * stride + column + 1; }

  std::size_t first_, rows_;
  Array& heat_;
  Array& mean_;
};

/// The means of the whole plate, by one thread.
inline std::vector<double> serial_plate() {
  std::vector<double> heat((plate_rows + 2) * (plate_columns + 2)), mean(heat.size());
  Rows plate(0, plate_rows, heat, mean);
  for (std::size_t step = 0; step < plate_steps; ++step) {
    plate.add_sources(0, plate_rows);
    plate.spread(0, plate_rows);
  }
  return mean;
}

/// Each PE has some rows, and reads one row of each neighbour.
inline headway::halo::Grid plate_grid(headway::Pe& pe) {
  return {pe, {.cells = {plate_rows, plate_columns}, .blocks = {pe.size(), 1}, .neighbours = headway::halo::star(2)}};
}

}  // namespace program
