// SPDX-License-Identifier: BSD-3-Clause
/// Starting: refusals, with their words and status, and actions that a program may take around and inside run().
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "session.hpp"

namespace headway::testing {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

struct Shape {
  std::size_t pes, per_process;
};
constexpr Shape shapes[] = {{1, 1}, {3, 1}, {4, 4}, {5, 2}};

/// The command as it is, and under `headway run`.
std::vector<std::vector<std::string>> both_ways(std::vector<std::string> command) {
  std::vector<std::vector<std::string>> ways = {command};
  command.insert(command.begin(), {headway_command(), "run"});
  ways.push_back(command);
  return ways;
}

// --- settings

TEST(Settings, each_wrong_value_is_refused_in_one_line_with_name_value_and_what_is_allowed) {
  struct Wrong {
    const char* name;
    std::vector<const char*> values;
    const char* allowed;
  };
  const Wrong all[] = {
      {"HEADWAY_PES",
       {"0", "-1", "abc", "100000", "", " 4", "4 ", "1e2", "0x4", "4.0", "99999999999999999999999"},
       "1 to 4096"},
      {"HEADWAY_PES_PER_PROCESS", {"0", "-1", "x", "", "4097"}, "1 to 4096"},
      {"HEADWAY_TRANSPORT", {"", "tcp", "mpirun", "LOCAL"}, "local"},
      {"HEADWAY_BUDGET", {"0", "1", "1K", "1T"}, "1 MiB to 256 GiB"},
      {"HEADWAY_BUDGET", {"", "-1", "x", "1Q", "1e30", "nan"}, "a size such as"},
      {"HEADWAY_SPILL", {"", "-1", "x", "1e30", "nan"}, "a size such as"},
      {"HEADWAY_BIND", {"", "-1", "x", "core,", "None"}, "core or none"},
      {"HEADWAY_STALL", {"", "-1s", "x", "1h", "nan", "inf", "5 s"}, "30s"},
      {"HEADWAY_SEED", {"", "-1", "x", "18446744073709551616"}, "0 to 2^64-1"},
      {"HEADWAY_DIAL", {"", "x", "o", "l=1us", "o=1us,", "o=1us,o=2us", "random,random"}, "a list of o,"},
      {"HEADWAY_DIAL",
       {"o=", "L=5", "g=-1us", "item_o=101ms", "L=nanus", "g=5 us", "o=1us random"},
       "a time from 0 to 100ms"},
      {"HEADWAY_DIAL", {"G=", "G=1.1us", "G=1s", "o=1us,G=x"}, "a time of a byte from 0 to 1us"},
      {"HEADWAY_PSE", {"4", ""}, "HEADWAY_PES,"},
      {"HEADWAY_", {"4"}, "HEADWAY_PES,"},
  };
  for (const Wrong& wrong : all) {
    for (const std::string value : wrong.values) {
      SCOPED_TRACE(std::string(wrong.name) + "=" + value);
      const Outcome outcome = run_to_end({victim(), "hello"}, pes(2) + Variables{{wrong.name, value}});
      EXPECT_EQ(outcome.status, 120);
      EXPECT_EQ(outcome.output, "");
      EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
      EXPECT_TRUE(outcome.errors.starts_with("headway: " + std::string(wrong.name) + "=" + value + ": "))
          << outcome.errors;
      EXPECT_TRUE(contains(outcome.errors, wrong.allowed)) << outcome.errors;
    }
  }
  EXPECT_EQ(run_to_end({victim(), "hello"}, {{"HEADWAY_PES", "4\n5"}}).errors,
            "headway: HEADWAY_PES=4?5: allowed is a whole number from 1 to 4096\n");
}

TEST(Settings, extremes_that_are_allowed_work) {
  for (const Variables& variables :
       {pes(4, 4096), pes(4) + Variables{{"HEADWAY_BUDGET", "1M"}}, pes(4) + Variables{{"HEADWAY_BUDGET", "1.5e0G"}},
        pes(4) + Variables{{"HEADWAY_STALL", "0.001us"}}, pes(4) + Variables{{"HEADWAY_SEED", "18446744073709551615"}},
        pes(4) + Variables{{"HEADWAY_BIND", "core"}}, Variables{}}) {
    const Outcome outcome = run_to_end({victim(), "hello"}, variables);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
  }
  EXPECT_EQ(run_to_end({victim(), "without_environment"}).status, 0);
}

TEST(Settings, several_processes_of_a_launcher_whose_plug_in_is_missing_are_told_so) {
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const Variables nowhere = {{"HEADWAY_PLUGIN_DIR", "/nowhere"}};
    const Outcome outcome = run_to_end({victim(), "hello"}, nowhere + Variables{{size, "4"}});
    EXPECT_EQ(outcome.status, 120);
    EXPECT_TRUE(
        contains(outcome.errors, "has started this program 4 times (" + std::string(size) + "=4), and the plug-in"))
        << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    EXPECT_EQ(run_to_end({victim(), "hello"}, nowhere + Variables{{size, "1"}}).status, 0);
    EXPECT_EQ(run_to_end({victim(), "hello"}, pes(2) + Variables{{size, "1"}}).status, 0);
    EXPECT_EQ(run_to_end({victim(), "hello"}, pes(2) + Variables{{size, "4"}, {"HEADWAY_TRANSPORT", "local"}}).status,
              0);
  }
}

