// SPDX-License-Identifier: BSD-3-Clause
/// headway-limit as users start it: every case in all its formulations is verified, bad arguments are refused, and
/// no PE waits for a dead one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <record/record.hpp>
#include <sstream>
#include <support/memory.hpp>
#include <thread>

namespace headway::limit {
namespace {

using bench::Json;
using Arguments = std::vector<std::string>;

/// headway-limit as a child of this process; killed where it outlives this object.
class Started {
 public:
  explicit Started(Arguments arguments) : output_(std::tmpfile()), errors_(std::tmpfile()) {
    arguments.insert(arguments.begin(), HEADWAY_LIMIT);
    std::vector<char*> texts;
    for (std::string& argument : arguments) texts.push_back(argument.data());
    texts.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(::fileno(output_), STDOUT_FILENO);
      ::dup2(::fileno(errors_), STDERR_FILENO);
      ::execv(texts[0], texts.data());
      ::_exit(127);
    }
  }
  ~Started() {
    if (!ended_) ::kill(process_, SIGKILL);
    wait();
    std::fclose(output_);
    std::fclose(errors_);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  pid_t process() const { return process_; }
  /// Its exit status, or 128 + the signal.
  int wait() {
    if (!ended_) ::waitpid(process_, &status_, 0);
    ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  std::string output() const { return text_of(output_); }
  std::string errors() const { return text_of(errors_); }

 private:
  static std::string text_of(std::FILE* file) {
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text.push_back(char(c));
    return text;
  }
  std::FILE *output_, *errors_;
  pid_t process_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

Json record_of(Arguments arguments) {
  arguments.insert(arguments.end(), {"--json", "-", "--no-bind"});
  Started started(arguments);
  EXPECT_EQ(started.wait(), 0) << started.errors();
  Json record = Json::parse(started.output(), nullptr, false);
  EXPECT_TRUE(record.is_object()) << started.output();
  return record;
}

void expect_verified(const Arguments& arguments, std::uint64_t messages, std::size_t formulations_min) {
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  SCOPED_TRACE(line);
  const Json record = record_of(arguments);
  EXPECT_EQ(record["verified"], true);
  EXPECT_EQ(record["errors"], 0);
  EXPECT_EQ(record["mode"], "limit");
  EXPECT_EQ(record["messages"], messages);
  EXPECT_GE(record["tried_messages_per_second"].size(), formulations_min);
  EXPECT_TRUE(record["tried_messages_per_second"].contains(record["formulation"].get<std::string>()));
  EXPECT_GT(record["messages_per_second"].get<double>(), 0);
}

TEST(Limit, rings_deliver_every_size_in_every_pattern_and_formulation) {
  for (const char* pattern : {"one-way", "both-ways", "pairs", "others"}) {
    const std::uint64_t messages = pattern == std::string("one-way") ? 3000 : 6000;
    for (const char* bytes : {"8", "16", "32", "64", "104", "256", "1000"}) {
      for (const Arguments& further : {Arguments{}, {"--variable"}, {"--table-log2", "10"}}) {
        Arguments arguments = {"--pattern", pattern, "--bytes", bytes, "--messages", "3000"};
        arguments.insert(arguments.end(), further.begin(), further.end());
        expect_verified(arguments, messages, 3);
      }
    }
  }
}

TEST(Limit, rings_deliver_among_any_number_of_pes_and_with_any_buffer) {
  for (const char* pes : {"1", "3", "4", "5", "8"}) {
    const std::uint64_t messages = 2000 * std::stoull(pes);
    expect_verified({"--pes", pes, "--messages", "2000"}, messages, 3);
    expect_verified(
        {"--pes", pes, "--messages", "2000", "--table-log2", "12", "--bytes", "104", "--buffer-bytes", "256"}, messages,
        3);
    expect_verified({"--pes", pes, "--messages", "2000", "--bytes", "77", "--buffer-bytes", "1000"}, messages, 3);
    if (pes == std::string("1")) continue;
    expect_verified({"--pes", pes, "--messages", "2000", "--pattern", "others"}, messages, 3);
    expect_verified({"--pes", pes, "--messages", "2000", "--pattern", "others", "--bytes", "100"}, messages, 3);
    expect_verified({"--pes", pes, "--messages", "2000", "--pattern", "others", "--table-log2", "12"}, messages, 3);
  }
  expect_verified({"--bytes", "300000", "--messages", "20"}, 40, 3);  // larger than any buffer it would choose
}

TEST(Limit, updates_latency_copies_and_reads_are_verified) {
  expect_verified({"--bench", "updates", "--messages", "10001", "--table-log2", "12"}, 20002, 3);
  expect_verified({"--bench", "updates", "--messages", "10001", "--pes", "3"}, 30003, 3);
  expect_verified({"--bench", "latency", "--messages", "500"}, 1000, 3);
  for (const char* bytes : {"9", "16", "77", "1000", "100000"}) {
    expect_verified({"--bench", "latency", "--messages", "50", "--bytes", bytes}, 100, 3);
  }
  EXPECT_GT(record_of({"--bench", "latency", "--messages", "500"})["one_way_us"]["median"].get<double>(), 0);
  for (const char* bytes : {"1024", "4097", "1000000"}) {
    expect_verified({"--bench", "copy", "--bytes", bytes, "--messages", "10"}, 10, 3);
    const Json read = record_of({"--bench", "cma", "--bytes", bytes, "--messages", "10"});
    EXPECT_EQ(read["verified"], true);
    if (read.contains("unavailable")) {
      EXPECT_NE(read["unavailable"].get<std::string>().find("process_vm_readv"), std::string::npos);
    } else {
      EXPECT_GT(read["bytes_per_second"].get<double>(), 0);
    }
  }
}

TEST(Limit, messages_between_memory_of_both_are_verified_each_way_and_in_buffers_of_both_kinds) {
  for (const char* bench : {"trip-mapped", "trip-pieces", "trip-cma"}) {
    for (const char* buffers : {"reused", "fresh"}) {
      for (const char* bytes : {"8", "9", "77", "4096", "100001", "3000000"}) {
        if (buffers == std::string("fresh") && bytes != std::string("100001")) continue;  // a set is large
        const Arguments arguments = {"--bench", bench, "--bytes", bytes, "--messages", "20", "--buffers", buffers};
        SCOPED_TRACE(bench + std::string(" ") + bytes + " " + buffers);
        const Json record = record_of(arguments);
        EXPECT_EQ(record["verified"], true);
        EXPECT_EQ(record["errors"], 0);
        EXPECT_EQ(record["by"], bench);
        EXPECT_EQ(record["buffers"], buffers);
        if (record.contains("unavailable")) {
          EXPECT_NE(record["unavailable"].get<std::string>().find("process_vm_readv"), std::string::npos);
          continue;
        }
        EXPECT_EQ(record["messages"], 40);
        EXPECT_GE(record["tried_messages_per_second"].size(), 3u);
        EXPECT_GT(record["one_way_us"]["median"].get<double>(), 0);
      }
    }
  }
}

TEST(Limit, one_formulation_can_be_asked_for) {
  const Json record = record_of({"--messages", "1000", "--formulation", "fields, checked, by four, 16K"});
  EXPECT_EQ(record["formulation"], "fields, checked, by four, 16K");
  EXPECT_EQ(record["tried_messages_per_second"].size(), 1u);
}

TEST(Limit, messages_that_own_what_they_hold_are_delivered_in_every_pattern) {
  for (const char* type : {"vector", "struct"}) {
    for (const char* pattern : {"one-way", "both-ways", "pairs", "others"}) {
      const std::uint64_t messages = pattern == std::string("one-way") ? 3000 : 6000;
      for (const Arguments& further : {Arguments{"16"}, {"104"}, {"1000"}, {"77", "--table-log2", "10"}}) {
        Arguments arguments = {"--type", type, "--pattern", pattern, "--messages", "3000", "--bytes"};
        arguments.insert(arguments.end(), further.begin(), further.end());
        expect_verified(arguments, messages, 3);
      }
    }
    for (const char* pes : {"1", "3", "5"}) {
      expect_verified({"--type", type, "--pes", pes, "--messages", "2000", "--bytes", "100", "--buffer-bytes", "256"},
                      2000 * std::stoull(pes), 3);
    }
    EXPECT_EQ(record_of({"--type", type, "--bytes", "32", "--messages", "1000"})["options"]["type"], type);
  }
  expect_verified({"--type", "vector", "--bytes", "8", "--messages", "3000"}, 6000, 3);
  expect_verified({"--type", "bytes", "--bytes", "32", "--messages", "3000"}, 6000, 3);
  expect_verified({"--type", "fixed", "--bytes", "32", "--messages", "3000"}, 6000, 3);
}

TEST(Limit, rings_of_any_number_of_buffers_deliver_and_no_others_are_tried) {
  for (const char* buffers : {"2", "7", "8", "32"}) {
    const bool usual = buffers == std::string("8");
    for (const char* pattern : {"one-way", "both-ways", "pairs"}) {
      for (const Arguments& further : {Arguments{}, {"--bytes", "77"}, {"--table-log2", "10", "--bytes", "104"}}) {
        Arguments arguments = {"--buffers", buffers, "--pattern", pattern, "--messages", "20000"};
        arguments.insert(arguments.end(), further.begin(), further.end());
        const Json record = record_of(arguments);
        SCOPED_TRACE(buffers + std::string(" ") + pattern);
        EXPECT_EQ(record["verified"], true);
        EXPECT_EQ(std::to_string(record["options"]["buffers"].get<int>()), buffers);
        for (const auto& [name, rate] : record["tried_messages_per_second"].items()) {
          const std::string end = usual ? "K" : std::string("K x ") + buffers;
          EXPECT_TRUE(name.ends_with(end)) << name;
        }
      }
    }
  }
  expect_verified({"--pes", "5", "--messages", "2000", "--buffers", "2"}, 10000, 3);
  expect_verified({"--messages", "2000", "--buffers", "3", "--buffer-bytes", "256"}, 4000, 3);
}

TEST(Limit, bad_arguments_are_refused_in_one_line_that_says_what_is_allowed) {
  struct Refusal {
    Arguments arguments, named;
  };
  const std::vector<Refusal> refusals = {
      {{"--bench", "rings"},
       {"--bench", "'rings'", "updates, ring, latency, copy, cma, trip-mapped, trip-pieces, trip-cma"}},
      {{"--pes", "0"}, {"--pes", "'0'", "1 to 64"}},
      {{"--pes", "65"}, {"--pes", "'65'", "1 to 64"}},
      {{"--pattern", "both"}, {"--pattern", "'both'", "one-way, both-ways, pairs, others"}},
      {{"--pattern", "pairs", "--pes", "3"}, {"--pes", "'3'", "even"}},
      {{"--pattern", "others", "--pes", "1"}, {"--pes", "'1'", "2 or more"}},
      {{"--bench", "latency", "--pes", "3"}, {"--pes", "'3'", "2"}},
      {{"--bytes", "7"}, {"--bytes", "'7'", "8 to"}},
      {{"--bytes", "5000000"}, {"--bytes", "'5000000'", "4194304"}},
      {{"--messages", "0"}, {"--messages", "'0'"}},
      {{"--table-log2", "99"}, {"--table-log2", "'99'", "1 to 36"}},
      {{"--buffer-bytes", "1"}, {"--buffer-bytes", "'1'", "256"}},
      {{"--type", "vectors"}, {"--type", "'vectors'", "fixed, bytes, vector, struct"}},
      {{"--type", "fixed", "--bytes", "77"}, {"--bytes", "'77'", "--type fixed", "8, 16, 32, 64, 104, 256, 1000"}},
      {{"--type", "struct", "--bytes", "15"}, {"--bytes", "'15'", "--type struct", "16 to 4194304"}},
      {{"--bench", "latency", "--type", "vector"}, {"--type", "ring", "latency"}},
      {{"--buffers", "1"}, {"--buffers", "'1'", "2 to 32"}},
      {{"--buffers", "33"}, {"--buffers", "'33'", "2 to 32"}},
      {{"--buffers", "eight"}, {"--buffers", "'eight'", "2 to 32"}},
      {{"--bench", "copy", "--buffers", "8"}, {"--buffers", "ring", "copy"}},
      {{"--bench", "trip-mapped", "--buffers", "8"}, {"--buffers", "'8'", "reused, fresh"}},
      {{"--buffers", "fresh"}, {"--buffers", "'fresh'", "2 to 32"}},
      {{"--bench", "trip-cma", "--pes", "4"}, {"--pes", "'4'", "2"}},
      {{"--bench", "trip-cma", "--type", "bytes"}, {"--type", "ring", "trip-cma"}},
      {{"--formulation", "feilds"}, {"--formulation", "'feilds'", "fields, checked, by four, 16K"}},
      {{"--bench", "latency", "--table-log2", "5"}, {"--table-log2", "ring and updates", "latency"}},
      {{"--bench", "updates", "--pattern", "pairs"}, {"--pattern", "ring", "updates"}},
      {{"--byte", "8"}, {"'--byte'", "'--bytes'"}},
      {{"more"}, {"'more'"}},
  };
  for (const Refusal& refusal : refusals) {
    Started started(refusal.arguments);
    SCOPED_TRACE(refusal.arguments.front());
    EXPECT_EQ(started.wait(), 2);
    EXPECT_EQ(started.output(), "");
    const std::string errors = started.errors();
    EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << errors;
    for (const std::string& name : refusal.named)
      EXPECT_NE(errors.find(name), std::string::npos) << name << ": " << errors;
  }
}

constexpr auto patience = std::chrono::seconds(30);

/// Waits, at most `patience`, until the condition holds; returns whether it does.
template <class Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// False for a zombie: it has ended, but its new parent need not have reaped it.
bool runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end + 2, 1, "Z") != 0;
}

/// A run that would take days, and its processes.
struct Endless {
  Started started;
  std::vector<pid_t> pes;
  explicit Endless(const Arguments& arguments) : started(arguments) {
    EXPECT_TRUE(comes_true([&] { return testing::children_of(started.process()).size() == 2; }));
    pes = testing::children_of(started.process());
  }
};

const std::vector<Arguments> endless = {{"--bench", "ring", "--messages", "2^40"},
                                        {"--bench", "ring", "--pattern", "one-way", "--messages", "2^40"},
                                        {"--bench", "latency", "--messages", "2^40"},
                                        {"--bench", "latency", "--messages", "2^40", "--bytes", "100"},
                                        {"--bench", "trip-mapped", "--messages", "2^40", "--bytes", "100"},
                                        {"--bench", "trip-pieces", "--messages", "2^40", "--bytes", "100"}};

TEST(Limit, a_killed_process_ends_the_run_and_is_named) {
  for (const Arguments& arguments : endless) {
    for (const std::size_t victim : {0, 1}) {
      Endless run(arguments);
      ASSERT_EQ(run.pes.size(), 2u);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ::kill(run.pes[victim], SIGKILL);
      ASSERT_TRUE(comes_true([&] { return !runs(run.started.process()); }));
      EXPECT_EQ(run.started.wait(), 1);
      EXPECT_NE(run.started.errors().find("was ended by signal 9"), std::string::npos) << run.started.errors();
      EXPECT_NE(run.started.errors().find(std::to_string(run.pes[victim])), std::string::npos) << run.started.errors();
      for (const pid_t pe : run.pes) EXPECT_FALSE(runs(pe));
    }
  }
}

TEST(Limit, processes_end_with_the_one_that_started_them) {
  for (const Arguments& arguments : endless) {
    Endless run(arguments);
    ASSERT_EQ(run.pes.size(), 2u);
    ::kill(run.started.process(), SIGKILL);
    EXPECT_TRUE(comes_true([&] { return !runs(run.pes[0]) && !runs(run.pes[1]); }));
  }
}

TEST(Limit, a_run_that_takes_too_long_is_ended) {
  Endless run({"--messages", "2^40", "--time-limit", "1"});
  ASSERT_TRUE(comes_true([&] { return !runs(run.started.process()); }));
  EXPECT_EQ(run.started.wait(), 1);
  EXPECT_NE(run.started.errors().find("--time-limit"), std::string::npos) << run.started.errors();
  for (const pid_t pe : run.pes) EXPECT_FALSE(runs(pe));
}

}  // namespace
}  // namespace headway::limit
