// SPDX-License-Identifier: BSD-3-Clause
/// The command as users start it: the arguments that it refuses, its messages and its exit status.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <record/record.hpp>
#include <set>

#include "run_command.hpp"

namespace headway::tools {
namespace {

struct Refusal {
  std::vector<std::string> arguments;
  std::vector<std::string> named;  // in the message
};

TEST(Command, every_bad_argument_is_refused_in_one_line_that_names_it_and_what_is_allowed) {
  const std::vector<Refusal> refusals = {
      {{}, {"--help"}},
      {{"bnech"},
       {"'bnech'", "'bench'",
        "run, bench, probe, tune, predict, slopes, trace, sensitivity, report, mpi-report, watch, "
        "platform, doctor, info"}},
      {{"run"}, {"program"}},
      {{"run", "-n", "0", "true"}, {"--pes", "0", "1 to 4096"}},
      {{"run", "-n", "-1", "true"}, {"--pes", "-1"}},
      {{"run", "-n", "abc", "true"}, {"--pes", "abc"}},
      {{"run", "-n", "100000", "true"}, {"--pes", "100000", "4096"}},
      {{"run", "-n"}, {"--pes"}},
      {{"run", "--pes-per-process", "0", "true"}, {"--pes-per-process", "0"}},
      {{"run", "--transport", "tcp", "true"}, {"--transport", "tcp", "local"}},
      {{"run", "--budget", "1", "true"}, {"--budget", "1", "1 MiB"}},
      {{"run", "--bind", "socket", "true"}, {"--bind", "socket", "core or none"}},
      {{"run", "--stall", "3x", "true"}, {"--stall", "3x", "30s"}},
      {{"run", "--debug", "2", "-n", "2", "true"}, {"--debug", "2", "0 to 1"}},
      {{"run", "--pse", "2", "true"}, {"'--pse'", "'--pes'", "--transport"}},
      {{"run", "no-such-program"}, {"no-such-program"}},
      {{"run", "./no-such-program"}, {"./no-such-program", "no such file"}},
      {{"mpi-report"}, {"headway mpi-report", "program"}},
      {{"mpi-report", "no-such-launcher"}, {"'no-such-launcher'", "PATH"}},
      {{"mpi-report", "--ranks-per-host", "0", "true"}, {"--ranks-per-host", "'0'", "1 to 1000000"}},
      {{"mpi-report", "--json", "/no/folder/a", "true"}, {"--json", "'/no/folder/a'", "cannot be written"}},
      {{"mpi-report", "--files", "/dev/null", "true"}, {"--files", "'/dev/null'", "folder"}},
      {{"watch", "x"}, {"PID", "'x'"}},
      {{"watch", "--interval", "0.01"}, {"--interval", "0.01", "0.1", "60"}},
      {{"watch", "--count", "0"}, {"--count", "'0'", "1 to"}},
      {{"watch", "--hosts", "a,,b"}, {"--hosts", "a,,b"}},
      {{"watch", "--hosts", "a", "12"}, {"PID", "--hosts", "--program NAME"}},
      {{"watch", "--program", "a", "12"}, {"--program", "PID"}},
      {{"watch", "--agent", "a"}, {"--agent", "--hosts"}},
      {{"watch", "999999999"}, {"999999999", "no process"}},
      {{"platform"}, {"MACHINE"}},
      {{"platform", "summit"}, {"--pes", "1 to 1000000"}},
      {{"platform", "sumit", "--pes", "2"}, {"'sumit'", "cori, cs-2"}},
      {{"platform", "./no.machine", "--pes", "2"}, {"'./no.machine'", "No such file"}},
      {{"platform", "summit", "--pes", "0"}, {"--pes", "'0'", "1 to 1000000"}},
      {{"platform", "summit", "--pes", "4", "--pes-per-host", "x"}, {"--pes-per-host", "'x'"}},
      {{"platform", "summit", "--pes", "4", "--latency", "5"}, {"--latency", "'5'", "200ns"}},
      {{"bench"}, {"randomaccess", "stream"}},
      {{"probe", "--transport", "tcp"}, {"--transport", "'tcp'", "local, sim, ucx, openmpi, mpich"}},
      {{"probe", "--pair", "core"}, {"--pair", "'core'", "thread, process, host"}},
      {{"probe", "--transport", "local", "--pair", "host"}, {"--pair", "'host'", "--hosts"}},
      {{"probe", "--transport", "local", "--pair", "process,host"}, {"--pair", "'host'", "--hosts"}},
      {{"probe", "--transport", "local", "--hosts", "a,b"}, {"--hosts", "ucx"}},
      {{"probe", "--sim", "L=1us"}, {"--sim", "--transport sim"}},
      {{"probe", "--agent", "ssh"}, {"--agent", "--hosts"}},
      {{"probe", "--osu", "--json", "-"}, {"--osu", "--json -"}},
      {{"probe", "--hosts", "a"}, {"--hosts", "'a'", "A,B"}},
      {{"probe", "--launches", "0"}, {"--launches", "'0'", "1 to 1000"}},
      {{"probe", "--points", "3"}, {"--points", "'3'", "4 to"}},
      {{"probe", "--bytes-max", "2"}, {"--bytes-max", "'2'", "64 to 1048576"}},
      {{"probe", "--messages", "1"}, {"--messages", "'1'", "2 to 256"}},
      {{"probe", "--json", "/no/folder/a"}, {"--json", "'/no/folder/a'", "cannot be written"}},
      {{"probe", "--csv", "/tmp"}, {"--csv", "'/tmp'", "cannot be written"}},
      {{"probe", "--calibrate", "--markdown", "/no/folder/a"}, {"--markdown", "'/no/folder/a'", "cannot be written"}},
      {{"platform", "now", "--pes", "2", "--output", "/dev/null", "--hosts", "/no/folder/a"}, {"--hosts", "'/no/"}},
      {{"run", "--costs", "measured", "true"}, {"--costs", "measured", "default or probed"}},
      {{"run", "--table", "--hosts", "a,b", "-n", "2", "--transport", "ucx", "true"}, {"--table", "--counts FILE"}},
      {{"probe", "--calibrate", "--dials", "o,l"}, {"--dials", "'l'", "o, item_o, g, L, G"}},
      {{"probe", "--calibrate", "--values", "1us,2s"}, {"--values", "'2s'", "1ms"}},
      {{"probe", "--calibrate", "--osu"}, {"--osu", "--calibrate"}},
      {{"probe", "--calibrate", "--pair", "thread,process"}, {"--calibrate", "one of each"}},
      {{"probe", "--save", "--dial", "o=1us"}, {"--save", "--dial"}},
      {{"probe", "--save", "--transport", "sim"}, {"--save", "sim"}},
      {{"probe", "--values", "1us"}, {"--values", "--calibrate"}},
      {{"probe", "--dial", "o=1s"}, {"--dial", "'o=1s'", "0 to 100ms"}},
      {{"probe", "--sim", "l=1us"}, {"--sim", "'l=1us'", "per-process"}},
      {{"bench", "randomacces"}, {"'randomacces'", "'randomaccess'", "stream"}},
      {{"bench", "randomaccess", "--mode", "1d,4"}, {"--mode", "4", "direct, 1d"}},
      {{"bench", "randomaccess", "--mode", ""}, {"--mode"}},
      {{"bench", "randomaccess", "--peer", "mpi-alltoal"}, {"--peer", "mpi-alltoal", "mpi-direct"}},
      {{"bench", "randomaccess", "--bufer-bytes", "4K"}, {"'--bufer-bytes'", "'--buffer-bytes'"}},
      {{"bench", "randomaccess", "--buffer-bytes", "0"}, {"--buffer-bytes", "'0'", "256 B"}},
      {{"bench", "randomaccess", "--buffer-bytes", "1T"}, {"--buffer-bytes", "'1T'", "256 MiB"}},
      {{"bench", "randomaccess", "--buffer-bytes", "4q"}, {"--buffer-bytes", "4q", "16K"}},
      {{"bench", "randomaccess", "--threshold", "1.5"}, {"--threshold", "1.5", "at most 1"}},
      {{"bench", "randomaccess", "--cutoff", "-0.1"}, {"--cutoff", "-0.1", "0 to 1"}},
      {{"bench", "randomaccess", "--timeout", "100"}, {"--timeout", "100", "100us"}},
      {{"bench", "randomaccess", "--log2", "99"}, {"--log2", "99", "40"}},
      {{"bench", "randomaccess", "--repeat", "0"}, {"--repeat", "'0'"}},
      {{"bench", "randomaccess", "--messages", "5"}, {"--messages", "stream"}},
      {{"bench", "stream", "--log2", "5"}, {"--log2", "randomaccess"}},
      {{"bench", "randomaccess", "--mode", "limits"}, {"--mode", "limits", "direct, 1d", "limit"}},
      {{"bench", "stream", "--mode", "limit,1d", "--bytes", "4"}, {"--mode", "limit", "--bytes 4", "8 B"}},
      {{"bench", "stream", "--mode", "limit,1d", "--pes", "66"}, {"--mode", "limit", "66 PEs", "64"}},
      {{"bench", "stream", "--mode", "limit-8,1d", "--bytes", "4"}, {"--mode", "'limit-8'", "--bytes 4", "8 B"}},
      {{"bench", "stream", "--mode", "limit-1,1d"}, {"--mode", "'1'", "2 to 32"}},
      {{"bench", "stream", "--mode", "limit-33,1d"}, {"--mode", "'33'", "2 to 32"}},
      {{"bench", "stream", "--mode", "limit-few,1d"}, {"--mode", "'few'", "2 to 32"}},
      {{"bench", "pingpong", "--mode", "limit-8,1d"}, {"--mode", "'limit-8'", "pingpong", "allowed is limit"}},
      {{"bench", "pingpong", "--mode", "limit,1d", "--pes", "4"}, {"--mode", "limit", "4 PEs", "allowed is 2"}},
      {{"bench", "staggered", "--mode", "limit,1d", "--bytes", "5M"}, {"--mode", "limit", "5242880", "4 MiB"}},
      {{"bench", "limit", "--mode", "1d"}, {"--mode", "randomaccess, pingpong, stream", "limit"}},
      {{"bench", "limit", "--bytes", "8"}, {"--bytes", "stream", "limit"}},
      {{"bench", "limit", "--buffer-bytes", "4K"}, {"--buffer-bytes", "limit"}},
      {{"bench", "stream", "--pes", "3"}, {"--pes", "3", "even"}},
      {{"bench", "stream", "--bytes", "33", "--threshold", "0.9", "--cutoff", "0.2"}, {"--threshold", "--cutoff", "1"}},
      {{"bench", "stream", "--type", "fixd"}, {"--type", "'fixd'", "'fixed'", "bytes, vector, string, struct"}},
      {{"bench", "stream", "--type", "fixed", "--bytes", "8,100"}, {"--type", "'fixed'", "100 bytes", "104"}},
      {{"bench", "stream", "--bytes", "8,2G"}, {"--bytes", "'2G'", "1 GiB"}},
      {{"bench", "stream", "--bytes", "8,,16"}, {"--bytes", "8,,16"}},
      {{"bench", "stream", "--messages", "0"}, {"--messages", "'0'"}},
      {{"bench", "randomaccess", "--osu"}, {"--osu", "stream"}},
      {{"bench", "randomaccess", "--bytes", "8,4"}, {"--bytes", "'4'", "8 B"}},
      {{"bench", "randomaccess", "--type", "fixed", "--bytes", "100"}, {"--type", "'fixed'", "100 bytes", "104"}},
      {{"bench", "randomaccess", "--bytes", "16", "--peer", "hpcc"}, {"--peer", "'hpcc'", "--bytes 16", "8"}},
      {{"bench", "pingpong", "--peer", "mpi-direct"}, {"--peer", "'mpi-direct'", "mpi"}},
      {{"bench", "stream", "--peer", "hpcc"}, {"--peer", "'hpcc'", "mpi-direct"}},
      {{"bench", "stream", "--bytes", "0", "--peer", "mpi-direct"}, {"--peer", "mpi-direct"}},
      {{"bench", "pingpong", "--pes", "3"}, {"--pes", "3", "even", "pingpong"}},
      {{"bench", "pingpong", "--peer", "mpi:openmpi-nocma"}, {"--peer", "'mpi:openmpi-nocma'", "mpi"}},
      {{"bench", "pingpong", "--mode", "limit-cma"}, {"--mode", "'cma'", "2 to 32"}},
      {{"bench", "pingpong", "--way", "get"}, {"--way", "indexgather, zerocopy", "pingpong"}},
      {{"bench", "zerocopy", "--way", "regluar"}, {"--way", "'regluar'", "'regular'"}},
      {{"bench", "zerocopy", "--memory", "pools"}, {"--memory", "'pools'", "heap, pool"}},
      {{"bench", "zerocopy", "--buffers", "reused,new"}, {"--buffers", "'new'", "reused, fresh"}},
      {{"bench", "zerocopy", "--bytes", "8,12"}, {"--bytes", "'12'", "multiples of 8"}},
      {{"bench", "zerocopy", "--type", "fixed"}, {"--type", "stream", "zerocopy"}},
      {{"bench", "zerocopy", "--mode", "limit-8"}, {"--mode", "'limit-8'", "limit-mapped, limit-pieces, limit-cma"}},
      {{"bench", "zerocopy", "--mode", "limit", "--pes", "4"}, {"--mode", "limit", "4 PEs", "allowed is 2"}},
      {{"bench", "zerocopy", "--mode", "limit", "--pes", "2", "--touch"}, {"--mode", "limit", "--touch"}},
      {{"bench", "zerocopy", "--bytes", "65M", "--mode", "limit", "--pes", "2"}, {"--mode", "limit", "64 MiB"}},
      {{"bench", "zerocopy", "--pes", "3"}, {"--pes", "3", "even", "zerocopy"}},
      {{"bench", "reduce", "--mode", "1d"}, {"--mode", "randomaccess, pingpong", "not of reduce"}},
      {{"bench", "reduce", "--patient"}, {"--patient", "not of reduce"}},
      {{"bench", "reduce", "--measure", "cpu,time"}, {"--measure", "'time'", "cpu, latency"}},
      {{"bench", "reduce", "--call", "reduc"}, {"--call", "'reduc'", "'reduce'", "allreduce, barrier"}},
      {{"bench", "reduce", "--way", "bypas"}, {"--way", "'bypas'", "'bypass'", "blocking"}},
      {{"bench", "reduce", "--elements", "1,0"}, {"--elements", "'0'", "1 to 1048576"}},
      {{"bench", "reduce", "--skew-us", "0,-1"}, {"--skew-us", "'-1'", "0 to 1000000"}},
      {{"bench", "reduce", "--settle-us", "soon"}, {"--settle-us", "'soon'", "0 to 1000000"}},
      {{"bench", "reduce", "--looks", "1001"}, {"--looks", "'1001'", "0 to 1000"}},
      {{"bench", "reduce", "--iterations", "0"}, {"--iterations", "'0'", "1 to"}},
      {{"bench", "reduce", "--peer", "mpi-direct"}, {"--peer", "'mpi-direct'", "mpi-ireduce"}},
      {{"bench", "halo", "--mode", "1d"}, {"--mode", "'1d'", "halo, pack"}},
      {{"bench", "halo", "--case", "grid"}, {"--case", "'grid'", "row, random, grid27, blocks, particles, recorded"}},
      {{"bench", "halo", "--case", "recorded", "--elements", "5"}, {"--elements", "recorded"}},
      {{"bench", "halo", "--case", "grid27", "--elements", "3", "--width", "4"}, {"--width", "'4'", "1 to 3"}},
      {{"bench", "halo", "--case", "blocks", "--elements", "1000"}, {"--elements", "allowed are 2147483647"}},
      {{"bench", "halo", "--element-bytes", "12"}, {"--element-bytes", "'12'", "4, 8, 16, 24, 88"}},
      {{"bench", "halo", "--points", "9"}, {"--points", "'9'", "27, 7"}},
      {{"bench", "halo", "--application", "amr"}, {"--application", "'amr'", "clamr, clamr-1, cabana, xrage"}},
      {{"bench", "halo", "--plan", "/no/such/file", "--pes", "2", "--repeat", "1"}, {"--plan", "/no/such/file"}},
      {{"bench", "halo", "--patient"}, {"--patient", "not of halo"}},
      {{"bench", "reduce", "--fields", "2"}, {"--fields", "halo", "not of reduce"}},
      {{"bench", "stream", "--elements", "2"}, {"--elements", "reduce, halo", "not of stream"}},
      {{"bench", "stream", "--skew-us", "5"}, {"--skew-us", "reduce", "not of stream"}},
      {{"bench", "indexgather", "--mode", "limit"}, {"--mode", "'limit'", "indexgather"}},
      {{"bench", "indexgather", "--way", "put"}, {"--way", "'put'", "get, read"}},
      {{"bench", "indexgather", "--gathers", "0"}, {"--gathers", "'0'"}},
      {{"bench", "indexgather", "--updates-per-word", "4"}, {"--updates-per-word", "randomaccess", "indexgather"}},
      {{"bench", "bsf"}, {"'bsf'", "'bfs'", "phold, leanmd, stencil"}},
      {{"bench", "bfs", "--bytes", "8"}, {"--bytes", "stream", "not of bfs"}},
      {{"bench", "bfs", "--steps", "3"}, {"--steps", "leanmd, stencil", "not of bfs"}},
      {{"bench", "bfs", "--balance", "none,gredy"}, {"--balance", "'gredy'", "'greedy'"}},
      {{"bench", "bfs", "--balance-every", "0"}, {"--balance-every", "'0'"}},
      {{"bench", "bfs", "--mode", "limit", "--scale", "31"}, {"--scale", "'31'", "1 to 30"}},
      {{"bench", "bfs", "--peer", "mpi-alltoallv"}, {"--peer", "'mpi-alltoallv'", "mpi-direct"}},
      {{"bench", "phold", "--mode", "limit"}, {"--mode", "'limit'", "phold"}},
      {{"bench", "leanmd", "--roots", "3"}, {"--roots", "bfs, sssp", "not of leanmd"}},
      {{"bench", "stencil", "--corner"}, {"--corner", "leanmd", "not of stencil"}},
      {{"bench", "stream", "--balance", "greedy"}, {"--balance", "bfs, sssp, phold, leanmd, stencil", "not of stream"}},
      {{"bench", "synthetic", "--pes", "1"}, {"--pes", "'1'", "2 or more"}},
      {{"bench", "synthetic", "--log2", "5"}, {"--log2", "randomaccess", "synthetic"}},
      {{"run", "--buffer-bytes", "1", "true"}, {"--buffer-bytes", "1", "256 B"}},
      {{"run", "--topology", "ring", "true"}, {"--topology", "ring", "direct, 1d"}},
      {{"run", "--threshold", "2", "true"}, {"--threshold", "2", "0 to 1"}},
      {{"tune"}, {"program"}},
      {{"tune", "./no-such-program"}, {"./no-such-program", "no such file"}},
      {{"tune", "--repeat", "0", "true"}, {"--repeat", "'0'"}},
      {{"tune", "--sweep-limit", "0s", "true"}, {"--sweep-limit", "'0s'"}},
      {{"tune", "--repaet", "1", "true"}, {"'--repaet'", "'--repeat'"}},
      {{"tune", "-n", "0", "true"}, {"--pes", "0"}},
      {{"doctor", "--now"}, {"'--now'", "--help"}},
      {{"info", "more"}, {"'more'"}},
      {{"cxxflags", "more"}, {"'more'"}},
      {{"ldflags", "--dynamic"}, {"'--dynamic'"}},
      {{"run", "./no-such-script.py"}, {"./no-such-script.py", "no such file"}},
  };
  for (const Refusal& refusal : refusals) {
    std::string line = "headway";
    for (const std::string& argument : refusal.arguments) line += " " + argument;
    SCOPED_TRACE(line);
    const ChildResult result = headway(refusal.arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
    for (const std::string& name : refusal.named)
      EXPECT_NE(result.errors.find(name), std::string::npos) << name << " in: " << result.errors;
  }
}

TEST(Command, a_bad_variable_of_the_environment_is_the_settings_fault) {
  for (const auto& command : {std::vector<std::string>{"run", "true"}, {"bench", "stream"}}) {
    const ChildResult result = headway(command, {{"HEADWAY_PES", "abc"}});
    EXPECT_EQ(result.status, 120);
    EXPECT_NE(result.errors.find("HEADWAY_PES=abc"), std::string::npos) << result.errors;
  }
}

TEST(Command, help_lists_the_commands_and_each_has_its_own) {
  const ChildResult result = headway({"--help"});
  EXPECT_EQ(result.status, 0);
  for (const std::string name : {"run", "bench", "tune", "doctor", "info", "cxxflags", "ldflags"}) {
    EXPECT_NE(result.output.find("headway " + name), std::string::npos) << name;
    EXPECT_EQ(headway({name, "--help"}).status, 0) << name;
  }
}

std::string beside_command(const std::string& name) {
  return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string();
}

TEST(Tune, a_program_is_run_with_other_settings_and_the_best_again_beside_the_defaults) {
  const ChildResult result = headway(
      {"tune", "-n", "2", "--repeat", "3", "--json", "-", beside_command("headway-stream"), "--messages", "1000"});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");  // no progress in a pipe
  const bench::Json file = bench::Json::parse(result.output);
  std::set<std::string> buffers;
  for (const bench::Json& record : file["records"]) {
    EXPECT_EQ(record["bench"], "tune");
    EXPECT_FALSE(record["failed"]);
    if (record["settings"].contains("HEADWAY_BUFFER_BYTES")) buffers.insert(record["settings"]["HEADWAY_BUFFER_BYTES"]);
  }
  EXPECT_TRUE(file["records"][0]["settings"].empty());
  EXPECT_EQ(file["records"][0]["repeat"], 3);
  EXPECT_EQ(buffers, (std::set<std::string>{"1K", "4K", "16K", "64K", "256K"}));
  EXPECT_GT(file["tune"]["ratio"]["median"].get<double>(), 0);
}

TEST(Tune, a_program_that_fails_is_not_tuned_and_its_status_kept) {
  const ChildResult result = headway({"tune", beside_command("headway-stream"), "--bytes", "nonsense"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("nothing to tune"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("nonsense"), std::string::npos) << result.errors;
}

TEST(Tune, a_program_that_does_not_end_is_ended) {
  const ChildResult result = headway({"tune", "--time-limit", "1", "sleep", "50"});
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.errors.find("--time-limit"), std::string::npos) << result.errors;
}

TEST(Tune, a_sweep_ends_with_its_time) {
  const ChildResult result = headway({"tune", "--sweep-limit", "1", "sleep", "0.3"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.errors.find("the 1 s for the sweep were over (--sweep-limit)"), std::string::npos) << result.errors;
  EXPECT_NE(result.output.find("nothing is known"), std::string::npos) << result.output;
  const ChildResult at_once = headway({"tune", "--sweep-limit", "1", "sleep", "50"});
  EXPECT_NE(at_once.status, 0);
  EXPECT_NE(at_once.errors.find("within 1 s (--sweep-limit)"), std::string::npos) << at_once.errors;
}

TEST(Tune, where_no_settings_gain_anything_it_says_so) {
  // Slower with any settings: programs that settings leave alone differ by noise, which now and then looks like a gain.
  const ChildResult result =
      headway({"tune", "--repeat", "5", "sh", "-c", "test -z \"$HEADWAY_BUFFER_BYTES\" || sleep 0.1"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("keep the defaults"), std::string::npos) << result.output;
}

TEST(Tune, where_no_other_settings_work_it_says_so_and_compares_nothing) {
  std::vector<std::string> line = {"tune", "sh", "-c", "test -z \"$HEADWAY_BUFFER_BYTES\""};
  const ChildResult table = headway(line);
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_NE(table.output.find("with all other settings the program failed"), std::string::npos) << table.output;
  EXPECT_EQ(table.output.find(" times the time "), std::string::npos) << table.output;
  line.insert(line.begin() + 1, {"--json", "-"});
  const bench::Json file = bench::Json::parse(headway(line).output);
  EXPECT_TRUE(file["tune"]["ratio"].is_null());
  EXPECT_TRUE(file["tune"]["settings"].empty());
  EXPECT_TRUE(file["records"][0]["seconds"].is_null());
  EXPECT_TRUE(file["records"][1]["failed"]);
}

TEST(Tune, the_defaults_are_those_of_an_environment_without_settings_of_aggregators) {
  const ChildResult result =
      headway({"tune", "--repeat", "1", "sh", "-c", "test -z \"$HEADWAY_CUTOFF$HEADWAY_TIMEOUT\""},
              {{"HEADWAY_CUTOFF", "0.2"}, {"HEADWAY_TIMEOUT", "1ms"}});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.errors.find("HEADWAY_CUTOFF, HEADWAY_TIMEOUT of the environment"), std::string::npos)
      << result.errors;
  EXPECT_EQ(result.output.find("failed"), std::string::npos) << result.output;
}

TEST(Command, doctor_and_info_end_well_here) {
  const ChildResult doctor = headway({"doctor"});
  EXPECT_EQ(doctor.status, 0) << doctor.output;
  for (const char* subject : {"cores", "memory", "shared memory", "CMA", "MPI", "plug-ins", "mpirun", "srun", "network",
                              "for shared memory: ", "/dev/shm", "host's memory"}) {
    EXPECT_NE(doctor.output.find(subject), std::string::npos) << subject;
  }
  const ChildResult info = headway({"info"});
  EXPECT_EQ(info.status, 0);
  EXPECT_TRUE(info.output.starts_with("headway ")) << info.output;
}

TEST(Command, the_interpreter_runs_a_script_of_python) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no python3";
  const std::string script = ::testing::TempDir() + "headway-script-" + std::to_string(::getpid()) + ".py";
  std::ofstream(script) << "import os, sys\nprint(sys.argv[1], 'HEADWAY_PES' in os.environ or 'no setting')\n";
  const ChildResult result = headway({"run", "-n", "1", script, "argument"});
  std::filesystem::remove(script);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(result.output.starts_with("argument ")) << result.output;
}

TEST(Command, flags_of_what_is_not_installed_are_refused) {
  const ChildResult result = headway({"cxxflags"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.errors.find("no part of an installation"), std::string::npos) << result.errors;
}

TEST(Command, a_platform_has_the_network_of_the_machine_and_the_given_latency) {
  const ChildResult now = headway({"platform", "now", "--pes", "4", "--pes-per-host", "2", "--latency", "1us"});
  EXPECT_EQ(now.status, 0) << now.errors;
  for (const char* part : {"<!-- now: o = 2900 ns, L = 1000 ns, G = 26.3157895 ns/B -->", "radical=\"0-1\""}) {
    EXPECT_NE(now.output.find(part), std::string::npos) << now.output;
  }
  const ChildResult unwritable = headway({"platform", "now", "--pes", "4", "--output", "/no/folder/now.xml"});
  EXPECT_EQ(unwritable.status, 2);
  EXPECT_EQ(unwritable.errors,
            "headway platform: --output: '/no/folder/now.xml' cannot be written: No such file or directory\n");
  const ChildResult hosts =
      headway({"platform", "now", "--pes", "3", "--pes-per-host", "2", "--output", "/dev/null", "--hosts", "-"});
  EXPECT_EQ(hosts.output, "now-0\nnow-0\nnow-1\n");
}

#if defined(HEADWAY_SIM)

/// An application, beside the command, on the simulated transport.
ChildResult simulated(const std::string& seed, const std::string& conditions, const std::string& pes) {
  const std::string command = HEADWAY_COMMAND;
  const std::string program = command.substr(0, command.rfind('/')) + "/headway-randomaccess";
  return headway({"run", "--transport", "sim", "--seed", seed, "--sim", conditions, "-n", pes, "--stall", "1s", program,
                  "--log2", "12"});
}

TEST(Command, an_unchanged_program_is_simulated_and_a_seed_repeats_the_run) {
  const char* conditions = "delay=20us,jitter=1,refuse=0.05,slow=1:10";
  const ChildResult first = simulated("7", conditions, "256"), again = simulated("7", conditions, "256");
  const ChildResult other = simulated("8", conditions, "256");
  EXPECT_EQ(first.status, 0) << first.errors;
  EXPECT_NE(first.output.find("of simulated time"), std::string::npos) << first.output;
  EXPECT_NE(first.output.find("verified"), std::string::npos) << first.output;
  EXPECT_NE(first.errors.find("headway: simulated 256 PEs, seed 7: "), std::string::npos) << first.errors;
  EXPECT_EQ(first.output, again.output);
  EXPECT_EQ(first.errors, again.errors);
  EXPECT_NE(first.errors, other.errors);
}

TEST(Command, a_simulated_run_that_stalls_says_how_to_have_it_again) {
  const ChildResult stalled = simulated("3", "stop=5@1us", "8");
  EXPECT_EQ(stalled.status, 122);
  for (const char* text :
       {"PE 5", "stopped", "HEADWAY_TRANSPORT=sim, HEADWAY_PES=8, HEADWAY_SEED=3, HEADWAY_SIM=stop=5@1us"}) {
    EXPECT_NE(stalled.errors.find(text), std::string::npos) << text << " is not in:\n" << stalled.errors;
  }
}

TEST(Command, measured_computation_adds_to_simulated_time) {
  const ChildResult none = simulated("1", "compute=0", "8"), measured = simulated("1", "compute=1000", "8");
  const auto seconds = [](const ChildResult& run) {
    EXPECT_EQ(run.status, 0) << run.errors;
    EXPECT_NE(run.output.find("verified"), std::string::npos) << run.output;
    return std::strtod(run.errors.substr(std::string("headway: simulated 8 PEs, seed 1: ").size()).c_str(), nullptr);
  };
  EXPECT_GT(seconds(none), 0);
  EXPECT_GT(seconds(measured), 3 * seconds(none));
}

TEST(Command, a_simulated_network_comes_from_a_machine_file) {
  const ChildResult by_name = simulated("1", "machine=now", "8");
  const ChildResult by_values = simulated("1", "o=2.9us,g=5.8us,L=5us,G=26.3157894736842ns", "8");
  EXPECT_EQ(by_name.status, 0) << by_name.errors;
  EXPECT_EQ(by_name.errors, by_values.errors);
  EXPECT_NE(by_name.errors, simulated("1", "machine=summit", "8").errors);
  EXPECT_NE(by_name.errors, simulated("1", "machine=now,L=50us", "8").errors);
}

TEST(Command, simulated_conditions_that_cannot_be_are_refused) {
  for (const auto& [conditions, named] : {std::pair("machine=sumit", "machine 'sumit' is unknown; allowed are cori,"),
                                          {"machine=./no.machine", "No such file"},
                                          {"L=1us,machine=now", "'machine=now': allowed is a list of machine=NAME"},
                                          {"compute=-1", "'compute=-1': allowed is a number from 0 to 1000000"}}) {
    const ChildResult refused = simulated("1", conditions, "8");
    EXPECT_EQ(refused.status, 120) << conditions;
    EXPECT_NE(refused.errors.find(named), std::string::npos) << refused.errors;
    EXPECT_EQ(std::ranges::count(refused.errors, '\n'), 1) << refused.errors;
  }

  const ChildResult refused = simulated("1", "L=3", "8");
  EXPECT_EQ(refused.status, 120);
  EXPECT_EQ(refused.errors, "headway: HEADWAY_SIM=L=3: 'L=3': allowed is a time such as 200ns, 2us or 1ms\n");
}
#endif

}  // namespace
}  // namespace headway::tools
