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

constexpr std::uint32_t bytes_max_of_header = 1 << 20, bytes_max_of_record = 4096;
constexpr std::uint32_t pes_most = 65536;  // a frame's header names no more
constexpr std::uint64_t written_most = std::uint64_t(1) << 56;
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
    bytes_ = left_ = bytes;
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
    if (bytes != 0) go_to(bytes_ - left_ + bytes);
  }
  void go_to(std::uint64_t byte) {
    if (byte > bytes_ || std::fseek(file_.get(), long(byte), SEEK_SET) != 0) refuse("it is cut off");
    left_ = bytes_ - byte;
  }

 private:
  const std::string& path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t bytes_ = 0, left_ = 0;
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
  within("names_begin", header.names_begin, sizeof(Header), header.header_bytes);
  within("names", header.names, 0, (header.header_bytes - header.names_begin) / sizeof(NameEntry));
  within("written", header.written, 0, written_most);
  within("records_max", header.records_max, header.written == 0 ? 0 : 1, written_most);
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
  if (record.kind < Kind::begin || record.kind > Kind::polled) return false;
  if (record.phase > Phase::quiescing) refuse(fmt::format("its phase is {}", int(record.phase)));
  const bool has_peer = record.kind == Kind::posted || record.kind == Kind::taken || record.kind == Kind::flushed ||
                        record.kind == Kind::mark;
  if (has_peer && record.peer >= header.pes) refuse(fmt::format("its peer is PE {} of {}", record.peer, header.pes));
  if (record.kind == Kind::mark && record.detail > std::uint8_t(MarkEnd::end))
    refuse(fmt::format("it is a mark of detail {}: allowed is 0 to 2", record.detail));
  return true;
}

void read_names(File& file, PeTrace& trace) {
  file.go_to(trace.header.names_begin);
  trace.names.resize(trace.header.names);
  for (NameEntry& entry : trace.names) {
    file.read(&entry, sizeof entry);
    if (entry.text[sizeof entry.text - 1] != 0) file.refuse("a text in its table of names has no end");
  }
}

/// From the oldest record on, which may lie in the middle.
void read_records(File& file, PeTrace& trace) {
  const Header& header = trace.header;
  file.go_to(header.header_bytes);
  const std::uint64_t kept = std::min(header.written, header.records_max);
  if (kept > file.left() / header.record_bytes) {
    file.refuse(fmt::format("it is cut off: its header names {} records of {} bytes, and {} bytes follow", kept,
                            header.record_bytes, file.left()));
  }
  trace.lost = header.written - kept;
  trace.records.reserve(kept);
  const std::uint64_t oldest = trace.lost == 0 ? 0 : header.written % header.records_max;
  file.skip(oldest * header.record_bytes);
  std::int64_t last = -time_most;
  for (std::uint64_t number = 0; number < kept; ++number) {
    if (number == kept - oldest && number != 0) file.go_to(header.header_bytes);
    Record record;
    file.read(&record, sizeof record);
    file.skip(header.record_bytes - sizeof record);
    // A PE that was killed may have been about to replace it.
    if (number == 0 && trace.lost != 0) continue;
    if (!check(file, header, record, number, last)) continue;
    last = record.time_ns;
    trace.records.push_back(record);
  }
  trace.lost += trace.lost != 0;
}

}  // namespace

std::string PeTrace::name_of(NameKind kind, std::uint32_t number) const {
  for (const NameEntry& entry : names) {
    if (entry.kind == kind && entry.number == number) return entry.text;
  }
  const char* const what = kind == NameKind::phase ? "phase" : kind == NameKind::handler ? "handler" : "mark";
  return fmt::format("{} {}", what, number);
}

PeTrace read_trace(const std::string& path, const ReadOptions& options) {
  File file(path);
  PeTrace trace;
  file.read(&trace.header, sizeof(Header));
  check(file, trace.header);
  // Once the ring has been filled, newer records have replaced older ones.
  if (trace.header.written <= trace.header.records_max)
    trace.header.written = std::min(trace.header.written, options.written_max);
  read_names(file, trace);
  read_records(file, trace);
  if (trace.lost != 0 && !options.may_lose_records) {
    file.refuse(fmt::format("the PE made {} records and kept {}; trace a shorter run", trace.header.written,
                            trace.header.written - trace.lost));
  }
  trace.ended = !trace.records.empty() && trace.records.back().kind == Kind::end;
  const bool begun = trace.lost != 0 || (!trace.records.empty() && trace.records.front().kind == Kind::begin);
  if (!options.may_be_unended && !(begun && trace.ended && trace.header.written >= 2))
    file.refuse("the run did not come to its end");
  return trace;
}

}  // namespace headway::model::trace
