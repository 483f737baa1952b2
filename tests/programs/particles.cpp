// SPDX-License-Identifier: BSD-3-Clause
/// Particles walk at random over a grid of cells that is spread over all PEs. A particle is a message: its handler
/// moves it and sends it on, until it has come to rest. The main program only starts them.
#include <vector>

#include "program.hpp"

constexpr std::size_t side = 64, particles = 3000, steps_max = 100;

struct Particle {
  std::uint64_t number;
  std::uint32_t x, y;
  std::uint32_t steps_left;
};

Particle start(std::uint64_t number) {
  const std::uint64_t n = program::random(number);
  return {number, std::uint32_t(n % side), std::uint32_t((n >> 8) % side), std::uint32_t((n >> 16) % (steps_max + 1))};
}

/// One step to a neighbour on the torus, which only the particle itself decides.
void move(Particle& p) {
  const std::uint64_t n = program::random(p.number * steps_max + --p.steps_left);
  std::uint32_t& coordinate = (n & 1) != 0 ? p.x : p.y;
  coordinate = std::uint32_t((coordinate + ((n & 2) != 0 ? 1 : side - 1)) % side);
}

std::size_t cell_of(const Particle& p) { return p.y * side + p.x; }

/// In each cell the sum of the numbers of particles that rest there.
std::vector<std::uint64_t> serial_walk() {
  std::vector<std::uint64_t> resting(side * side);
  for (std::uint64_t i = 0; i < particles; ++i) {
    Particle p = start(i);
    while (p.steps_left > 0) move(p);
    resting[cell_of(p)] += p.number;
  }
  return resting;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const headway::Cyclic layout(side * side, pe.size());
    std::vector<std::uint64_t> resting(layout.count(pe.id()));

    headway::Aggregator<Particle> walk(pe, program::options(argc, argv));
    walk.on([&](Particle p) {  // by value: a copy that the handler may change
      if (p.steps_left == 0) {
        resting[layout.local(cell_of(p))] += p.number;
      } else {
        move(p);
        walk.send(layout.owner(cell_of(p)), p);
      }
    });
    for (std::uint64_t i = pe.id(); i < particles; i += pe.size()) {
      const Particle p = start(i);
      walk.send(layout.owner(cell_of(p)), p);
    }
    const std::uint64_t handled = pe.quiesce();  // however often they were sent on

    const std::vector<std::uint64_t> expected = serial_walk();
    bool right = true;
    for (std::size_t at = 0; at < resting.size(); ++at) right &= resting[at] == expected[layout.global(pe.id(), at)];
    return program::finish(pe, right, "steps and arrivals", handled);
  });
}
