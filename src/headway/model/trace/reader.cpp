// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <headway/base/error.hpp>
#include <headway/model/trace/reader.hpp>
#include <limits>
#include <memory>
#include <system_error>

namespace headway::model::trace {
namespace {

constexpr std::uint32_t bytes_max_of_header = 4096, bytes_max_of_record = 4096;
constexpr std::uint32_t pes_most = 65536;  // a frame's header names no more
// Far below the limits of the type, so that sums of a run do not overflow.
constexpr std::int64_t time_most = std::numeric_limits<std::int64_t>::max() / 8;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rbe")) {
    if (file_ == nullptr) refuse(std::generic_category().message(errno));
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) refuse(error.message());
    left_ = bytes;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw SystemError(fmt::format("{}: it cannot be used as a trace: {}", path_, why));
  }
  std::uint64_t left() const { return left_; }
  void read(void* to, std::size_t bytes) {
    if (bytes > left_ || std::fread(to, 1, bytes, file_.get()) != bytes) refuse("it is cut off");
    left_ -= bytes;
  }
  void skip(std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes > left_ || std::fseek(file_.get(), long(bytes), SEEK_CUR) != 0) refuse("it is cut off");
    left_ -= bytes;
  }

 private:
  const std::string& path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t left_ = 0;
};

void check(const File& file, const Header& header) {
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) file.refuse("it does not begin as one");
  if (header.version != version)
    file.refuse(fmt::format("its version is {}, and this build reads {}", header.version, version));
  auto within = [&](const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    if (value < low || value > high) file.refuse(fmt::format("{} = {}: allowed is {} to {}", name, value, low, high));
  };
  within("header_bytes", header.header_bytes, sizeof(Header), bytes_max_of_header);
  within("record_bytes", header.record_bytes, sizeof(Record), bytes_max_of_record);
  within("PEs", header.pes, 1, pes_most);
  within("PE", header.pe, 0, header.pes - 1);
  within("clock", std::uint32_t(header.clock), 0, 1);
  for (const double cost : {header.overhead_ns, header.latency_ns, header.gap_per_byte_ns}) {
    if (!std::isfinite(cost) || cost < 0 || cost > 1e12)
      file.refuse(fmt::format("a cost of the transport is {}", cost));
  }
  if (header.dials[sizeof header.dials - 1] != 0 || header.transport[sizeof header.transport - 1] != 0)
    file.refuse("a text in its header has no end");
}

/// Returns whether the record is of a kind that is known.
bool check(const File& file, const Header& header, const Record& record, std::size_t number, std::int64_t last) {
  auto refuse = [&](const std::string& why) { file.refuse(fmt::format("record {}: {}", number, why)); };
  if (record.time_ns < -time_most || record.time_ns > time_most)
    refuse(fmt::format("its time of {} ns is out of range", record.time_ns));
  if (record.time_ns < last)
    refuse(fmt::format("its time of {} ns precedes that of the record before", record.time_ns));
  if ((record.kind < Kind::begin || record.kind > Kind::end) && record.kind != Kind::polled) return false;
  if (record.phase > Phase::quiescing) refuse(fmt::format("its phase is {}", int(record.phase)));
  if (record.kind != Kind::posted && record.kind != Kind::taken) return true;
  if (record.peer >= header.pes) refuse(fmt::format("its peer is PE {} of {}", record.peer, header.pes));
  return true;
}

}  // namespace

PeTrace read_trace(const std::string& path) {
  File file(path);
  PeTrace trace;
  file.read(&trace.header, sizeof(Header));
  const Header& header = trace.header;
  check(file, header);
  file.skip(header.header_bytes - sizeof(Header));
  if (header.records > file.left() / header.record_bytes || header.records * header.record_bytes != file.left()) {
    file.refuse(fmt::format("its header names {} records of {} bytes, and {} bytes follow", header.records,
                            header.record_bytes, file.left()));
  }
  trace.records.reserve(header.records);
  for (std::uint64_t number = 0; number < header.records; ++number) {
    Record record;
    file.read(&record, sizeof record);
    file.skip(header.record_bytes - sizeof record);
    const std::int64_t last = trace.records.empty() ? -time_most : trace.records.back().time_ns;
    if (check(file, header, record, number, last)) trace.records.push_back(record);
  }
  if (header.overruns != 0) {
    file.refuse(fmt::format("the PE made {} records and kept {}; trace a shorter run", header.records + header.overruns,
                            header.records));
  }
  if (trace.records.size() < 2 || trace.records.front().kind != Kind::begin || trace.records.back().kind != Kind::end)
    file.refuse("the run did not come to its end");
  return trace;
}

}  // namespace headway::model::trace
