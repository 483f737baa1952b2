// SPDX-License-Identifier: BSD-3-Clause
/// How many updates `headway bench randomaccess` makes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_command.hpp"

namespace headway::tools {
namespace {

TEST(BenchUpdates, are_fewer_in_frames_of_their_own_where_their_number_is_not_given) {
  std::vector<std::string> line = {"bench", "randomaccess", "--mode", "1d,direct", "--log2",
                                   "12",    "--pes",        "1",      "--repeat",  "1"};
  const std::string table = headway(line).output;
  EXPECT_NE(table.find(": 16777216 messages (direct: 4194304) of 8 bytes"), std::string::npos) << table;
  line.insert(line.end(), {"--updates-per-word", "8"});
  const std::string same = headway(line).output;
  EXPECT_NE(same.find(": 32768 messages of 8 bytes"), std::string::npos) << same;
}

}  // namespace
}  // namespace headway::tools