TEST(Settings, memory_that_cannot_be_is_refused_with_how_much_and_which_setting) {
  const Outcome outcome = run_to_end({victim(), "hello"}, pes(4096) + Variables{{"HEADWAY_BUDGET", "256G"}});
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "4096 PEs with a frame memory of 256 GiB each (HEADWAY_BUDGET)"))
      << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

// --- statuses

TEST(Status, is_that_of_the_lowest_failing_pe) {
  for (const auto& command : both_ways({victim(), "status", "0", "0", "9", "4", "8"})) {
    for (const auto& shape : {pes(5), pes(5, 5), pes(5, 2), pes(5, 3)}) EXPECT_EQ(run_to_end(command, shape).status, 9);
    EXPECT_EQ(run_to_end(command, pes(2)).status, 0);
  }
}

TEST(Status, a_failure_does_not_become_success_in_a_byte) {
  EXPECT_EQ(run_to_end({victim(), "status", "0", "256"}, pes(2)).status, 255);
  EXPECT_EQ(run_to_end({victim(), "status", "-1", "0"}, pes(2)).status, 255);
  EXPECT_EQ(run_to_end({victim(), "status", "0", "512"}, pes(2, 2)).status, 255);
}

TEST(Status, of_children_is_known_whatever_the_program_does_with_sigchld) {
  for (const char* scenario : {"ignores_child_signals", "reaps_all_children"}) {
    EXPECT_EQ(run_to_end({victim(), scenario}, pes(3)).status, 3) << scenario;
  }
}

// --- several runs

TEST(Runs, one_after_the_other_in_a_program_work) {
  for (const auto& command : both_ways({victim(), "twice"})) {
    for (const Shape& shape : {Shape{3, 1}, Shape{4, 4}, Shape{5, 2}}) {
      const Outcome outcome = run_to_end(command, pes(shape.pes, shape.per_process));
      EXPECT_EQ(outcome.status, 50) << outcome.errors;
      EXPECT_EQ(std::size_t(std::ranges::count(outcome.output, '\n')), 2 * shape.pes) << outcome.output;
      EXPECT_EQ(outcome.leftovers, "");
    }
  }
  for (const auto& command : both_ways({victim(), "many_times", "30"})) {
    EXPECT_EQ(run_to_end(command, pes(4)).status, 0);
    EXPECT_EQ(run_to_end(command, pes(5, 3)).status, 0);
  }
}

