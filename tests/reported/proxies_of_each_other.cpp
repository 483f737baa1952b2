// SPDX-License-Identifier: BSD-3-Clause
// Classes of elements that hold proxies of one another: one of them is incomplete where its proxy is copied.
#include <cstdio>
#include <headway/headway.hpp>

struct Main;
struct Worker : headway::Element<Worker, headway::Index<1>> {
  explicit Worker(headway::Proxy<Main> given) : main(given) {}
  void start();
  headway::Proxy<Main> main;
};
struct Main : headway::Element<Main, headway::Single> {
  void done(int worker) { sum += worker; }
  int sum = 0;
};
void Worker::start() { main.send<&Main::done>(index().at[0]); }

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    headway::Singleton<Main> main(pe);
    headway::Array<Worker> workers(pe, {4}, {}, main.proxy());
    if (pe.id() == 0) workers.broadcast<&Worker::start>();
    pe.quiesce();
    int wrong = 0;
    main.for_each_local([&](Main& one) { wrong = one.sum == 0 + 1 + 2 + 3 ? 0 : 1; });
    if (wrong != 0) std::printf("the sum is wrong\n");
    return wrong;
  });
}
