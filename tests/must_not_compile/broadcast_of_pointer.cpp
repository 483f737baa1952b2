// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address
#include <headway/collective/reduce.hpp>

struct Named {
#ifdef HEADWAY_BAD
  const char* name;
#else
  char name[8];
#endif
};

void use(headway::Pe& pe, const Named& named) { static_cast<void>(headway::broadcast_async(pe, named, 0)); }
