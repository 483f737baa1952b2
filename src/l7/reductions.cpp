// SPDX-License-Identifier: BSD-3-Clause
// Reductions, broadcasts and locations.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/reduce.hpp>
#include <limits>
#include <span>

#include "state.hpp"

namespace headway::l7 {
namespace {

/// Calls f(T()) for the type of numbers.
template <class F>
void with_type(int type, F f) {
  switch (type) {
    case L7_SHORT: return f(short());  // NOLINT(bugprone-branch-clone): the types differ
    case L7_INT:
    case L7_LOGICAL:
    case L7_INTEGER4: return f(std::int32_t());
    case L7_LONG:
    case L7_LONG_LONG_INT:
    case L7_INTEGER8: return f(std::int64_t());
    case L7_FLOAT:
    case L7_REAL4: return f(float());
    case L7_DOUBLE:
    case L7_REAL8: return f(double());
    default:
      throw BadArgument(fmt::format("type {} is no type of numbers; allowed is {}, {}, {} to {}, and {} to {}", type,
                                    int(L7_SHORT), int(L7_INT), int(L7_LONG), int(L7_DOUBLE), int(L7_LOGICAL),
                                    int(L7_REAL8)));
  }
}

template <class T, class Op>
T reduce_all(T mine, Op op) {
  return state().alone() ? mine : allreduce(*state().pe, mine, op);
}

void require_count(int count) {
  if (count < 0) throw BadArgument(fmt::format("count is {}; expected 0 or more", count));
}

/// One value from all elements of all PEs. An empty PE contributes `from`, which must not change the result.
template <class Op>
int reduce_to_one(const char* call, const void* input, int count, int type, void* output, Op op) {
  return guard(call, [=] {
    require_count(count);
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      const T* const in = static_cast<const T*>(input);
      T mine = Op::template identity<T>();
      for (int i = 0; i != count; ++i) mine = op(mine, in[i]);
      *static_cast<T*>(output) = reduce_all(mine, op);
    });
  });
}

template <class Op>
int reduce_elements(const char* call, const void* input, int count, int type, void* output, Op op) {
  return guard(call, [=] {
    require_count(count);
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      const T* const in = static_cast<const T*>(input);
      T* const out = static_cast<T*>(output);
      std::copy(in, in + count, out);
      if (!state().alone() && count != 0) allreduce_in_place(*state().pe, std::span(out, std::size_t(count)), op);
    });
  });
}

struct Add {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class T>
  T operator()(T a, T b) const {
    return T(a + b);
  }
};
struct Largest {
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::lowest();
  }
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Smallest {
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::max();
  }
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Any {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class T>
  T operator()(T a, T b) const {
    return T(a != T(0) || b != T(0));
  }
};
struct All {
  template <class T>
  static T identity() {
    return T(1);
  }
  template <class T>
  T operator()(T a, T b) const {
    return T(a != T(0) && b != T(0));
  }
};

/// The extreme element of some PEs.
template <class T>
struct Extreme {
  T value;
  std::int64_t count;   // elements of these PEs
  std::int64_t place;   // of the extreme one, counted over these PEs; -1: they have none
  std::int64_t beside;  // the element of the second array
};

/// `better(a, b)`: a comes before b. Contributions are combined in the order of PEs, so the first extreme element wins.
template <class T, class Better>
Extreme<T> extreme(const T* in, int count, Better better) {
  Extreme<T> mine{T(0), count, -1, 0};
  for (int i = 0; i != count; ++i) {
    if (mine.place < 0 || better(in[i], mine.value)) {
      mine.value = in[i];
      mine.place = i;
    }
  }
  return mine;
}

template <class T, class Better>
Extreme<T> extreme_of_all(const Extreme<T>& mine, Better better) {
  return reduce_all(mine, [better](const Extreme<T>& low, const Extreme<T>& high) {
    const bool takes_high = high.place >= 0 && (low.place < 0 || better(high.value, low.value));
    Extreme<T> both = takes_high ? high : low;
    if (takes_high) both.place += low.count;
    both.count = low.count + high.count;
    return both;
  });
}

template <class Better>
int locate(const char* call, const void* input, int count, int type, void* value, int* place, Better better) {
  return guard(call, [=] {
    require_count(count);
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      const Extreme<T> all = extreme_of_all(extreme(static_cast<const T*>(input), count, better), better);
      if (value != nullptr) *static_cast<T*>(value) = all.value;
      *place = int(all.place);
    });
  });
}