TEST(Runs, work_after_one_that_failed_and_one_that_was_interrupted) {
  for (const Shape& shape : {Shape{3, 1}, Shape{5, 2}}) {
    const Outcome outcome = run_to_end({victim(), "after_failure"}, pes(shape.pes, shape.per_process));
    EXPECT_EQ(outcome.output, "121 130 0\n") << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Runs, of_several_programs_one_after_the_other_under_one_headway_run_work) {
  const std::string script = victim() + " twice > /dev/null; " + victim() + " many_times 3 && " + victim() + " hello";
  const Outcome outcome = run_to_end({headway_command(), "run", "sh", "-c", script}, pes(4));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 4) << outcome.output;
}

TEST(Runs, of_two_programs_at_once_under_one_headway_run_are_refused) {
  const std::string script = victim() + " hello & " + victim() + " hello; wait";
  const Outcome outcome = run_to_end({headway_command(), "run", "sh", "-c", script}, pes(3));
  EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 3) << outcome.output;  // one of the two each
  EXPECT_TRUE(std::regex_search(outcome.errors, std::regex("headway: process \\d of this run is pid \\d+ already")))
      << outcome.errors;
}

TEST(Runs, as_many_on_each_process_or_the_run_ends_and_says_so) {
  Session session({headway_command(), "run", victim(), "fewer_runs"}, pes(3));
  EXPECT_EQ(session.wait(5), 121);
  EXPECT_TRUE(contains(session.errors(), "another process of this run ended without calling run() as often"))
      << session.errors();
}

TEST(Runs, inside_runs_are_refused) {
  for (const auto& command : both_ways({victim(), "inside"})) {
    for (const Shape& shape : {Shape{3, 1}, Shape{4, 4}}) {
      const Outcome outcome = run_to_end(command, pes(shape.pes, shape.per_process));
      EXPECT_EQ(outcome.status, 120);
      EXPECT_TRUE(contains(outcome.errors, "headway: run() inside run(): ")) << outcome.errors;
    }
  }
}

// --- under headway run

TEST(Launch, of_a_program_that_is_none_of_headways_ends_with_its_status) {
  const Outcome good = run_to_end({headway_command(), "run", "echo", "hello"}, pes(3));
  EXPECT_EQ(good.status, 0);
  EXPECT_EQ(good.output, "hello\nhello\nhello\n");
  const Outcome bad = run_to_end({headway_command(), "run", "ls", "/there/is/no/such/file"}, pes(3));
  EXPECT_EQ(bad.status, 2);
}

TEST(Launch, of_a_program_that_ends_before_run_ends_with_its_own_words_and_status) {
  const Outcome outcome = run_to_end({headway_command(), "run", victim(), "exit_before", "17"}, pes(4));
  EXPECT_EQ(outcome.status, 17);
  EXPECT_TRUE(contains(outcome.errors, "unusable input\n"));
  EXPECT_FALSE(contains(outcome.errors, "headway:")) << outcome.errors;
}

TEST(Launch, of_a_program_that_dies_before_run_is_named) {
  const Outcome outcome = run_to_end({headway_command(), "run", victim(), "throws_before", "now"}, pes(3));
  EXPECT_EQ(outcome.status, 121);
  EXPECT_TRUE(contains(outcome.errors, "was killed by signal 6")) << outcome.errors;
}

TEST(Launch, of_what_cannot_be_executed_says_so_once) {
  const fs::path folder = ::testing::TempDir();
  const fs::path script = folder / "failures_no_interpreter";
  std::ofstream(script) << "#!/there/is/no/such/interpreter\n";
  fs::permissions(script, fs::perms::owner_all);
  for (const auto& [command, status] :
       {std::pair(std::string("/there/is/no/such/program"), 127), {script.string(), 127}, {"/etc/passwd", 126}}) {
    const Outcome outcome = run_to_end({victim(), "launches", command}, pes(3));
    EXPECT_EQ(outcome.status, status) << command;
    EXPECT_TRUE(contains(outcome.errors, "cannot start " + command)) << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
    EXPECT_NE(run_to_end({headway_command(), "run", command}, pes(3)).status, 0);
  }
  fs::remove(script);
}

