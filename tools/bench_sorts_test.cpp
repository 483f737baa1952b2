// SPDX-License-Identifier: BSD-3-Clause
/// `headway bench radix` and `headway bench sample` as users start them.
#include <gtest/gtest.h>

#include <record/record.hpp>
#include <set>
#include <string>

#include "run_command.hpp"

namespace headway::tools {
namespace {

TEST(BenchSorts, all_ways_and_peers_sort_the_same_keys_and_are_compared_by_keys) {
  const std::string here = headway({"bench", "--list"}).output;
  for (const std::string name : {"radix", "sample"}) {
    const ChildResult result = headway({"bench", name, "--keys", "30000", "--pes", "2", "--repeat", "1", "--seed", "3",
                                        "--peer", "available", "--json", "-"});
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto records = bench::Json::parse(result.output)["records"];
    std::set<std::string> labels;
    std::size_t compared = 0;
    for (const auto& record : records) {
      EXPECT_EQ(record["verified"], true) << record;
      EXPECT_EQ(record["keys"], 30'000);
      EXPECT_EQ(record["checksum"], records[0]["checksum"]);
      labels.insert(record["label"].get<std::string>());
    }
    const std::set<std::string> ways =
        name == "radix" ? std::set<std::string>{"store", "bulk"} : std::set<std::string>{"std", "radix"};
    for (const std::string& way : ways) EXPECT_TRUE(labels.contains(way)) << way;
    if (here.find("mpi-samplesort:") == std::string::npos) continue;
    for (const char* peer : {"mpi-samplesort", "mpi-samplesort-radix", "std-sort"}) EXPECT_TRUE(labels.contains(peer));
    // Compared with the first way and with the fastest peer.
    for (const auto& record : records) {
      const std::string label = record.at("label");
      if (record.at("mode").get<std::string>().starts_with("peer:") && records[0].at("ratio_to").contains(label)) {
        const double own = records[0].at("keys_per_second"), of_peer = record.at("keys_per_second");
        EXPECT_DOUBLE_EQ(records[0].at("ratio_to").at(label).get<double>(), own / of_peer);
        ++compared;
      }
    }
    EXPECT_EQ(compared, 1u);
  }
}

}  // namespace
}  // namespace headway::tools
