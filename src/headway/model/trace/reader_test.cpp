// SPDX-License-Identifier: BSD-3-Clause
/// Files of traces that are whole, cut off and damaged.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/model/trace/made_trace_test.hpp>

namespace headway::model::trace {
namespace {

class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  void write(std::size_t pe, const std::string& bytes) const {
    std::ofstream(path_ + "/pe-" + std::to_string(pe) + ".trace", std::ios::binary) << bytes;
  }
  std::string file(std::size_t pe) const { return path_ + "/pe-" + std::to_string(pe) + ".trace"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "headway-reader-test-XXXXXX";
};

std::string bytes_of(const PeTrace& trace) {
  std::string bytes(reinterpret_cast<const char*>(&trace.header), sizeof trace.header);
  return bytes.append(reinterpret_cast<const char*>(trace.records.data()), trace.records.size() * sizeof(Record));
}

/// The one line of the error; empty if the file is read.
std::string error_of(const std::string& path) {
  try {
    read_trace(path);
    return "";
  } catch (const SystemError& error) {
    return error.what();
  }
}

TEST(TraceReader, a_whole_file_is_read) {
  const Folder folder;
  const PeTrace made = MadeTrace(3, 5).post(100, 1).wait(100).take(2200, 1).go_on(2300).end(2300);
  folder.write(3, bytes_of(made));
  const PeTrace read = read_trace(folder.file(3));
  ASSERT_EQ(read.records.size(), made.records.size());
  EXPECT_EQ(bytes_of(read), bytes_of(made));
}

TEST(TraceReader, longer_headers_and_records_and_unknown_kinds_are_skipped) {
  const Folder folder;
  PeTrace made = MadeTrace(0, 2).post(100, 1).post(200, 1).end(300);
  made.header.header_bytes = sizeof(Header) + 16;
  made.header.record_bytes = sizeof(Record) + 8;
  made.records[1].kind = Kind(200);
  std::string bytes = bytes_of({made.header, {}}) + std::string(16, 'x');
  for (const Record& record : made.records)
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record).append(8, 'y');
  folder.write(0, bytes);
  const PeTrace read = read_trace(folder.file(0));
  ASSERT_EQ(read.records.size(), 3u);
  EXPECT_EQ(read.records[1].time_ns, 200);
}

TEST(TraceReader, every_cut_and_every_damaged_byte_gives_a_trace_or_one_line) {
  const Folder folder;
  const std::string whole = bytes_of(MadeTrace(0, 2).post(100, 1).wait(100).take(2200, 1).go_on(2300).end(2300));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    folder.write(0, whole.substr(0, length));
    EXPECT_NE(error_of(folder.file(0)), "") << length << " bytes";
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char other : {'\xff', '\x01'}) {
      std::string bytes = whole;
      bytes[at] = char(bytes[at] ^ other);
      folder.write(0, bytes);
      const std::string error = error_of(folder.file(0));
      refused += !error.empty();
      EXPECT_EQ(std::ranges::count(error, '\n'), 0) << error;
      EXPECT_TRUE(error.empty() || error.find(folder.file(0)) != std::string::npos) << error;
    }
  }
  EXPECT_GT(refused, 150u);
}

TEST(TraceReader, errors_name_what_is_wrong) {
  const Folder folder;
  EXPECT_NE(error_of(folder.file(0)).find("No such file"), std::string::npos);
  auto error = [&](auto change) {
    PeTrace trace = MadeTrace(0, 2).post(100, 1).end(300);
    change(trace);
    folder.write(0, bytes_of(trace));
    return error_of(folder.file(0));
  };
  auto names = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.magic[0] = 'X'; }), "does not begin"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.version = 9; }), "version is 9"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.pe = 7; }), "PE = 7"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.overruns = 5; }), "made 8 records and kept 3"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.records[1].peer = 2; }), "PE 2 of 2"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.records[2].time_ns = 50; }), "precedes"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.records[2].kind = Kind::wait_ends; }), "end"));
}

TEST(TraceReader, a_folder_must_hold_the_traces_of_one_run) {
  const Folder folder;
  auto error = [&] {
    try {
      read_graph(folder.path());
      return std::string();
    } catch (const SystemError& failure) {
      return std::string(failure.what());
    }
  };
  EXPECT_NE(error().find("pe-0.trace"), std::string::npos);
  folder.write(0, bytes_of(MadeTrace(0, 2).end(300)));
  EXPECT_NE(error().find("pe-1.trace"), std::string::npos);
  folder.write(1, bytes_of(MadeTrace(0, 2).end(300)));
  EXPECT_NE(error().find("it is of PE 0"), std::string::npos);
  folder.write(1, bytes_of(MadeTrace(1, 3).end(300)));
  EXPECT_NE(error().find("another run"), std::string::npos);
  folder.write(1, bytes_of(MadeTrace(1, 2).end(300)));
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace headway::model::trace
