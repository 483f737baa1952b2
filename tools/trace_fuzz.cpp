// SPDX-License-Identifier: BSD-3-Clause
// Damaged files of traces: read, joined and sliced as `headway trace` does it.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fuzz/fuzz.hpp>
#include <headway/base/error.hpp>
#include <headway/model/trace/flows.hpp>
#include <headway/model/trace/made_trace_test.hpp>
#include <stdexcept>
#include <string>

#include "trace_slices.hpp"

namespace headway::tools {
namespace {

using fuzz::Bytes;
using model::trace::FrameEnd;
using model::trace::Kind;
using model::trace::MadeTrace;
using model::trace::NameKind;
using model::trace::PeTrace;
using model::trace::Record;

/// What every sequence of records must give.
class CheckedSlices final : public SliceSink {
 public:
  void begin(std::int64_t at, SliceKind, const std::string& name, const FrameEnd*) override {
    follow(at);
    if (name.empty()) throw fuzz::Broken("a slice has no name");
    ++depth_;
  }
  void end(std::int64_t at) override {
    follow(at);
    if (depth_-- == 0) throw fuzz::Broken("a slice ends that has not begun");
  }
  void post(std::int64_t at, const FrameEnd& posted, const Flushed&) override {
    follow(at);
    if (!posted.is_posted) throw fuzz::Broken("a frame that was taken is posted");
  }
  void mark(std::int64_t at, const Record&, const std::string&) override { follow(at); }
  void finish() const {
    if (depth_ != 0) throw fuzz::Broken("a slice has no end");
  }

 private:
  void follow(std::int64_t at) {
    if (at < 0 || at < last_) throw fuzz::Broken("times do not ascend from 0");
    last_ = at;
  }
  std::size_t depth_ = 0;
  std::int64_t last_ = 0;
};

class Traces final : public fuzz::Target {
 public:
  Traces() : file_(::memfd_create("trace", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {
    if (file_ < 0) base::throw_errno("memfd_create");
  }
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;
  ~Traces() override { ::close(file_); }

  std::vector<Bytes> valid_inputs() override {
    std::vector<PeTrace> traces = {
        MadeTrace(0, 1).end(100),
        MadeTrace(1, 3).post(100, 0).wait(150).take(200, 0).post(220, 2).none(250).go_on(300).end(400),
        MadeTrace(0, 2).phase(10, 1).post(20, 1).phase(30, 2).take(40, 1).phase_end(60, 2).phase_end(70, 1).end(80)};
    PeTrace& marked = traces.emplace_back(traces[1]);
    for (std::size_t number = 0; number < marked.records.size(); ++number) {
      Record& record = marked.records[number];
      if (record.kind != Kind::found_none && record.kind != Kind::begin) continue;
      record.kind = number % 2 == 0 ? Kind::mark : Kind::flushed;
      record.detail = std::uint8_t(number % 3);
    }
    PeTrace& ring = traces.emplace_back(traces[1]);
    ring.header.written += 5;
    for (const auto kind : {NameKind::phase, NameKind::handler, NameKind::mark})
      traces[2].names.push_back({kind, 1, "name"});
    std::vector<Bytes> inputs;
    for (PeTrace& trace : traces) {
      trace.header.names = std::uint32_t(trace.names.size());
      trace.header.header_bytes += std::uint32_t(trace.names.size() * sizeof trace.names[0]);
      Bytes& bytes = inputs.emplace_back();
      append(bytes, &trace.header, sizeof trace.header);
      append(bytes, trace.names.data(), trace.names.size() * sizeof trace.names[0]);
      append(bytes, trace.records.data(), trace.records.size() * sizeof(Record));
    }
    return inputs;
  }

  void begin_round(std::uint64_t) override {}

  void mutate(Bytes& input, const Bytes& other, Random& random) override {
    const std::size_t header = sizeof(model::trace::Header);
    if (random.one_in(3) || input.size() < header + sizeof(Record))
      fuzz::change_bytes(input, 0, other, random);
    else if (random.one_in(2))
      change_record(input, random);
    else
      fuzz::change_bytes(input, header, other, random);
  }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, input.data(), input.size(), 0) != ssize_t(input.size()))
      base::throw_errno("writing the input");
    try {
      const PeTrace trace = model::trace::read_trace(path_, {.may_be_unended = true, .may_lose_records = true});
      if (trace.header.pes > pes_most) return refusal_;
      model::trace::Flows flows(trace.header.pes);
      flows.add(trace);
      flows.finish();
      CheckedSlices slices;
      slice(trace, flows.of(trace.header.pe), flows.shift_ns(trace.header.pe), slices);
      slices.finish();
    } catch (const SystemError& error) {
      refusal_ = error.what();
      if (refusal_.find(path_) == std::string::npos || refusal_.find('\n') != std::string::npos)
        throw fuzz::Broken("a refusal is not one line with the file's name: " + refusal_);
    }
    return refusal_;
  }

 private:
  static constexpr std::uint32_t pes_most = 64;

  static void append(Bytes& bytes, const void* from, std::size_t count) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + count);
    if (count != 0) std::memcpy(bytes.data() + begin, from, count);
  }

  /// One field, so that the file as a whole stays one that is read.
  static void change_record(Bytes& input, Random& random) {
    const std::size_t count = (input.size() - sizeof(model::trace::Header)) / sizeof(Record);
    std::byte* const at = input.data() + input.size() - (1 + random.below(count)) * sizeof(Record);
    Record record;
    std::memcpy(&record, at, sizeof record);
    switch (random.below(6)) {
      case 0: record.kind = Kind(random.below(14)); break;
      case 1: record.phase = model::trace::Phase(random.below(7)); break;
      case 2: record.peer = std::uint16_t(random.below(4)); break;
      case 3: record.sequence = std::uint32_t(fuzz::boundary_value(random, 4)); break;
      case 4: record.detail = std::uint8_t(random.below(6)); break;
      default: record.time_ns += std::int64_t(random.below(200)) - 50;
    }
    std::memcpy(at, &record, sizeof record);
  }

  int file_;
  std::string path_;
  std::string refusal_;
};

}  // namespace
}  // namespace headway::tools

int main(int argc, char** argv) {
  headway::tools::Traces traces;
  return headway::fuzz::run(argc, argv, "headway_trace_fuzz", traces);
}
