// SPDX-License-Identifier: BSD-3-Clause
// Programs with processes that a launcher starts: one binary, built without MPI and UCX, under the mpirun of each MPI
// that is installed, and over UCX under `headway run`.
#include "launched_test.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "session.hpp"

namespace headway::testing::launched {
namespace {

constexpr double seconds_to_end = 5;  // the contract's bound

class Launched : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_plugin(mpi())) GTEST_SKIP() << "the build found no headers of " << mpi();
    if (launcher_of(mpi()).empty()) GTEST_SKIP() << "there is no mpirun." << mpi() << " here";
  }
  std::string mpi() const { return GetParam(); }
  bool is_mpi() const { return mpi() != ucx; }
  /// An MPI's launcher does not say whether its processes want the standard ABI.
  Variables settings(const Variables& more = {}, const std::string& share = "process") const {
    const Variables named = mpi() == mpi_abi ? Variables{{"HEADWAY_TRANSPORT", mpi_abi}} : Variables{};
    return launched::settings(named + more, share);
  }
  std::vector<std::string> under(std::size_t processes, const std::vector<std::string>& command) const {
    return launched::under(mpi(), processes, command);
  }
  /// The same for so many PEs, so many in each process, which the settings say as well: `headway run` counts PEs.
  std::vector<std::string> under_for(std::size_t pes, std::size_t pes_per_process,
                                     const std::vector<std::string>& command) const {
    return under(is_mpi() ? (pes + pes_per_process - 1) / pes_per_process : pes, command);
  }
};

INSTANTIATE_TEST_SUITE_P(, Launched, ::testing::Values("openmpi", "mpich", mpi_abi, ucx), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// --- what works

TEST_P(Launched, random_updates_are_verified_in_all_modes) {
  const std::vector<const char*> some[] = {{"direct"}, {"1d"}, {"2d"}, {"pp"}};
  const std::vector<const char*> all = {"direct", "1d", "2d", "pp"};
  for (const std::size_t processes : {1, 2, 3, 4}) {
    for (const char* mode : repeats(1) == 1 ? some[processes - 1] : all) {
      const Outcome outcome = run_to_end(
          under(processes, {HEADWAY_RANDOMACCESS, "--log2", "12", "--updates-per-word", "16", "--mode", mode}),
          settings());
      EXPECT_EQ(outcome.status, 0) << mode << outcome.errors;
      EXPECT_TRUE(contains(outcome.output, "randomaccess " + std::string(mode) + ": " + std::to_string(processes) +
                                               (processes == 1 ? " PE," : " PEs,")))
          << outcome.output;
      EXPECT_TRUE(contains(outcome.output, "verified")) << outcome.output;
    }
  }
}

TEST_P(Launched, several_pes_in_a_process_and_fewer_in_the_last_are_verified) {
  for (const std::string share : {"process", "host"}) {
    const std::vector<const char*> some = {share == "host" ? "direct" : "2d", share == "host" ? "wps" : "pp"};
    const std::vector<const char*> all = {"direct", "2d", "wps", "pp"};
    for (const char* mode : repeats(1) == 1 ? some : all) {
      const Outcome outcome = run_to_end(
          under_for(5, 3, {HEADWAY_RANDOMACCESS, "--log2", "12", "--updates-per-word", "16", "--mode", mode}),
          settings({{"HEADWAY_PES_PER_PROCESS", "3"}, {"HEADWAY_PES", "5"}}, share));
      EXPECT_EQ(outcome.status, 0) << mode << outcome.errors;
      EXPECT_TRUE(contains(outcome.output, ": 5 PEs")) << outcome.output;
      EXPECT_TRUE(contains(outcome.output, "verified")) << outcome.output;
    }
  }
}

TEST_P(Launched, mixed_work_with_messages_of_all_sizes_ends_well) {
  for (const std::string share : {"process", "host"}) {
    for (const std::size_t pes_per_process : {1, 2}) {
      if (repeats(1) == 1 && (share == "host") != (pes_per_process == 2)) continue;
      const Outcome outcome =
          run_to_end(under_for(3 * pes_per_process, pes_per_process, {victim(), "finite", "mixed", "0.5"}),
                     settings({{"HEADWAY_PES_PER_PROCESS", std::to_string(pes_per_process)}}, share));
      EXPECT_EQ(outcome.status, 0) << outcome.errors;
      EXPECT_EQ(std::size_t(std::ranges::count(outcome.output, '\n')), 3 * pes_per_process) << outcome.output;
      EXPECT_TRUE(lines_of_headway(outcome.errors).empty()) << outcome.errors;
    }
  }
}

TEST_P(Launched, processes_of_one_host_send_no_frame_over_the_wire) {
  for (const std::size_t pes_per_process : {1, 2}) {
    const Variables few = {{"HEADWAY_PES_PER_PROCESS", std::to_string(pes_per_process)}};
    const std::string pes = std::to_string(3 * pes_per_process) + " PEs, ";
    const auto command = under_for(3 * pes_per_process, pes_per_process, {HEADWAY_COUNTS});
    EXPECT_EQ(run_to_end(command, settings(few, "host")).output, pes + "no frames over the wire\n");
    EXPECT_EQ(run_to_end(command, settings(few)).output, pes + "frames over the wire\n");
  }
}

TEST_P(Launched, settings_are_those_of_other_runs) {
  EXPECT_EQ(
      run_to_end(under(2, {victim(), "finite", "mixed", "0.2"}),
                 settings({{"HEADWAY_BIND", "core"}, {"HEADWAY_BUFFER_BYTES", "1K"}, {"HEADWAY_TIMEOUT", "none"}}))
          .status,
      0);
  const Outcome outcome = run_to_end(under(2, {victim(), "hello"}), settings({{"HEADWAY_SPILL", "x"}}));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "HEADWAY_SPILL=x: allowed is")) << outcome.errors;
}

