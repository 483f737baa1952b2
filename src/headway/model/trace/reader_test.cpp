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
    std::filesystem::remove(file(pe));  // some file systems write a file that is cut and filled again to the disk
    std::ofstream(file(pe), std::ios::binary) << bytes;
  }
  std::string file(std::size_t pe) const { return path_ + "/pe-" + std::to_string(pe) + ".trace"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "headway-reader-test-XXXXXX";
};

std::string bytes_of(const PeTrace& trace) {
  std::string bytes(reinterpret_cast<const char*>(&trace.header), sizeof trace.header);
  bytes.append(reinterpret_cast<const char*>(trace.names.data()), trace.names.size() * sizeof(NameEntry));
  return bytes.append(reinterpret_cast<const char*>(trace.records.data()), trace.records.size() * sizeof(Record));
}

void add_name(PeTrace& trace, NameKind kind, std::uint16_t number, const char* text) {
  NameEntry& entry = trace.names.emplace_back(NameEntry{kind, number, {}});
  std::string(text).copy(entry.text, sizeof entry.text - 1);
  trace.header.names = std::uint32_t(trace.names.size());
  trace.header.header_bytes += sizeof(NameEntry);
}

/// The one line of the error; empty if the file is read.
std::string error_of(const std::string& path, const ReadOptions& options = {}) {
  try {
    read_trace(path, options);
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

TEST(TraceReader, names_and_phases_are_read) {
  const Folder folder;
  PeTrace made = MadeTrace(0, 2).phase(100, 3).post(150, 1).phase_end(200, 3).end(300);
  add_name(made, NameKind::phase, 3, "sweep");
  add_name(made, NameKind::handler, 3, "Aggregator<int>");
  folder.write(0, bytes_of(made));
  const PeTrace read = read_trace(folder.file(0));
  ASSERT_EQ(read.names.size(), 2u);
  EXPECT_EQ(read.name_of(NameKind::phase, 3), "sweep");
  EXPECT_EQ(read.name_of(NameKind::handler, 3), "Aggregator<int>");
  EXPECT_EQ(read.name_of(NameKind::phase, 4), "phase 4");
  ASSERT_EQ(read.records.size(), 5u);
  EXPECT_EQ(read.records[1].kind, Kind::phase_begins);
  EXPECT_EQ(read.records[3].kind, Kind::phase_ends);
}

// The file of a killed PE: unused places follow its last record.
TEST(TraceReader, a_run_that_did_not_end_is_read_where_the_caller_allows_it) {
  const Folder folder;
  PeTrace made = MadeTrace(0, 2).post(100, 1).post(200, 1).end(300);
  made.records.pop_back();
  made.header.written = 3;
  made.header.records_max = 10;
  folder.write(0, bytes_of(made) + std::string(7 * sizeof(Record), '\0'));
  EXPECT_NE(error_of(folder.file(0)).find("did not come to its end"), std::string::npos);
  const PeTrace read = read_trace(folder.file(0), {.may_be_unended = true});
  EXPECT_EQ(read.records.size(), 3u);
  EXPECT_FALSE(read.ended);
  EXPECT_EQ(read.lost, 0u);
  // Read again while the run goes on.
  EXPECT_EQ(read_trace(folder.file(0), {.may_be_unended = true, .written_max = 2}).records.size(), 2u);
  made.header.written = 0;
  folder.write(0, bytes_of(made));
  EXPECT_EQ(read_trace(folder.file(0), {.may_be_unended = true}).records.size(), 0u);
}

TEST(TraceReader, a_ring_begins_with_its_second_oldest_record) {
  const Folder folder;
  constexpr std::size_t places = 5;
  for (std::size_t posts = places - 2; posts < 3 * places; ++posts) {
    MadeTrace making(0, 2);
    for (std::size_t i = 0; i < posts; ++i) making.post(std::int64_t(100 * i), 1);
    const PeTrace whole = making.end(10'000);
    PeTrace ring = whole;
    ring.records.resize(places);
    ring.header.records_max = places;
    for (std::size_t i = 0; i < whole.records.size(); ++i) ring.records[i % places] = whole.records[i];
    folder.write(0, bytes_of(ring));
    const std::size_t lost = whole.records.size() == places ? 0 : whole.records.size() - places + 1;
    EXPECT_EQ(error_of(folder.file(0)).empty(), lost == 0);
    const PeTrace read = read_trace(folder.file(0), {.may_lose_records = true});
    EXPECT_EQ(read.lost, lost);
    ASSERT_EQ(read.records.size(), whole.records.size() - lost);
    for (std::size_t i = 0; i < read.records.size(); ++i)
      EXPECT_EQ(std::memcmp(&read.records[i], &whole.records[i + lost], sizeof(Record)), 0) << i;
    EXPECT_TRUE(read.ended);
  }
}

TEST(TraceReader, longer_headers_and_records_and_unknown_kinds_are_skipped) {
  const Folder folder;
  PeTrace made = MadeTrace(0, 2).post(100, 1).post(200, 1).end(300);
  made.header.header_bytes = sizeof(Header) + 16;
  made.header.record_bytes = sizeof(Record) + 8;
  made.records[1].kind = Kind(200);
  std::string bytes = bytes_of({made.header, {}, {}}) + std::string(16, 'x');
  for (const Record& record : made.records)
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record).append(8, 'y');
  folder.write(0, bytes);
  const PeTrace read = read_trace(folder.file(0));
  ASSERT_EQ(read.records.size(), 3u);
  EXPECT_EQ(read.records[1].time_ns, 200);
}

TEST(TraceReader, every_cut_and_every_damaged_byte_gives_a_trace_or_one_line) {
  const Folder folder;
  const std::string whole = [] {
    PeTrace trace = MadeTrace(0, 2).phase(50, 1).post(100, 1).wait(100).take(2200, 1).go_on(2300).end(2300);
    add_name(trace, NameKind::phase, 1, "sweep");
    return bytes_of(trace);
  }();
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
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.written = 8; }), "made 8 records and kept 2"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.names = 1; }), "names = 1: allowed is 0 to 0"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.records_max = 0; }), "records_max = 0"));
  EXPECT_TRUE(names(error([](PeTrace& t) { t.header.written = t.header.records_max = 4; }), "cut off"));
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
