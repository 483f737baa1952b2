// SPDX-License-Identifier: BSD-3-Clause
// Programs and `headway run` without a launcher, `headway doctor`, and the plug-in of the standard ABI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "launched_test.hpp"
#include "session.hpp"

namespace headway::testing::launched {
namespace {

TEST(Binary, links_no_mpi) {
  const Outcome outcome = run_to_end({"/bin/sh", "-c", "ldd \"$1\"", "sh", HEADWAY_RANDOMACCESS});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "libc.so")) << outcome.output;
  EXPECT_FALSE(contains(outcome.output, "mpi")) << outcome.output;
}

TEST(StandardAbi, carries_frames_for_a_launcher_whose_mpi_has_no_plug_in_of_its_own) {
  if (!has_plugin(mpi_abi)) GTEST_SKIP() << "the build found no mpicc_abi";
  const std::string plugin = std::string("/libheadway-") + mpi_abi + ".so";
  const std::string folder = ::testing::TempDir() + "/plugins_" + std::to_string(getpid());
  fs::create_directory(folder);
  fs::create_symlink(HEADWAY_PLUGINS + plugin, folder + plugin);
  const Variables alone = settings({{"HEADWAY_PLUGIN_DIR", folder}});
  EXPECT_EQ(run_to_end(under(mpi_abi, 3, {victim(), "many_times", "2"}), alone).status, 0);
  if (!launcher_of("openmpi").empty()) {  // the library is that of MPICH
    const Outcome outcome = run_to_end(under("openmpi", 3, {victim(), "hello"}), alone);
    EXPECT_EQ(outcome.status, 120) << outcome.errors;
    const std::vector<std::string> lines = lines_of_headway(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_TRUE(contains(lines[0], "has started this program 3 times")) << lines[0];
    EXPECT_TRUE(contains(lines[0], "libmpi_abi.so.1 is that of MPICH here: start it with the mpirun of MPICH, or"))
        << lines[0];
  }
  fs::remove_all(folder);
}

TEST(Command, starts_processes_over_ucx_that_must_come_to_run) {
  if (!has_plugin(ucx)) GTEST_SKIP() << "the build found no UCX";
  const Outcome outcome = run_to_end({headway_command(), "run", "--transport", ucx, "-n", "2", "true"});
  EXPECT_EQ(outcome.status, 121) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "ended without having called headway::run()")) << outcome.errors;
}

TEST(Command, over_hosts_takes_ucx_and_names_of_hosts) {
  for (const auto& [options, said] :
       {std::pair<std::vector<std::string>, const char*>{{"--hosts", "a,b"}, "allowed is ucx with --hosts"},
        {{"--hosts", "a,,b", "--transport", ucx}, "--hosts: 'a,,b' is not allowed"},
        {{"--debug", "0", "--transport", ucx}, "--debug: not allowed with HEADWAY_TRANSPORT=ucx"},
        {{"--hosts", "a,b,c", "--transport", ucx, "-n", "2"}, "--hosts names 3 hosts, and this run has 2 processes"}}) {
    std::vector<std::string> command = {headway_command(), "run"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {victim(), "hello"});
    const Outcome outcome = run_to_end(command);
    EXPECT_NE(outcome.status, 0);
    EXPECT_TRUE(contains(outcome.errors, said)) << outcome.errors;
  }
}

TEST(Program, over_ucx_starts_itself) {
  if (!has_plugin(ucx)) GTEST_SKIP() << "the build found no UCX";
  const Outcome outcome =
      run_to_end({HEADWAY_RANDOMACCESS, "--log2", "12"}, settings({{"HEADWAY_TRANSPORT", ucx}, {"HEADWAY_PES", "3"}}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "3 PEs")) << outcome.output;
}

TEST(Command, doctor_says_what_a_container_lacks) {
  if (run_to_end(confined({"true"})).status != 0)
    GTEST_SKIP() << "no mount namespace can be made here, or no call forbidden";
  const Outcome outcome = run_to_end(confined({headway_command(), "doctor"}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  for (const char* line :
       {"warning +CMA +process_vm_readv: Operation not permitted", "-> large transfers go through shared frames",
        "/dev/shm +64 MiB; Headway itself needs none"}) {
    EXPECT_TRUE(std::regex_search(outcome.output, std::regex(line))) << line << " in " << outcome.output;
  }
  const bool may_need_it = std::ranges::any_of(std::array{"openmpi", "mpich", mpi_abi, ucx}, has_plugin);
  EXPECT_EQ(contains(outcome.output, "containers: --shm-size=1g"), may_need_it) << outcome.output;
}

TEST(Command, doctor_knows_whose_mpirun_it_finds) {
  for (const char* mpi : {"openmpi", "mpich"}) {
    if (launcher_of(mpi).empty()) continue;
    const Outcome outcome = run_to_end({headway_command(), "doctor"});
    const std::string line =
        launcher_of(mpi) + ": " + (mpi == std::string("openmpi") ? "Open MPI's, with" : "MPICH's, with");
    EXPECT_TRUE(contains(outcome.output, line)) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, has_plugin(mpi) ? line + " its plug-in" : line + "out its plug-in"))
        << outcome.output;
    if (geteuid() != 0 || mpi != std::string("openmpi")) continue;
    EXPECT_TRUE(contains(outcome.output, "-> mpirun --allow-run-as-root")) << outcome.output;
  }
}

TEST(Command, starts_no_processes_of_an_mpi) {
  const Outcome outcome = run_to_end({headway_command(), "run", "--transport", "mpi", victim(), "hello"});
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "mpirun")) << outcome.errors;
}

}  // namespace
}  // namespace headway::testing::launched
