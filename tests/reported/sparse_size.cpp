// SPDX-License-Identifier: BSD-3-Clause
// A reduction over a sparse array that a PE asks for as soon as it has left done_inserting() counts all elements.
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>

struct One : headway::Element<One, headway::Sparse<int>> {
  void leave() {
    if (pe().id() == 0 && pe().size() > 1) migrate_to(1 + std::size_t(index()) % (pe().size() - 1));
  }
  long count() { return 1; }
  template <class A>
  void serialize(A&) {}
};

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    headway::SparseArray<One> all(pe);
    int wrong = 0;
    for (int round = 0; round < 60; ++round) {
      if (pe.id() == 0) {
        all[round].insert();
        all[round].send<&One::leave>();
      }
      all.done_inserting();
      if (pe.id() == std::size_t(round) % pe.size()) {
        const long count = all.reduce<&One::count>(std::plus<>()).get();
        if (count != round + 1) {
          std::printf("round %d: %ld elements gave; size() is %lu\n", round, count,
                      static_cast<unsigned long>(all.size()));
          wrong = 1;
        }
      }
      pe.quiesce();
    }
    return wrong;
  });
}