TEST(Launch, of_two_different_binaries_is_refused_with_both_names) {
  const std::string script =
      "case $HEADWAY_LAUNCH in *:1) exec " + victim() + "_other hello;; *) exec " + victim() + " hello;; esac";
  for (const auto& shape : {pes(3), pes(5, 2)}) {
    const Outcome outcome = run_to_end({headway_command(), "run", "sh", "-c", script}, shape);
    EXPECT_EQ(outcome.status, 120);
    EXPECT_EQ(outcome.output, "");
    EXPECT_TRUE(std::regex_search(
        outcome.errors, std::regex("differing programs: PE 0 runs \\S*" + fs::path(victim()).filename().string() +
                                   " \\(build \\w+\\), PE \\d runs \\S*_other \\(build \\w+\\)")))
        << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Launch, of_a_copy_of_the_program_is_allowed) {
  const fs::path copy = fs::path(::testing::TempDir()) / "failures_copy";
  fs::copy_file(victim(), copy, fs::copy_options::overwrite_existing);
  const std::string script =
      "case $HEADWAY_LAUNCH in *:1) exec " + copy.string() + " hello;; *) exec " + victim() + " hello;; esac";
  EXPECT_EQ(run_to_end({headway_command(), "run", "sh", "-c", script}, pes(3)).status, 0);
  fs::remove(copy);
}

TEST(Launch, descriptions_that_are_not_the_supervisors_are_refused) {
  for (const auto& [value, what] : {std::pair("x", "HEADWAY_LAUNCH=x: it is set by `headway run` only"),
                                    {"3:4", "it is set by `headway run` only"},
                                    {"700:701:0", "descriptor 700 is not open here"},
                                    {"0:1:0", "not a Headway segment"},
                                    {"-1:-1:0", "is not open here"}}) {
    const Outcome outcome = run_to_end({victim(), "hello"}, {{"HEADWAY_LAUNCH", value}});
    EXPECT_EQ(outcome.status, 120);
    EXPECT_TRUE(contains(outcome.errors, what)) << outcome.errors;
  }
  // The run's own descriptors, but a process number beyond it.
  const std::string script = "HEADWAY_LAUNCH=${HEADWAY_LAUNCH%:*}:7 exec " + victim() + " hello";
  const Outcome outcome = run_to_end({headway_command(), "run", "sh", "-c", script}, pes(2));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "process 7 of 2")) << outcome.errors;
}

TEST(Launch, works_where_the_program_has_other_pids_than_the_supervisor_knows) {
  const std::vector<std::string> elsewhere = {"unshare", "--pid", "--fork", "--kill-child"};
  std::vector<std::string> probe = elsewhere;
  probe.push_back("true");
  if (run_to_end(probe).status != 0) GTEST_SKIP() << "pid namespaces cannot be made here";
  std::vector<std::string> command = {headway_command(), "run"};
  command.insert(command.end(), elsewhere.begin(), elsewhere.end());
  command.insert(command.end(), {victim(), "quiesce_for", "0.5"});
  const Outcome outcome = run_to_end(command, pes(3));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
}

