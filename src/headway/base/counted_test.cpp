// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/base/counted.hpp>

namespace headway::base {
namespace {

TEST(Counted, of_one_is_singular_and_of_all_else_plural) {
  EXPECT_EQ(counted(0, "message"), "0 messages");
  EXPECT_EQ(counted(1, "message"), "1 message");
  EXPECT_EQ(counted(2u, "message"), "2 messages");
  EXPECT_EQ(counted(~std::uint64_t(0), "PE"), "18446744073709551615 PEs");
  EXPECT_EQ(counted(1, "process"), "1 process");
  EXPECT_EQ(counted(3, "process"), "3 processes");
  EXPECT_EQ(counted(1, "index", "indices"), "1 index");
  EXPECT_EQ(counted(2, "index", "indices"), "2 indices");
  EXPECT_EQ(by_number(1, "is", "are"), "is");
  EXPECT_EQ(by_number(0, "is", "are"), "are");
}

}  // namespace
}  // namespace headway::base
