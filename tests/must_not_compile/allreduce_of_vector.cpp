// expect: headway: a value to be reduced is trivially copyable and carries no address
// names: std::vector
#include <array>
#include <headway/collective/allreduce.hpp>
#include <vector>

#ifdef HEADWAY_BAD
using Value = std::vector<int>;
#else
using Value = std::array<int, 3>;
#endif

Value use(headway::Pe& pe, const Value& value) {
  return headway::allreduce(pe, value, [](const Value& a, const Value&) { return a; });
}
