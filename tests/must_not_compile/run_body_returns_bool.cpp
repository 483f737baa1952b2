// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the body of run\(\) returns nothing or an int
#include <headway/headway.hpp>

int main(int argc, char** argv) {
#ifdef HEADWAY_BAD
  return headway::run(argc, argv, [](headway::Pe&) { return true; });
#else
  return headway::run(argc, argv, [](headway::Pe&) { return 0; });
#endif
}
