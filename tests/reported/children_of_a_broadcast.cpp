// SPDX-License-Identifier: BSD-3-Clause
// An element that is inserted by the method that a broadcast runs does not receive that broadcast, wherever its home
// is.
#include <cstdio>
#include <headway/headway.hpp>

struct Block : headway::Element<Block, headway::Sparse<long>> {
  void split() {
    for (long child = 0; child < 2; ++child) all()[2 * index() + child].insert();
    erase();
  }
  template <class A>
  void serialize(A&) {}
};

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    int wrong = 0;
    for (long round = 0; round < 20; ++round) {
      headway::SparseArray<Block> blocks(pe);
      if (pe.id() == 0) blocks[1 + round].insert();
      for (unsigned long expected = 2; expected <= 4; expected *= 2) {
        blocks.done_inserting();
        if (pe.id() == 0) blocks.broadcast<&Block::split>();
        blocks.done_inserting();
        if (blocks.size() == expected) continue;
        if (pe.id() == 0)
          std::printf("round %ld: %lu blocks instead of %lu\n", round, static_cast<unsigned long>(blocks.size()),
                      expected);
        wrong = 1;
      }
      pe.quiesce();
    }
    return wrong;
  });
}
