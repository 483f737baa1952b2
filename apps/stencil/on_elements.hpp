// SPDX-License-Identifier: BSD-3-Clause
/// Several blocks on each PE, elements of an array, which send to blocks wherever these are.
#pragma once

#include <headway/headway.hpp>
#include <span>
#include <utility>
#include <vector>

#include "grid.hpp"

namespace headway::stencil {

/// What all blocks are told.
struct Plan {
  Blocks blocks = Blocks(1, 1);
  bool whole_edges = false;  // an edge is one message, not one for each cell
};

/// A step is over when the cells around the block have come; those of the next step wait in the library until then.
class Block : public Element<Block, Index<2>> {
 public:
  Block() = default;
  explicit Block(const Plan& plan) : plan_(plan) {
    know_edges();
    reset();
  }
  void arrived() {
    know_edges();
    next_ = now_;
  }

  /// Back to what cells hold at first. Steps are counted on.
  void reset() { now_ = next_ = Field(plan_.blocks.block(number())); }
  /// All steps before `end` are to be made; then it waits.
  void run_until(std::uint32_t end) {
    end_ = end;
    if (edges_.empty()) {
      while (step_ < end_) make_step(step_);
    } else if (step_ < end_) {
      send_edges();
    }
  }

  void cell(std::uint32_t, std::uint32_t place, double value) { now_.cells()[place] = value; }
  void edge(std::uint32_t, std::uint32_t first, std::uint32_t stride, std::span<const double> values) {
    double* to = now_.cells() + first;
    for (std::size_t i = 0; i < values.size(); ++i, to += stride) *to = values[i];
  }
  /// Messages of a step.
  std::uint64_t expected() const {
    if (plan_.whole_edges) return edges_.size();
    std::uint64_t cells = 0;
    for (const Edge& edge : edges_) cells += std::uint64_t(edge.cells);
    return cells;
  }
  void make_step(std::uint32_t step) {
    send_edges();  // neighbours may have been told to run before this one is
    relax(now_, next_);
    std::swap(now_, next_);
    step_ = step + 1;
    sent_ = false;
    if (step_ < end_) send_edges();
  }

  std::uint32_t step() const { return step_; }
  const Field& field() const { return now_; }
  std::uint64_t checksum() const { return now_.checksum(); }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(plan_, now_, step_, end_, sent_);
  }

  static constexpr auto triggers =
      headway::triggers(trigger<&Block::make_step, &Block::cell, &Block::edge>(&Block::expected));
  static constexpr auto aggregation =
      entries(entry<&Block::cell>{{.topology = grid(1)}}, entry<&Block::edge>{{.topology = grid(1)}});

 private:
  std::size_t number() const { return std::size_t(index()[0] * plan_.blocks.columns() + index()[1]); }
  void know_edges() { edges_ = plan_.blocks.edges(number()); }
  /// Of this step, once.
  void send_edges() {
    if (std::exchange(sent_, true)) return;
    const auto columns = std::size_t(plan_.blocks.columns());
    for (const Edge& edge : edges_) {
      const ElementRef<Block> there = all()[{edge.neighbour / columns, edge.neighbour % columns}];
      const double* const cells = now_.cells() + edge.here;
      if (plan_.whole_edges) {
        std::vector<double> values;
        for (std::ptrdiff_t i = 0; i < edge.cells; ++i) values.push_back(cells[i * edge.stride]);
        there.send<&Block::edge>(step_, std::uint32_t(edge.there), std::uint32_t(edge.stride), values);
        continue;
      }
      for (std::ptrdiff_t i = 0; i < edge.cells; ++i) {
        there.send<&Block::cell>(step_, std::uint32_t(edge.there + i * edge.stride), cells[i * edge.stride]);
      }
    }
    // Where no other block fills these buffers. Else they leave when the PE has nothing else to do.
    if (all().local_size() == 1) all().flush();
  }

  Plan plan_;
  Field now_, next_;
  std::uint32_t step_ = 0, end_ = 0;  // the step that is to be made; before which it waits
  bool sent_ = false;                 // the edges of this step
  std::vector<Edge> edges_;           // follow from the plan
};

}  // namespace headway::stencil