template <class Place>
int locate_both(const char* call, const void* input, const void* second, int count, int type, void* value, void* place,
                void* beside) {
  return guard(call, [=] {
    require_count(count);
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      Extreme<T> mine = extreme(static_cast<const T*>(input), count, std::greater<>());
      if (mine.place >= 0) mine.beside = std::int64_t(static_cast<const Place*>(second)[mine.place]);
      const Extreme<T> all = extreme_of_all(mine, std::greater<>());
      *static_cast<T*>(value) = all.value;
      *static_cast<Place*>(place) = Place(all.place);
      *static_cast<Place*>(beside) = Place(all.beside);
    });
  });
}

/// An element on its way to all PEs.
struct Found {
  std::uint64_t bits;
  bool is_there;
};

void get_global(const void* array, int count, int type, int index, void* value) {
  const std::size_t bytes = bytes_of(type);
  require_count(count);
  std::int64_t before = 0, total = 0;
  if (state().alone()) {
    total = count;
  } else {
    const std::vector<int> counts = all_gather(*state().pe, count);
    for (std::size_t i = 0; i != counts.size(); ++i) {
      if (i < state().pe->id()) before += counts[i];
      total += counts[i];
    }
  }
  if (index < 0 || index >= total)  // on all PEs
    throw BadArgument(fmt::format("index {} is not there; the PEs have {} elements", index, total));
  Found mine{0, index >= before && index < before + count};
  if (mine.is_there)
    std::memcpy(&mine.bits, static_cast<const std::byte*>(array) + std::size_t(index - before) * bytes, bytes);
  const Found all = reduce_all(mine, [](const Found& a, const Found& b) { return a.is_there ? a : b; });
  std::memcpy(value, &all.bits, bytes);
}

}  // namespace
}  // namespace headway::l7

using namespace headway::l7;

extern "C" {

int L7_Sum(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_to_one(__func__, input, count, int(type), output, Add());
}
int L7_Max(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_to_one(__func__, input, count, int(type), output, Largest());
}
int L7_Min(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_to_one(__func__, input, count, int(type), output, Smallest());
}
int L7_Any(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_to_one(__func__, input, count, int(type), output, Any());
}
int L7_All(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_to_one(__func__, input, count, int(type), output, All());
}
int L7_Array_Sum(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_elements(__func__, input, count, int(type), output, Add());
}
int L7_Array_Max(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_elements(__func__, input, count, int(type), output, Largest());
}
int L7_Array_Min(void* input, const int count, const enum L7_Datatype type, void* output) {
  return reduce_elements(__func__, input, count, int(type), output, Smallest());
}
int L7_MaxLoc(void* input, const int count, const enum L7_Datatype type, int* output) {
  return locate(__func__, input, count, int(type), nullptr, output, std::greater<>());
}
int L7_MinLoc(void* input, const int count, const enum L7_Datatype type, int* output) {
  return locate(__func__, input, count, int(type), nullptr, output, std::less<>());
}
int L7_MaxValLoc(void* input, const int count, const enum L7_Datatype type, void* val, int* loc) {
  return locate(__func__, input, count, int(type), val, loc, std::greater<>());
}
int L7_MinValLoc(void* input, const int count, const enum L7_Datatype type, void* val, int* loc) {
  return locate(__func__, input, count, int(type), val, loc, std::less<>());
}
int L7_MaxValLocLoc_Int4(void* input, void* loc2input, const int count, const enum L7_Datatype type, void* val,
                         void* loc, void* loc2) {
  return locate_both<std::int32_t>(__func__, input, loc2input, count, int(type), val, loc, loc2);
}
int L7_MaxValLocLoc_Int8(void* input, void* loc2input, const int count, const enum L7_Datatype type, void* val,
                         void* loc, void* loc2) {
  return locate_both<std::int64_t>(__func__, input, loc2input, count, int(type), val, loc, loc2);
}
int L7_GetGlobal(void* array, const int count, const enum L7_Datatype type, const int index, void* val) {
  return guard(__func__, [=] { get_global(array, count, int(type), index, val); });
}
int L7_Broadcast(void* data_buffer, const int count, const enum L7_Datatype type, const int root_pe) {
  return guard(__func__, [=] {
    const std::size_t bytes = bytes_of(int(type)) * std::size_t(count);
    require_count(count);
    if (root_pe < 0 || root_pe >= L7_Get_Numpes())
      throw BadArgument(fmt::format("root {} is not there; this run has PEs 0 to {}", root_pe, L7_Get_Numpes() - 1));
    if (state().alone() || count == 0) return;
    headway::broadcast_in_place(*state().pe, std::span(static_cast<std::byte*>(data_buffer), bytes),
                                std::size_t(root_pe));
  });
}

}  // extern "C"