TEST(Launch, passes_large_arguments_on) {
  std::vector<std::string> command = {victim(), "arguments"};
  for (int i = 0; i < 10'000; ++i) command.push_back(std::string(100, 'a'));
  for (const auto& way : both_ways(command)) {
    const Outcome outcome = run_to_end(way, pes(3));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(contains(outcome.output, "PE 2: 10002 arguments")) << outcome.output;
  }
  EXPECT_EQ(run_to_end({victim(), "no_arguments"}, pes(3)).status, 0);
}

// --- where fork is not safe

TEST(Fork, is_refused_where_other_threads_run_and_headway_run_starts_the_program) {
  for (const Shape& shape : shapes) {
    const Variables variables = pes(shape.pes, shape.per_process);
    const Outcome outcome = run_to_end({victim(), "with_thread_before"}, variables);
    EXPECT_EQ(outcome.status, 120);
    EXPECT_TRUE(contains(outcome.errors, "other threads run already; start it with `headway run ")) << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    EXPECT_EQ(run_to_end({headway_command(), "run", victim(), "with_thread_before"}, variables).status, 0);
    EXPECT_EQ(run_to_end({victim(), "with_thread_that_has_ended"}, variables).status, 0);
  }
}

TEST(Fork, is_refused_where_mpi_is_initialised_and_headway_run_starts_the_program) {
  const std::string program = std::string(HEADWAY_PRETENDS_MPI);
  const Outcome outcome = run_to_end({program, "1"}, pes(2));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "MPI is initialised already; start it with `headway run ")) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  EXPECT_EQ(run_to_end({headway_command(), "run", program, "1"}, pes(2)).status, 0);
  EXPECT_EQ(run_to_end({program, "0"}, pes(2)).status, 0);
}

TEST(Fork, is_refused_where_a_real_mpi_is_initialised) {
  const std::string program = HEADWAY_WITH_MPI;
  if (program.empty()) GTEST_SKIP() << "no MPI was found by the build";
  const Variables root = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  const Outcome outcome = run_to_end({program, "initialise"}, pes(2) + root);
  EXPECT_EQ(outcome.status, 120) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "MPI is initialised already")) << outcome.errors;
  EXPECT_EQ(run_to_end({program, "later"}, pes(2) + root).status, 0);
  EXPECT_EQ(run_to_end({headway_command(), "run", program, "initialise"}, pes(2) + root).status, 0);
}

// --- extremes of the environment

TEST(Extremes, few_descriptors_are_refused_in_one_line_that_names_the_limit) {
  const Outcome outcome = run_to_end({"sh", "-c", "ulimit -n 64; exec " + victim() + " hello"}, pes(40));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "40 processes need 3 descriptors each (ulimit -n allows 64)")) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
  EXPECT_EQ(run_to_end({"sh", "-c", "ulimit -S -n 64; exec " + victim() + " hello"}, pes(40)).status, 0);
  EXPECT_EQ(run_to_end({"sh", "-c", "ulimit -n 64; exec " + victim() + " hello"}, pes(40, 8)).status, 0);
}

TEST(Extremes, little_address_space_makes_small_budgets_or_a_line_that_names_them) {
  EXPECT_EQ(run_to_end({"sh", "-c", "ulimit -v 1000000; exec " + victim() + " hello"}, pes(40)).status, 0);
  const Outcome outcome = run_to_end({"sh", "-c", "ulimit -v 60000; exec " + victim() + " hello"}, pes(64));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors, "(HEADWAY_BUDGET)")) << outcome.errors;
  const Outcome file = run_to_end({"sh", "-c", "ulimit -f 1000; exec " + victim() + " hello"}, pes(4));
  EXPECT_EQ(file.status, 120);
  EXPECT_TRUE(contains(file.errors, "ftruncate of the shared memory: File too large")) << file.errors;
  EXPECT_EQ(run_to_end({"sh", "-c", "ulimit -S -f 1000; exec " + victim() + " hello"}, pes(4)).status, 0);
  // Where there is not enough for the threads of a process, the PE that misses it is named.
  const Outcome threads = run_to_end({"sh", "-c", "ulimit -s 8192; ulimit -v 1000000; exec " + victim() + " hello"},
                                     pes(200, 200) + Variables{{"HEADWAY_BUDGET", "1M"}});
  EXPECT_EQ(threads.status, 121);
  EXPECT_TRUE(
      std::regex_search(threads.errors, std::regex("headway: PE \\d+ \\(pid \\d+\\): (its thread cannot be made: "
                                                   "pthread_create|setting the PE up threw: std::bad_alloc)")))
      << threads.errors;
}

