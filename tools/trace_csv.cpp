// SPDX-License-Identifier: BSD-3-Clause
#include "trace_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <headway/base/error.hpp>
#include <iterator>
#include <memory>
#include <system_error>

#include "trace_slices.hpp"

namespace headway::tools {

using model::trace::FrameEnd;
using model::trace::Kind;
using model::trace::Record;

namespace {

constexpr const char* columns =
    "pe,host,time_ns,record,phase,name,peer,messages,bytes,hops_left,sequence,control,foreign,frame,state,latency_ns,"
    "reason,age_ns,step,lost\n";

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::begin: return "begin";
    case Kind::posted: return "posted";
    case Kind::taken: return "taken";
    case Kind::found_none: return "found_none";
    case Kind::wait_begins: return "wait_begins";
    case Kind::wait_ends: return "wait_ends";
    case Kind::end: return "end";
    case Kind::phase_begins: return "phase_begins";
    case Kind::phase_ends: return "phase_ends";
    case Kind::flushed: return "flushed";
    case Kind::mark: return "mark";
    case Kind::polled: return "polled";
  }
  return "";
}

const char* name_of(model::trace::Phase phase) {
  static constexpr std::array names = {"working", "handling", "waiting", "collective", "epoch", "quiescing"};
  return names[std::size_t(phase)];
}

const char* name_of(FrameEnd::State state) {
  static constexpr std::array names = {"joined", "undelivered", "unknown"};
  return names[std::size_t(state)];
}

const char* step_of(const Record& mark) {
  static constexpr std::array names = {"instant", "begin", "end"};
  return mark.detail < names.size() ? names[mark.detail] : "";
}

/// As RFC 4180 has it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

class Rows {
 public:
  explicit Rows(const std::string& path) : path_(path), file_(path == "-" ? stdout : std::fopen(path.c_str(), "we")) {
    if (file_ == nullptr) refuse();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  }

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
    if (buffer_.size() > (1u << 18)) flush();
  }
  void close() {
    flush();
    std::FILE* const file = std::exchange(file_, nullptr);
    if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0) refuse();
  }

 private:
  void flush() {
    if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) refuse();
    buffer_.clear();
  }
  [[noreturn]] void refuse() const {
    throw SystemError(fmt::format("'{}' cannot be written: {}", path_, std::generic_category().message(errno)));
  }

  std::string path_;
  std::FILE* file_;
  std::string buffer_;
};

void add_frame(Rows& rows, const Record& record, const FrameEnd& end, const SliceNames& names) {
  rows.add("{},{},{},{},{},{},{},{},", quoted(names.handler(record)), record.peer, record.messages, record.bytes,
           record.hops_left, record.sequence, record.is_control, record.is_foreign);
  if (end.state == FrameEnd::State::joined) {
    rows.add("{},{},{},,,,\n", end.number, name_of(end.state),
             end.is_posted ? end.other_ns - end.time_ns : end.time_ns - end.other_ns);
  } else {
    rows.add(",{},,,,,\n", name_of(end.state));
  }
}

void add_record(Rows& rows, const Record& record, const SliceNames& names) {
  switch (record.kind) {
    case Kind::phase_begins:
    case Kind::phase_ends: return rows.add("{},,,,,,,,,,,,,,\n", quoted(names.phase(record.handler)));
    case Kind::mark:
      return rows.add("{},{},,{},,{},,,,,,,,{},\n", quoted(names.mark(record.handler)), record.peer, record.bytes,
                      record.sequence, step_of(record));
    case Kind::flushed:
      return rows.add("{},{},{},,,,,,,,,{},{},,\n", quoted(names.handler(record)), record.peer, record.messages,
                      flush_reason(record), record.bytes);
    default: return rows.add(",,,,,,,,,,,,,,\n");
  }
}

}  // namespace

void write_csv(const TraceFolder& folder, const std::string& path) {
  Rows rows(path);
  rows.add("{}", columns);
  for (std::size_t pe = 0; pe < folder.pes(); ++pe) {
    const model::trace::PeTrace trace = folder.trace(pe);
    const model::trace::Flows& flows = folder.flows();
    const SliceNames names(trace.names);
    if (trace.lost != 0) rows.add("{},{},,lost,,,,,,,,,,,,,,,,{}\n", pe, flows.host_of(pe), trace.lost);
    std::size_t next = 0;
    for (const Record& record : trace.records) {
      rows.add("{},{},{},{},{},", pe, flows.host_of(pe), record.time_ns + flows.shift_ns(pe), name_of(record.kind),
               name_of(record.phase));
      if (record.kind == Kind::posted || record.kind == Kind::taken)
        add_frame(rows, record, flows.of(pe)[next++], names);
      else
        add_record(rows, record, names);
    }
  }
  rows.close();
}

}  // namespace headway::tools
