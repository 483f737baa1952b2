// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstddef>
#include <headway/base/short_vector.hpp>
#include <numeric>

namespace headway::base {
namespace {

TEST(ShortVector, holds_what_is_pushed_here_and_elsewhere) {
  ShortVector<int, 3> numbers;
  EXPECT_TRUE(numbers.empty());
  for (int n = 0; n < 100; ++n) {
    numbers.push_back(n);
    ASSERT_EQ(numbers.size(), std::size_t(n) + 1);
    ASSERT_EQ(numbers[std::size_t(n) / 2], n / 2);
    ASSERT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), n * (n + 1) / 2);
  }
}

TEST(ShortVector, pushes_elements_of_its_own) {
  ShortVector<int, 2> numbers;
  numbers.push_back(7);
  for (int i = 0; i < 20; ++i) numbers.push_back(numbers[0]);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 21 * 7);
}

TEST(ShortVector, resizes_with_empty_elements) {
  ShortVector<int, 4> numbers;
  for (const std::size_t size : {3, 1, 4, 2, 10, 0, 9}) {
    const std::size_t before = numbers.size();
    numbers.resize(size);
    ASSERT_EQ(numbers.size(), size);
    for (std::size_t i = before; i < size; ++i) ASSERT_EQ(numbers[i], 0);
    for (int& number : numbers) number = 5;
  }
}

}  // namespace
}  // namespace headway::base
