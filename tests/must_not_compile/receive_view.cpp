// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: std::span
#include <span>
#include <vector>

#include <headway/base/serialize.hpp>

#ifdef HEADWAY_BAD
using Numbers = std::span<const int>;
#else
using Numbers = std::vector<int>;
#endif

Numbers read(headway::ByteReader& reader) { return headway::deserialize<Numbers>(reader); }
