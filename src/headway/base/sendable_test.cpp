// SPDX-License-Identifier: BSD-3-Clause
// The types that are sendable, and the fields that are reflected.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <functional>
#include <headway/base/serialize.hpp>
#include <headway/base/serialize_test.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace headway::serialize_test {
namespace {

TEST(Reflect, fields_are_counted_as_declared_whatever_they_are) {
  struct Empty {};
  struct Arrays {
    char text[4096];
    int matrix[2][3];
    Point points[3];
    Point point;
    std::array<int, 7> array;
  };
  struct Unmovable {
    int a;
    std::unique_ptr<int> b;
    std::string c = "default";
  };
  struct Base {};
  struct Derived : Base {
    int a;
    int b;
  };
  static_assert(field_count<Empty> == 0);
  static_assert(field_count<Point> == 2);
  static_assert(field_count<const Arrays> == 5);
  static_assert(field_count<Unmovable> == 3);
  static_assert(field_count<Derived> == 2);
  static_assert(field_count<Mixed> == 8);
}

TEST(Reflect, thirty_two_fields_are_visited_and_a_thirty_third_is_refused) {
  struct Most {
    int a[9], b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff;
  };
  struct TooMany {
    Most most;
    int b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff, gg;
    std::string text;
  };
  static_assert(field_count<Most> == 32);
  static_assert(!Reflectable<TooMany>);
  static_assert(!Sendable<TooMany>);
  Most most{};
  int fields = 0;
  for_each_field(most, [&](auto& field) {
    ++fields;
    if constexpr (std::is_same_v<decltype(field), int&>) field = fields;
  });
  EXPECT_EQ(fields, 32);
  EXPECT_EQ(most.b, 2);
  EXPECT_EQ(most.ff, 32);
}

TEST(Reflect, what_cannot_be_named_is_not_reflected) {
  struct Union {
    int kind;
    union {
      int i;
      double d;
    };
  };
  struct Base {
    int a;
  };
  struct Derived : Base {
    int b;
  };
  struct Reference {
    int& r;
  };
  struct Required {
    int a;
    Id id;
  };
  static_assert(!Reflectable<Union> && !Reflectable<Derived> && !Reflectable<Reference> && !Reflectable<Required>);
  static_assert(!Reflectable<Account> && !Reflectable<int> && !Reflectable<Base[2]>);
}

TEST(Reflect, visiting_works_in_constant_expressions_and_respects_const) {
  constexpr auto sum = [] {
    Point point{1, 2};
    for_each_field(point, [](auto& field) { field += 1; });
    const Point& view = point;
    return visit_fields(view, [](const int& x, const double& y) { return x + static_cast<int>(y); });
  }();
  static_assert(sum == 5);
}

TEST(Sendable, types_without_addresses_are_fixed_size_without_opt_in) {
  static_assert(FixedSize<int> && FixedSize<bool> && FixedSize<Colour> && FixedSize<Point> && FixedSize<Point[2][3]>);
  static_assert(FixedSize<std::complex<double>> && FixedSize<std::chrono::nanoseconds> && FixedSize<std::bitset<77>>);
  static_assert(FixedSize<std::array<Point, 4>> && FixedSize<std::optional<int>> && FixedSize<Id>);
  static_assert(!FixedSize<std::string> && !FixedSize<Names> && !FixedSize<Cached> && !FixedSize<int&>);
  struct lambda {
    double lambda;
  };
  struct Polynomial {
    double a;
    double operator()(double x) const { return a * x; }
  };
  static_assert(FixedSize<lambda> && FixedSize<Polynomial>);
  [[maybe_unused]] const auto local = [] {
    struct Local {
      int x;
    };
    static_assert(FixedSize<Local>);
  };
}

TEST(Sendable, containers_aggregates_and_classes_with_a_serialize_member_are_serializable) {
  static_assert(Serializable<Names> && Serializable<Mixed> && Serializable<Tree> && Serializable<Account>);
  static_assert(Serializable<Cached> && Serializable<std::vector<Cached>> && Serializable<std::pair<int, Cached>>);
  static_assert(Serializable<std::vector<Id>> && Serializable<std::set<std::string, std::greater<std::string>>>);
}

template <class T>
struct Hidden {
  std::string s;
  T hidden;
  int i;
};
template <class T>
constexpr bool refused_at_any_depth =
    !Sendable<T> && !Sendable<std::pair<int, T>> && !Sendable<std::optional<T>> && !Sendable<std::variant<int, T>> &&
    !Sendable<std::vector<T>> && !Sendable<std::map<int, T>> && !Sendable<T[2]> && !Sendable<Hidden<T>> &&
    !Sendable<Hidden<T[2]>> && !Sendable<std::vector<Hidden<Hidden<T>>>>;

TEST(Sendable, addresses_are_refused_at_any_depth) {
  static_assert(refused_at_any_depth<int*> && refused_at_any_depth<int Point::*> && refused_at_any_depth<void (*)()>);
  static_assert(refused_at_any_depth<std::string_view> && refused_at_any_depth<std::span<int>>);
  static_assert(refused_at_any_depth<std::vector<int>::iterator> && refused_at_any_depth<std::map<int, int>::iterator>);
  static_assert(refused_at_any_depth<std::reference_wrapper<int>> && refused_at_any_depth<std::unique_ptr<int>>);
  static_assert(refused_at_any_depth<std::shared_ptr<int>> && refused_at_any_depth<std::weak_ptr<int>>);
  static_assert(refused_at_any_depth<std::function<void()>> && refused_at_any_depth<std::initializer_list<int>>);
  int number = 0;
  const auto closure = [&number] { return number; };
  const auto generic = [](auto x) { return x; };
  static_assert(refused_at_any_depth<std::remove_const_t<decltype(closure)>>);
  static_assert(refused_at_any_depth<std::remove_const_t<decltype(generic)>>);
  struct Reference {
    const int& r;
  };
  static_assert(!Sendable<Reference> && !Sendable<int&> && !Sendable<std::tuple<int&>>);
  EXPECT_EQ(closure() + generic(0), 0);
}

}  // namespace
}  // namespace headway::serialize_test
