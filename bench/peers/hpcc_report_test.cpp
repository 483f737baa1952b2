// SPDX-License-Identifier: BSD-3-Clause
#include "hpcc_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace headway::peers {
namespace {

const std::string report_of_3_ranks =
    "Begin of MPIRandomAccess section.\n"
    "Running on 3 processors\n"
    "Total Main table size = 2^10 = 1024 words\n"
    "PE Main table size = (2^10)/3  = 342 words/PE MAX\n"
    "Default number of updates (RECOMMENDED) = 4096\n"
    "Number of updates EXECUTED = 4000 (for a TIME BOUND of 60.00 secs)\n"
    "CPU time used = 0.005181 seconds\n"
    "Real time used = 0.712272 seconds\n"
    "0.000005751 Billion(10^9) Updates    per second [GUP/s]\n"
    "Verification:  CPU time used = 0.005205 seconds\n"
    "Verification:  Real time used = 0.031644 seconds\n"
    "Found 7 errors in 1024 locations (passed).\n"
    "\n";

TEST(HpccReport, is_read_once_it_is_complete) {
  EXPECT_FALSE(read_hpcc(""));
  EXPECT_FALSE(read_hpcc(report_of_3_ranks));
  const auto report = read_hpcc(report_of_3_ranks + "End of MPIRandomAccess section.\nBegin of what comes then\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->log2, 10u);
  EXPECT_EQ(report->updates, 4000u);
  EXPECT_DOUBLE_EQ(report->seconds, 0.712272);
  EXPECT_EQ(report->errors, 7u);
  EXPECT_TRUE(report->passed);
}

TEST(HpccReport, nothing_is_made_up_for_what_is_not_there) {
  for (const std::string label : {"Total Main", "Real time used", "Found"}) {
    std::string text = report_of_3_ranks + "End of MPIRandomAccess section.\n";
    text.erase(text.find("\n" + label), label.size() + 1);
    EXPECT_FALSE(read_hpcc(text)) << label;
  }
  EXPECT_FALSE(
      read_hpcc("Begin of MPIRandomAccess section.\nFailed to allocate memory for the main table.\n"
                "End of MPIRandomAccess section.\n"));
}

TEST(HpccInput, asks_for_a_matrix_that_holds_the_table_and_no_larger_one) {
  for (unsigned log2 = hpcc_log2_min; log2 <= 40; ++log2) {
    std::istringstream lines(hpcc_input(log2, 3));
    std::string line;
    for (int number = 1; number <= 6; ++number) std::getline(lines, line);
    const double words = std::stod(line) * std::stod(line);
    EXPECT_EQ(unsigned(std::log2(words)), log2) << line;
  }
}

}  // namespace
}  // namespace headway::peers
