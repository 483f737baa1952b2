// SPDX-License-Identifier: BSD-3-Clause
/// Files that runs with HEADWAY_TRACE leave, also where they are killed, and the counts of their phases.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/phase.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/run.hpp>
#include <headway/model/trace/reader.hpp>
#include <sstream>
#include <string>
#include <support/run_pes.hpp>

namespace headway::launch {
namespace {

using model::trace::Kind;
using model::trace::NameKind;
using model::trace::PeTrace;

class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string file(std::size_t pe) const { return path_ + "/pe-" + std::to_string(pe) + ".trace"; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "headway-traced-test-XXXXXX";
};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Each PE sends many messages to the other one, in two phases.
void exchange(
    Pe& pe, const std::function<void(int round)>& each = [](int) {}) {
  Aggregator<int> numbers(pe, {.buffer_bytes = 512});
  std::uint64_t sum = 0;
  numbers.on([&](int number) { sum += std::uint64_t(number); });
  for (int round = 0; round < 20; ++round) {
    const auto sending = phase(pe, "sending");
    for (int i = 0; i < 1000; ++i) numbers.send(1 - pe.id(), i);
    each(round);
    const auto ending = phase(pe, "ending");
    pe.quiesce();
  }
  EXPECT_EQ(sum, 20u * 1000 * 999 / 2);
}

TEST(TracedRun, a_run_has_names_phases_and_flushes) {
  if (testing::launches()) GTEST_SKIP() << "its processes are its launcher's";
  const Folder folder;
  EXPECT_EQ(testing::run_pes(2, 1, [](Pe& pe) { exchange(pe); }, {{"HEADWAY_TRACE", folder.path()}}), 0);
  for (std::size_t pe = 0; pe < 2; ++pe) {
    const PeTrace trace = model::trace::read_trace(folder.file(pe));
    std::size_t open = 0, begun = 0, flushes = 0, posts = 0;
    std::uint32_t handler = 0;
    for (std::size_t i = 0; i < trace.records.size(); ++i) {
      const model::trace::Record& record = trace.records[i];
      switch (record.kind) {
        case Kind::phase_begins:
          ++begun;
          ++open;
          EXPECT_EQ(trace.name_of(NameKind::phase, record.handler), open == 1 ? "sending" : "ending");
          break;
        case Kind::phase_ends: --open; break;
        case Kind::flushed:
          ++flushes;
          handler = record.handler;
          ASSERT_LT(i + 1, trace.records.size());
          EXPECT_EQ(trace.records[i + 1].kind, Kind::posted);
          EXPECT_EQ(trace.records[i + 1].messages, record.messages);
          EXPECT_GE(record.detail, 1);
          EXPECT_LE(record.detail, 4);
          break;
        case Kind::posted: posts += record.is_control == 0; break;
        default: break;
      }
    }
    EXPECT_EQ(begun, 40u);
    EXPECT_EQ(open, 0u);
    EXPECT_GE(flushes, 20u * 1000 * sizeof(int) / 512);
    EXPECT_LE(flushes, posts);
    EXPECT_NE(trace.name_of(NameKind::handler, handler).find("int"), std::string::npos)
        << trace.name_of(NameKind::handler, handler);
    EXPECT_NE(trace.header.process, 0u);
    EXPECT_GT(trace.header.began_ns, 1'000'000'000'000'000'000u);
    EXPECT_EQ(std::filesystem::file_size(folder.file(pe)),
              trace.header.header_bytes + trace.header.written * sizeof(model::trace::Record));
  }
  const std::string description = text_of(folder.path() + "/trace.json");
  for (const char* part :
       {"\"headway\": \"", "\"pes\": 2", "\"simulated\": false", "\"network\": null", "\"began\": \"2"})
    EXPECT_NE(description.find(part), std::string::npos) << part << " in " << description;
}

TEST(TracedRun, a_killed_pe_leaves_what_it_had) {
  if (testing::launches()) GTEST_SKIP() << "its processes are its launcher's";
  const Folder folder;
  const testing::Outcome outcome = testing::catch_run({2, 1},
                                                      [](Pe& pe) {
                                                        exchange(pe, [&](int round) {
                                                          if (round == 10 && pe.id() == 1) kill(getpid(), SIGKILL);
                                                        });
                                                      },
                                                      {{"HEADWAY_TRACE", folder.path()}});
  EXPECT_EQ(outcome.status, exit_status::failed);
  EXPECT_NE(outcome.text.find("PE 1"), std::string::npos) << outcome.text;
  for (std::size_t pe = 0; pe < 2; ++pe) {
    EXPECT_THROW(model::trace::read_trace(folder.file(pe)), SystemError);
    const PeTrace trace = model::trace::read_trace(folder.file(pe), {.may_be_unended = true});
    EXPECT_FALSE(trace.ended);
    EXPECT_EQ(trace.lost, 0u);
    const auto is_phase = [](const auto& record) { return record.kind == Kind::phase_begins; };
    EXPECT_EQ(std::ranges::count_if(trace.records, is_phase), pe == 1 ? 21 : 22);
  }
}

TEST(TracedRun, counts_have_times_that_sum_up_and_phases) {
  if (testing::launches()) GTEST_SKIP() << "its processes are its launcher's";
  const Folder folder;
  const std::string file = folder.path() + "/counts.json";
  EXPECT_EQ(testing::run_pes(2, 1, [](Pe& pe) { exchange(pe); }, {{"HEADWAY_COUNTS", file}}), 0);
  const std::string text = text_of(file);
  auto number = [&](std::size_t& at, const std::string& name) {
    at = text.find("\"" + name + "\": ", at);
    EXPECT_NE(at, std::string::npos) << name << " in " << text;
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + name.size() + 4, nullptr, 10);
  };
  std::size_t at = text.find("\"per_pe\"");
  for (unsigned pe = 0; pe < 2; ++pe) {
    const std::uint64_t run_ns = number(at, "run_ns");
    at = text.find("\"times_ns\"", at);
    std::uint64_t sum = 0;
    for (const char* name : {"program", "handlers", "communication", "waiting"}) {
      const std::uint64_t part = number(at, name);
      EXPECT_GT(part, 0u) << name;
      sum += part;
    }
    EXPECT_EQ(sum, run_ns);
    EXPECT_EQ(number(at, "calls"), 20u);
    at += 1;
    EXPECT_EQ(number(at, "calls"), 20u);
  }
}

}  // namespace
}  // namespace headway::launch
