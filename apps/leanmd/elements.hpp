/// Cells and computes, as elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <vector>

#include "physics.hpp"

namespace headway::leanmd {

/// What all elements are told.
struct Plan {
  Box box;
  std::uint32_t steps = 0, exchange_every = 1, wander = 0;

  /// The element has done its part of the step.
  template <class T>
  void end_step(T& element, std::uint32_t step) const {
    if (wander != 0 && (step + 1) % wander == 0) element.migrate_to((element.pe().id() + 1) % element.pe().size());
  }
};

class Cell;

/// Where forces go back to: the cell, and which of its meetings it is.
struct From {
  std::uint32_t cell, meeting, side;
};

/// A pair of cells: {the first one, the way to the second}; way 0 is the cell with itself.
class Compute : public Element<Compute, Index<2>> {
 public:
  Compute() = default;
  Compute(const Plan& plan, const Proxy<Cell>& cells) : plan_(plan), cells_(cells) {}

  void positions(std::uint32_t, const From& from, std::span<const Vector> positions) {
    from_[from.side] = from;
    positions_[from.side].assign(positions.begin(), positions.end());
  }
  /// 0: half around a box of few cells the other of the pair is the first, and this one is never asked.
  std::size_t cells(std::uint32_t) const { return index()[1] == 0 ? 1 : 2; }
  void evaluate(std::uint32_t step);

  template <class Archive>
  void serialize(Archive& archive) {
    archive(plan_, cells_, from_, positions_);
  }

  static constexpr auto triggers = headway::triggers(trigger<&Compute::evaluate, &Compute::positions>(&Compute::cells));
  static constexpr auto aggregation = entries(entry<&Compute::positions>{{.topology = grid(1)}});

 private:
  Plan plan_;
  Proxy<Cell> cells_;
  std::array<From, 2> from_{};
  std::array<std::vector<Vector>, 2> positions_;
};

/// Named by its place in the box.
class Cell : public Element<Cell, Index<3>> {
 public:
  Cell() = default;
  explicit Cell(const Plan& plan) : plan_(plan) {
    know_others();
    content_ = Content(plan.box, number(), meetings_.size());
  }
  void arrived() { know_others(); }

  void meet(const Proxy<Compute>& computes) { computes_ = computes; }
  /// Forces are to be evaluated for all steps before `end`; then it waits.
  void run_until(std::uint32_t end) {
    end_ = end;
    send_positions();
  }

  void forces(std::uint32_t, std::uint32_t meeting, double energy, std::span<const Vector> forces) {
    content_.take(meeting, energy, forces);
  }
  std::size_t meetings(std::uint32_t) const { return meetings_.size(); }
  void advance(std::uint32_t step) {
    content_.advance(step, plan_.steps);
    step_ = step + 1;
    if (step_ <= plan_.steps && exchanges_before(step_, plan_.exchange_every))
      send_leaving();
    else
      send_positions();
    plan_.end_step(*this, step);
  }

  void movers(std::uint32_t, std::span<const Particle> particles) {
    come_.insert(come_.end(), particles.begin(), particles.end());
  }
  /// From its neighbours, and from itself, when it has taken out what leaves.
  std::size_t givers(std::uint32_t) const { return neighbours_.size() + 1; }
  void exchanged(std::uint32_t) {
    content_.join(come_);
    come_.clear();
    content_.sort();
    send_positions();
  }

  std::uint32_t step() const { return step_; }
  Summary summary() const { return content_.summary(); }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(plan_, computes_, content_, step_, end_, come_);
  }

  static constexpr auto triggers = headway::triggers(trigger<&Cell::advance, &Cell::forces>(&Cell::meetings),
                                                     trigger<&Cell::exchanged, &Cell::movers>(&Cell::givers));
  static constexpr auto aggregation =
      entries(entry<&Cell::forces>{{.topology = grid(1)}}, entry<&Cell::movers>{{.topology = grid(1)}});

 private:
  std::uint32_t number() const { return plan_.box.number(index().at); }
  void know_others() {
    meetings_ = plan_.box.meetings(number());
    neighbours_ = plan_.box.neighbours(number());
  }
  void send_positions() {
    if (step_ >= end_) return;
    Collection<Compute>& computes = computes_.collection();
    const std::vector<Vector> positions = content_.positions();
    const std::uint32_t cell = number();
    for (std::uint32_t i = 0; i < meetings_.size(); ++i) {
      const auto& [first, way, side] = meetings_[i];
      computes[{first, way}].send<&Compute::positions>(step_, From{cell, i, side}, positions);
    }
  }
  void send_leaving() {
    const std::uint32_t round = step_ / plan_.exchange_every - 1;
    const auto leaving = content_.take_leaving(plan_.box, number(), neighbours_);
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      const Coordinates there = plan_.box.coordinates(neighbours_[i]);
      all()[{there[0], there[1], there[2]}].send<&Cell::movers>(round, leaving[i]);
    }
    all()[index()].send<&Cell::movers>(round, std::span<const Particle>());
  }

  Plan plan_;
  Proxy<Compute> computes_;
  Content content_;
  std::uint32_t step_ = 0, end_ = 0;  // the step that is evaluated, or is to be; before which it waits
  std::vector<Particle> come_;
  std::vector<Meeting> meetings_;  // follow from the box
  std::vector<std::uint32_t> neighbours_;
};

inline void Compute::evaluate(std::uint32_t step) {
  Collection<Cell>& cells = cells_.collection();
  const auto give = [&](unsigned side, double energy, const std::vector<Vector>& forces) {
    const Coordinates at = plan_.box.coordinates(from_[side].cell);
    cells[{at[0], at[1], at[2]}].send<&Cell::forces>(step, from_[side].meeting, energy, forces);
    positions_[side].clear();
  };
  std::vector<Vector> first(positions_[0].size(), Vector{0, 0, 0});
  if (index()[1] == 0) {
    const double energy = interact(plan_.box, positions_[0], positions_[0], first, first);
    give(0, energy, first);
  } else {
    std::vector<Vector> second(positions_[1].size(), Vector{0, 0, 0});
    const double energy = interact(plan_.box, positions_[0], positions_[1], first, second);
    give(0, energy / 2, first);
    give(1, energy / 2, second);
  }
  plan_.end_step(*this, step);
}

}  // namespace headway::leanmd