TEST(Extremes, many_pes_on_few_cores_start_and_end) {
  for (const auto& shape : {pes(64), pes(256), pes(256, 256), pes(250, 16)}) {
    const Outcome outcome = run_to_end({victim(), "hello"}, shape);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(std::to_string(std::ranges::count(outcome.output, '\n')), shape[0].second);
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Extremes, no_home_and_no_place_for_files_are_needed) {
  const Variables nowhere = {{"HOME", "/there/is/no/home"}, {"TMPDIR", "/there/is/no/tmp"}};
  EXPECT_EQ(run_to_end({victim(), "hello"}, pes(3) + nowhere).status, 0);
}

TEST(Extremes, large_arrays_fit_on_the_stacks_that_were_asked_for) {
  for (const auto& shape : {pes(3), pes(3, 3)}) {
    EXPECT_EQ(run_to_end({"sh", "-c", "ulimit -s 8192; exec " + victim() + " uses_stack 6"}, shape).status, 0);
    EXPECT_EQ(
        run_to_end({"sh", "-c", "ulimit -s unlimited && exec " + victim() + " uses_stack 48 || exit 0"}, shape).status,
        0);
  }
}

// --- actions that a program may take

TEST(Programs, may_fork_in_a_pe) {
  for (const Shape& shape : shapes) {
    const Outcome outcome = run_to_end({victim(), "forks"}, pes(shape.pes, shape.per_process));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(std::size_t(std::ranges::count(outcome.output, '\n')), shape.pes) << outcome.output;
    EXPECT_EQ(outcome.leftovers, "");
  }
  EXPECT_EQ(run_to_end({victim(), "forks", "and_quiesce"}, pes(3)).status, 0);
}

TEST(Programs, may_run_commands_that_inherit_nothing_of_the_run) {
  for (const auto& command : both_ways({victim(), "commands"})) {
    const Outcome outcome = run_to_end(command, pes(3));
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_FALSE(contains(outcome.errors, "memfd:headway")) << outcome.errors;
  }
}

TEST(Programs, may_close_descriptors_and_use_their_numbers) {
  for (const Shape& shape : {Shape{4, 1}, Shape{4, 2}}) {
    for (const auto& command : both_ways({victim(), "closes_descriptors"})) {
      const Outcome outcome = run_to_end(command, pes(shape.pes, shape.per_process));
      EXPECT_EQ(outcome.status, 0) << outcome.errors;
    }
  }
}

TEST(Programs, may_have_threads_and_leave_them) {
  for (const Shape& shape : shapes) {
    EXPECT_EQ(run_to_end({victim(), "has_threads"}, pes(shape.pes, shape.per_process)).status, 0);
    EXPECT_EQ(run_to_end({victim(), "leaves_thread"}, pes(shape.pes, shape.per_process)).status, 0);
  }
}

TEST(Programs, may_change_directory) { EXPECT_EQ(run_to_end({victim(), "changes_directory"}, pes(3)).status, 0); }

TEST(Programs, find_signals_limits_and_descriptors_as_they_were) {
  for (const Shape& shape : {Shape{1, 1}, Shape{2, 1}, Shape{2, 2}, Shape{5, 2}}) {
    const Variables variables = pes(shape.pes, shape.per_process);
    EXPECT_EQ(run_to_end({victim(), "as_before"}, variables).status, 0) << shape.pes;
    for (const auto& command : both_ways({victim(), "as_before", "bound"})) {
      EXPECT_EQ(run_to_end(command, variables + Variables{{"HEADWAY_BIND", "core"}}).status, 0) << shape.pes;
    }
  }
}

}  // namespace
}  // namespace headway::testing
