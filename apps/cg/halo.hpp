// SPDX-License-Identifier: BSD-3-Clause
/// The product with the matrix on all PEs. The cells at the edges of blocks travel while the PE computes the cells that
/// do not need them.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <vector>

#include "poisson.hpp"

namespace headway::cg {

/// Models a memory bandwidth: a PE sleeps for the time that its vectors take to pass through a memory of so many bytes
/// a second. For machines with simulated processors, or with fewer processors than PEs. 0 charges nothing.
class Processor {
 public:
  Processor(Pe& pe, double bytes_per_second)
      : pe_(pe), ns_per_word_(bytes_per_second > 0 ? 8e9 / bytes_per_second : 0) {}

  /// Passes over `words` words: read or written.
  void charge(std::ptrdiff_t words) {
    if (ns_per_word_ == 0) return;
    owed_ns_ += double(words) * ns_per_word_;
    if (owed_ns_ < 1) return;
    // A sleep that took too long shortens the next one.
    const std::int64_t begin = pe_.engine().now();
    const auto ns = std::int64_t(owed_ns_);
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    ::nanosleep(&time, nullptr);
    owed_ns_ -= double(pe_.engine().now() - begin);
  }

 private:
  Pe& pe_;
  double ns_per_word_, owed_ns_ = 0;
};

/// Makes progress for a PE that computes: handles the messages that have arrived, then sends the messages of their
/// handlers, which otherwise leave only when the PE is idle.
inline void look(Pe& pe) {
  constexpr int rounds_max = 16;
  for (int round = 0; round < rounds_max && pe.progress(); ++round) continue;
}

/// One PE's part of the product. A neighbour may be one product ahead, never two, since it waits for this PE's edges
/// in each product. So two halves, used in turn, hold all arriving cells.
class Product {
 public:
  /// Collective. For each cell `words` are charged to the processor.
  Product(Pe& pe, const Blocks& blocks, const AggregatorOptions& options, Processor& processor, std::ptrdiff_t words)
      : pe_(pe), processor_(processor), words_(words), edges_(blocks.edges(pe.id())), halo_(pe, options) {
    Vector shape(blocks.block(pe.id()));
    for (const Edge& edge : edges_) {
      for (auto& half : came_) half[edge.side].resize(std::size_t(shape.line(edge.side, true).cells));
    }
    halo_.on([this](std::uint32_t side, std::uint32_t half, std::span<const double> cells) {
      std::ranges::copy(cells, came_[half][side].begin());
      ++arrived_[half];
    });
  }

  /// out = A in, where `in` has a ring that this fills. Neighbours' cells are on their way while those that need none
  /// are computed, in which the PE looks for messages `looks` times, for whatever else is under way. Returns this PE's
  /// part of (in, out).
  double run(Vector& in, Vector& out, std::size_t looks) {
    const std::uint32_t half = products_++ % 2;
    send_edges(in, half);

    double sum = 0;
    const std::ptrdiff_t rows = in.rows(), columns = in.columns(), slices = std::ptrdiff_t(looks) + 1;
    for (std::ptrdiff_t slice = 0; slice < slices; ++slice) {
      const std::ptrdiff_t begin = rows * slice / slices, end = rows * (slice + 1) / slices;
      sum += multiply_inner(in, out, begin, end);
      processor_.charge(words_ * (end - begin) * columns);
      if (slice + 1 < slices) look(pe_);
    }

    wait_until(pe_, [&] { return arrived_[half] == edges_.size(); });
    arrived_[half] = 0;
    for (const Edge& edge : edges_) {
      const Vector::Line line = in.line(edge.side, true);
      const std::vector<double>& cells = came_[half][edge.side];
      for (std::ptrdiff_t i = 0; i < line.cells; ++i) line.first[i * line.step] = cells[std::size_t(i)];
    }
    return sum + multiply_rim(in, out);
  }

  std::uint64_t products() const { return products_; }
  /// Messages that come in each product.
  std::size_t partners() const { return edges_.size(); }
  const Aggregator<std::uint32_t, std::uint32_t, std::span<const double>>& halo() const { return halo_; }

 private:
  void send_edges(Vector& in, std::uint32_t half) {
    for (const Edge& edge : edges_) {
      const Vector::Line line = in.line(edge.side, false);
      std::span<const double> cells(line.first, std::size_t(line.cells));
      if (line.step != 1) {
        gathered_.resize(std::size_t(line.cells));
        for (std::ptrdiff_t i = 0; i < line.cells; ++i) gathered_[std::size_t(i)] = line.first[i * line.step];
        cells = gathered_;
      }
      halo_.send(PeId(edge.neighbour), opposite(edge.side), half, cells);
    }
    halo_.flush();
  }

  Pe& pe_;
  Processor& processor_;
  std::ptrdiff_t words_;
  std::vector<Edge> edges_;
  std::array<std::array<std::vector<double>, sides>, 2> came_;  // of each half, from each side
  std::array<std::size_t, 2> arrived_ = {0, 0};
  std::vector<double> gathered_;
  std::uint64_t products_ = 0;
  Aggregator<std::uint32_t, std::uint32_t, std::span<const double>> halo_;
};

}  // namespace headway::cg
