// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <headway/base/error.hpp>
#include <headway/model/machine.hpp>
#include <string>
#include <vector>

namespace headway::model {
namespace {

TEST(Machine, the_known_ones_have_the_published_values) {
  std::string names;
  for (const Machine& machine : known_machines()) {
    names += machine.name + " ";
    EXPECT_FALSE(machine.source.empty()) << machine.name;
    EXPECT_FALSE(machine.title.empty()) << machine.name;
  }
  EXPECT_EQ(names, "cori cs-2 frontera now paragon stampede2 summit ");

  struct {
    const char* name;
    double beta;
    std::size_t cores;
  } const by_beta[] = {{"summit", 0.15, 42}, {"stampede2", 100, 68}, {"frontera", 0.17, 56}, {"cori", 0.10, 32}};
  for (const auto& [name, beta, cores] : by_beta) {
    const Machine machine = find_machine(name);
    EXPECT_DOUBLE_EQ(costs_of(machine).beta_ns_per_byte, beta) << name;
    EXPECT_DOUBLE_EQ(costs_of(machine).alpha_ns, 1000 * beta) << name;
    EXPECT_EQ(machine.cores, cores) << name;
    EXPECT_FALSE(machine.loggp) << name;
  }
  struct {
    const char* name;
    double o, g, latency, megabytes;
  } const by_loggp[] = {{"now", 2.9, 5.8, 5.0, 38}, {"paragon", 1.8, 7.6, 6.5, 141}, {"cs-2", 1.7, 13.6, 7.5, 47}};
  for (const auto& [name, o, g, latency, megabytes] : by_loggp) {
    const Machine machine = find_machine(name);
    ASSERT_TRUE(machine.loggp) << name;
    EXPECT_DOUBLE_EQ(machine.loggp->overhead_ns, 1e3 * o) << name;
    EXPECT_DOUBLE_EQ(machine.loggp->gap_ns, 1e3 * g) << name;
    EXPECT_DOUBLE_EQ(machine.loggp->latency_ns, 1e3 * latency) << name;
    EXPECT_DOUBLE_EQ(machine.loggp->gap_per_byte_ns * megabytes, 1e3) << name;  // 1 MB/s is 1000 ns a byte
    EXPECT_DOUBLE_EQ(costs_of(machine).alpha_ns, 2e3 * o) << name;
  }
}

TEST(Machine, values_have_units_and_comments_end_lines) {
  const Machine machine = parse_machine("m",
                                        "# a comment\n\n  name=x-1_Y  # of it\nsource = me, today\r\n"
                                        "alpha = 1.5us\nbeta\t=\t2e-3 us/B\ncores = 7\n"
                                        "o = 100 ns\ng = 1e-3 ms\nL = 2e-6 s\nbandwidth = 2 GB/s");
  EXPECT_EQ(machine.name, "x-1_Y");
  EXPECT_EQ(machine.source, "me, today");
  EXPECT_EQ(machine.title, "");
  EXPECT_DOUBLE_EQ(machine.alpha_beta->alpha_ns, 1500);
  EXPECT_DOUBLE_EQ(machine.alpha_beta->beta_ns_per_byte, 2);
  EXPECT_DOUBLE_EQ(machine.loggp->overhead_ns, 100);
  EXPECT_DOUBLE_EQ(machine.loggp->gap_ns, 1000);
  EXPECT_DOUBLE_EQ(machine.loggp->latency_ns, 2000);
  EXPECT_DOUBLE_EQ(machine.loggp->gap_per_byte_ns, 0.5);
  EXPECT_EQ(machine.cores, 7u);
}

std::string error_of(const std::string& text) {
  try {
    parse_machine("m", text);
  } catch (const SettingError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Machine, errors_name_line_value_and_range) {
  const std::string head = "name = x\nsource = y\n", costs = "alpha = 1 ns\nbeta = 1 ns/B\n";
  EXPECT_EQ(error_of(head + costs), "no error");
  const std::string of_times = "': allowed is 0 ns to 1000000000 ns, with a unit of ns, us, ms, s";
  for (const std::string value :
       {"5", "5 km", "ns", "-1 ns", "2 s x", "1.1 s", "nan ns", "inf s", "1e999 ns", "0x1 ns"}) {
    EXPECT_EQ(error_of(head + "alpha = " + value + "\nbeta = 1 ns/B\n"), "m:3: alpha = '" + value + of_times);
  }
  EXPECT_EQ(error_of(head + "alpha = 1 ns\nbeta = 1 ns\n"),
            "m:4: beta = '1 ns': allowed is 0 ns/B to 1000000 ns/B, with a unit of ns/B, us/B");
  EXPECT_EQ(error_of(head + "o = 1 ns\ng = 1 ns\nL = 1 ns\nbandwidth = 0 MB/s\n"),
            "m:6: bandwidth = '0 MB/s': allowed is 0.001 MB/s to 1000000000 MB/s, with a unit of MB/s, GB/s");
  for (const std::string value : {"0", "1000001", "4.5", "-1", "many", "99999999999999999999"}) {
    EXPECT_EQ(error_of(head + costs + "cores = " + value), "m:5: cores = '" + value + "': allowed is 1 to 1000000");
  }
  EXPECT_EQ(error_of("alpha 5 ns"), "m:1: 'alpha 5 ns': allowed is KEY = VALUE");
  EXPECT_EQ(error_of(head + "bata = 1"),
            "m:3: key 'bata' is unknown; allowed are name, title, source, alpha, beta, o, g, L, bandwidth, cores");
  EXPECT_EQ(error_of(head + "alpha =  # none"), "m:3: alpha has no value");
  EXPECT_EQ(error_of(head + costs + "\nalpha = 2 ns"), "m:6: alpha comes twice, first in line 3");
  EXPECT_EQ(error_of("name = a b\nsource = y\n" + costs), "m:1: name = 'a b': allowed is letters, digits, '-' and '_'");
  EXPECT_EQ(error_of("source = y\n" + costs), "m:3: the file needs name");
  EXPECT_EQ(error_of("name = x\n" + costs), "m:3: the file needs source");
  EXPECT_EQ(error_of(head), "m:2: the file needs alpha and beta, or o, g, L and bandwidth");
  EXPECT_EQ(error_of(""), "m:1: the file needs name");
  EXPECT_EQ(error_of(head + "alpha = 1 ns"), "m:3: the file needs beta, as it has others of alpha, beta");
  EXPECT_EQ(error_of(head + costs + "o = 1 ns"), "m:5: the file needs g, as it has others of o, g, L, bandwidth");
}

TEST(Machine, an_unknown_one_gets_the_names_of_all) {
  try {
    find_machine("sumit");
    FAIL();
  } catch (const SettingError& error) {
    EXPECT_STREQ(error.what(),
                 "machine 'sumit' is unknown; allowed are cori, cs-2, frontera, now, paragon, stampede2, summit, and "
                 "files, as ./my.machine");
  }
}

TEST(Machine, a_file_is_read_by_its_path) {
  const std::string path = ::testing::TempDir() + "headway_" + std::to_string(::getpid()) + ".machine";
  std::ofstream(path) << "name = mine\nsource = here\nalpha = 1 us\nbeta = 1 ns/B\n";
  EXPECT_EQ(find_machine(path).name, "mine");
  std::ofstream(path) << "name = mine\nsource = here\nalpha = 1 us\n";
  try {
    find_machine(path);
    FAIL();
  } catch (const SettingError& error) {
    EXPECT_EQ(error.what(), path + ":3: the file needs beta, as it has others of alpha, beta");
  }
  std::ofstream(path) << std::string(100'000, '#');
  EXPECT_THROW(find_machine(path), SettingError);
  ::unlink(path.c_str());
  EXPECT_THROW(find_machine(path), SystemError);
}

}  // namespace
}  // namespace headway::model