TEST_P(Launched, little_memory_is_enough) {
  const Outcome outcome =
      run_to_end(under(3, {victim(), "finite", "mixed", "0.5"}), settings({{"HEADWAY_BUDGET", "1M"}}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Launched, a_container_with_64_mb_of_shared_memory_and_no_access_to_other_processes_is_enough) {
  if (run_to_end(confined({"true"})).status != 0)
    GTEST_SKIP() << "no mount namespace can be made here, or no call forbidden";
  for (const std::string share : {"process", "host"}) {
    const Outcome outcome = run_to_end(
        confined(under(4, {HEADWAY_RANDOMACCESS, "--log2", "14", "--updates-per-word", "16"})), settings({}, share));
    EXPECT_EQ(outcome.status, 0) << share << outcome.errors;
    EXPECT_TRUE(contains(outcome.output, "4 PEs") && contains(outcome.output, "verified")) << outcome.output;
  }
}

TEST_P(Launched, runs_one_after_the_other_work) {
  const Outcome outcome = run_to_end(under(3, {victim(), "twice"}), settings());
  EXPECT_EQ(outcome.status, 50) << outcome.errors;
  EXPECT_EQ(run_to_end(under(3, {victim(), "many_times", "10"}), settings()).status, 0);
}

// Over TCP: through shared memory an MPI may read the sender's memory without the help of the sender.
TEST_P(Launched, a_thread_moves_frames_while_its_pes_compute) {
  const std::string file = ::testing::TempDir() + "/overlap_" + mpi() + "_" + std::to_string(getpid());
  for (const std::size_t k : {1, 2}) {
    const Variables with = {{"HEADWAY_PROGRESS", "thread"},
                            {"HEADWAY_PES_PER_PROCESS", std::to_string(k)},
                            {"OMPI_MCA_btl", "tcp,self"},
                            {"OMPI_MCA_btl_tcp_if_include", "lo"},
                            {"UCX_TLS", "tcp,self"}};
    const Outcome outcome = run_to_end(under_for(2 * k, k, {HEADWAY_OVERLAP, file, "10"}), settings(with));
    std::filesystem::remove(file);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_TRUE(outcome.output.starts_with("seen while PE 0 computed")) << outcome.output << outcome.errors;
    const std::vector<std::string> updates = {HEADWAY_RANDOMACCESS, "--log2", "12", "--updates-per-word", "64"};
    const Outcome verified = run_to_end(under_for(3 * k, k, updates), settings(with));
    EXPECT_EQ(verified.status, 0) << verified.errors;
    EXPECT_TRUE(contains(verified.output, "verified")) << verified.output;
  }
}

TEST_P(Launched, a_thread_is_refused_where_mpi_allows_none) {
  if (!is_mpi()) GTEST_SKIP() << "it is no MPI";
  const std::string program = std::string(HEADWAY_BESIDE_MPI) + "_" + mpi();
  const Outcome outcome = run_to_end(under(2, {program}), settings({{"HEADWAY_PROGRESS", "thread"}}));
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(contains(outcome.errors, "HEADWAY_PROGRESS=thread needs an MPI that threads may call")) << outcome.errors;
}

TEST_P(Launched, the_status_is_that_of_the_lowest_failing_pe) {
  EXPECT_EQ(run_to_end(under(4, {victim(), "status", "0", "9", "0", "8"}), settings()).status, 9);
  EXPECT_EQ(run_to_end(under(2, {victim(), "status", "0", "0"}), settings()).status, 0);
}

TEST_P(Launched, a_program_that_has_initialised_mpi_keeps_it) {
  if (!is_mpi()) GTEST_SKIP() << "it is no MPI";
  const std::string program = std::string(HEADWAY_BESIDE_MPI) + "_" + mpi();
  // The MPI that it links is found out.
  const Outcome outcome = run_to_end(under(3, {program}), settings({{"HEADWAY_TRANSPORT", "mpi"}}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "3 processes: 0 1 0 1\n");
  const std::string other = mpi() == "openmpi" ? "mpich" : "openmpi";
  const std::string title = mpi() == "openmpi" ? "Open MPI" : mpi() == "mpich" ? "MPICH" : "an MPI of the standard ABI";
  const Outcome refused = run_to_end(under(3, {program}), settings({{"HEADWAY_TRANSPORT", other}}));
  EXPECT_NE(refused.status, 0);
  EXPECT_TRUE(contains(refused.errors, "this program has an MPI of its own, " + title)) << refused.errors;
}

// --- errors

TEST_P(Launched, what_the_program_or_a_handler_throws_and_exit_end_all_with_one_line) {
  struct Failure {
    const char* name;
    const char* where;
    const char* line;
  };
  const Failure failures[] = {
      {"throw", "", "the program threw: the cat sat on the keyboard"},
      {"throw", "in_handler", "the handler of aggregator number \\d+ 'wrong'.* threw: the cat sat on the keyboard"},
      {"exit", "", "exited with status 7 before run\\(\\) had finished"}};
  for (const Failure& failure : failures) {
    const std::string share = &failure - failures == 0 ? "process" : "host";
    Session session(under(4, {victim(), "load", "traffic", failure.name, "2", failure.where}), settings({}, share));
    ASSERT_TRUE(session.wait_for_lines(5)) << session.errors();
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_EQ(session.wait(), 121);
    std::smatch known;
    const std::string output = session.output();
    ASSERT_TRUE(std::regex_search(output, known, std::regex("PE 2 is pid (\\d+)\n"))) << output;
    const std::vector<std::string> lines = lines_of_headway(session.errors());
    ASSERT_EQ(lines.size(), 1u) << session.errors();
    EXPECT_TRUE(
        std::regex_match(lines[0], std::regex("headway: PE 2 \\(pid " + known[1].str() + "\\):? " + failure.line)))
        << lines[0];
    EXPECT_EQ(session.leftovers(), "");
  }
}

TEST_P(Launched, what_a_handler_threw_ends_all_also_when_the_program_swallows_it) {
  for (const char* then : {"loop", "sleep"}) {
    Session session(under(2, {victim(), "swallow", then}), settings());
    const auto has_said = [&] { return contains(session.errors(), "threw: thrown by a handler"); };
    for (int i = 0; i < 6000 && !has_said() && session.wait(0.01) == -1; ++i) continue;  // a start may take long
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_EQ(session.wait(), 121) << session.errors();
    EXPECT_TRUE(has_said()) << session.errors();
  }
}

TEST_P(Launched, a_process_that_is_killed_ends_all) {
  struct Case {
    const char* load;
    const char* share;
    const char* progress;
  };
  for (const auto& [load, share, progress] : {Case{"traffic", "process", "polling"},
                                              {"traffic", "process", "thread"},
                                              {"traffic", "host", "polling"},
                                              {"collectives", "process", "polling"},
                                              {"collectives", "host", "polling"}}) {
    SCOPED_TRACE(std::string(load) + ", " + share + ", progress " + progress);
    Session session(under(4, {victim(), "load", load, "none", "0"}), settings({{"HEADWAY_PROGRESS", progress}}, share));
    ASSERT_TRUE(session.wait_for_lines(4)) << session.errors();
    std::smatch known;
    const std::string output = session.output();
    ASSERT_TRUE(std::regex_search(output, known, std::regex("PE 2 is pid (\\d+)\n"))) << output;
    ASSERT_EQ(kill(std::stoi(known[1]), SIGKILL), 0);
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_NE(session.wait(), 0);
    // The launcher's words.
    EXPECT_TRUE(contains(session.output() + session.errors(), mpi() == "openmpi" ? "exited on signal 9 (Killed)"
                                                              : mpi() == ucx
                                                                  ? "process 2 was ended by signal 9 (Killed)"
                                                                  : "BAD TERMINATION"))
        << session.errors();
  }
}

TEST_P(Launched, a_run_that_stalls_ends_with_a_page_on_all_pes) {
  for (const auto& [share, progress] : {std::pair("process", "polling"), {"process", "thread"}, {"host", "polling"}}) {
    Session session(under(3, {victim(), "uneven"}),
                    settings({{"HEADWAY_STALL", "1s"}, {"HEADWAY_PROGRESS", progress}}, share));
    EXPECT_EQ(session.wait(), 122) << session.errors();
    const std::string errors = session.errors();
    EXPECT_TRUE(
        std::regex_search(errors, std::regex("headway: nothing has moved for [\\d.]+ s though work is pending:")))
        << errors;
    for (const char* pe :
         {"PE 0 \\(pid \\d+\\) waits in quiesce\\(\\) for PE 1, 2", "PE 2 \\(pid \\d+\\) has finished"}) {
      EXPECT_TRUE(std::regex_search(errors, std::regex(pe))) << errors;
    }
  }
}

TEST_P(Launched, a_run_whose_pes_compute_for_long_is_not_stalled) {
  const Outcome outcome =
      run_to_end(under(3, {victim(), "waits_for_nothing", "1.5"}), settings({{"HEADWAY_STALL", "300ms"}}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Launched, messages_that_nobody_takes_end_it_with_123) {
  const Outcome outcome = run_to_end(under(2, {victim(), "undelivered", "without_handler"}), settings());
  EXPECT_EQ(outcome.status, 123) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "1 message from PE 0 is undelivered on PE 1")) << outcome.errors;
}

// --- starts that are no run

TEST_P(Launched, differing_builds_are_refused_with_both_names) {
  if (!is_mpi()) GTEST_SKIP() << "`headway run` starts one program, as often as it is told";
  const Outcome outcome =
      run_to_end(under(1, {victim(), "hello", ":", "-n", "1", victim() + "_other", "hello"}), settings());
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  const std::vector<std::string> lines = lines_of_headway(outcome.errors);
  ASSERT_EQ(lines.size(), 1u) << outcome.errors;
  EXPECT_TRUE(std::regex_search(lines[0], std::regex("differing programs: process 0 runs \\S*victim \\(build \\w+\\), "
                                                     "process 1 runs \\S*_other \\(build \\w+\\)")))
      << lines[0];
}

TEST_P(Launched, another_number_of_pes_than_the_launchers_is_refused) {
  if (!is_mpi()) GTEST_SKIP() << "`headway run` starts one program, as often as it is told";
  const Outcome outcome = run_to_end(under(2, {victim(), "hello"}), settings({{"HEADWAY_PES", "5"}}));
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "HEADWAY_PES=5: allowed is 2 here: mpirun of")) << outcome.errors;
}

TEST_P(Launched, without_its_plug_in_it_is_told_so_once) {
  const Outcome outcome = run_to_end(under(3, {victim(), "hello"}), settings({{"HEADWAY_PLUGIN_DIR", "/nowhere"}}));
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  const std::vector<std::string> lines = lines_of_headway(outcome.errors);
  ASSERT_EQ(lines.size(), 1u) << outcome.errors;
  EXPECT_TRUE(contains(lines[0], "has started this program 3 times")) << lines[0];
  const std::string files =
      "libheadway-" + mpi() + (is_mpi() && mpi() != mpi_abi ? ".so or libheadway-mpi-abi.so" : ".so");
  EXPECT_TRUE(contains(lines[0], "the plug-in " + files + " is not there: looked in /nowhere, ")) << lines[0];
}

TEST_P(Launched, what_one_process_lacks_it_says_and_what_all_lack_the_first_even_if_it_comes_last) {
  if (!is_mpi()) GTEST_SKIP() << "`headway run` starts one program, as often as it is told";
  const auto lines_of = [&](const std::vector<std::string>& command, const Variables& more) {
    const Outcome outcome = run_to_end(under(1, command), settings(more));
    EXPECT_EQ(outcome.status, 120) << outcome.errors;
    return lines_of_headway(outcome.errors);
  };
  const auto of_one =
      lines_of({victim(), "hello", ":", "-n", "1", "env", "HEADWAY_PLUGIN_DIR=/nowhere", victim(), "hello"}, {});
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_TRUE(contains(of_one[0], "headway: process 1 of 2: ")) << of_one[0];
  const auto of_all =
      lines_of({"sh", "-c", "sleep 0.3; exec \"$0\" hello", victim(), ":", "-n", "2", victim(), "hello"},
               {{"HEADWAY_PLUGIN_DIR", "/nowhere"}});
  ASSERT_EQ(of_all.size(), 1u);
  EXPECT_TRUE(contains(of_all[0], "headway: mpirun of ")) << of_all[0];
}

TEST_P(Launched, the_launcher_of_another_mpi_is_noticed_and_said_once) {
  if (!is_mpi()) GTEST_SKIP() << "`headway run` starts one program, as often as it is told";
  const std::string other = mpi() == "openmpi" ? "mpich" : "openmpi";
  if (!has_plugin(other)) GTEST_SKIP() << "there is one MPI only";
  const Outcome outcome = run_to_end(under(3, {victim(), "hello"}), settings({{"HEADWAY_TRANSPORT", other}}));
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  const std::vector<std::string> lines = lines_of_headway(outcome.errors);
  ASSERT_EQ(lines.size(), 1u) << outcome.errors;
  EXPECT_TRUE(contains(lines[0], "has started this program 3 times")) << lines[0];
  EXPECT_TRUE(contains(lines[0], "each is alone: start it with the mpirun of")) << lines[0];
}

TEST_P(Launched, runs_beside_each_other_are_to_be_had) {
  const Outcome outcome = run_to_end(under(2, {victim(), "status", "0", "0"}),
                                     settings({{"HEADWAY_TRANSPORT", "local"}, {"HEADWAY_PES", "2"}}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

}  // namespace
}  // namespace headway::testing::launched
