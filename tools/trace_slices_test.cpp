// SPDX-License-Identifier: BSD-3-Clause
/// Records as nested slices.
#include "trace_slices.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <headway/model/trace/made_trace_test.hpp>

#include "protobuf.hpp"

namespace headway::tools {
namespace {

using model::trace::FrameEnd;
using model::trace::Kind;
using model::trace::MadeTrace;
using model::trace::PeTrace;
using model::trace::Phase;
using model::trace::Record;

class Text final : public SliceSink {
 public:
  void begin(std::int64_t at, SliceKind, const std::string& name, const FrameEnd*) override {
    text += fmt::format("{}({} ", at, name);
  }
  void end(std::int64_t at) override { text += fmt::format("{}) ", at); }
  void post(std::int64_t at, const FrameEnd&, const Flushed& flushed) override {
    text += fmt::format("{}>{} ", at,
                        flushed.reason == nullptr ? "" : fmt::format("{}+{}", flushed.reason, flushed.age_ns));
  }
  void mark(std::int64_t at, const Record&, const std::string& name) override {
    text += fmt::format("{}!{} ", at, name);
  }
  std::string text;
};

std::string slices_of(const PeTrace& trace) {
  model::trace::Flows flows(trace.header.pes);
  flows.add(trace);
  flows.finish();
  Text text;
  slice(trace, flows.of(trace.header.pe), flows.shift_ns(trace.header.pe), text);
  if (!text.text.empty()) text.text.pop_back();
  return text.text;
}

TEST(TraceSlices, program_waits_and_handlers_alternate) {
  EXPECT_EQ(
      slices_of(MadeTrace(0, 2).post(5, 1).wait(10).take(20, 1).none(30).take(40, 1).take(50, 1).go_on(60).end(70)),
      "0(program 5> 10) 10(wait for frames 20(handler 0 30) 40(handler 0 50) 50(handler 0 60) 60) 60(program 70)");
}

TEST(TraceSlices, waits_say_their_reason) {
  EXPECT_EQ(slices_of(MadeTrace(0, 1).wait(0, Phase::collective).go_on(1).wait(1, Phase::epoch).go_on(2).end(2)),
            "0(wait in a collective 1) 1(wait for an epoch 2)");
}

TEST(TraceSlices, phases_nest_and_contain_work_and_waits) {
  EXPECT_EQ(
      slices_of(MadeTrace(0, 1).phase(10, 1).phase(20, 2).wait(30).go_on(40).phase_end(50, 2).phase_end(50, 1).end(60)),
      "0(program 10) 10(phase 1 10(program 20) 20(phase 2 20(program 30) 30(wait for frames 40) 40(program 50) 50) "
      "50) 50(program 60)");
}

TEST(TraceSlices, a_handler_that_the_program_polls_lies_in_its_work) {
  EXPECT_EQ(slices_of(MadeTrace(0, 2).take(10, 1, Phase::working).none(20).post(30, 1).end(40)),
            "0(program 10(handler 0 20) 30> 40)");
  EXPECT_EQ(slices_of(MadeTrace(0, 2).take(10, 1, Phase::working).post(20, 1, Phase::handling).post(30, 1).end(40)),
            "0(program 10(handler 0 20> 30) 30> 40)");
}

TEST(TraceSlices, posts_have_the_reason_and_the_age_of_their_buffer) {
  PeTrace trace = MadeTrace(0, 2).none(5).post(5, 1).post(6, 1).end(7);
  trace.records[1].kind = Kind::flushed;
  trace.records[1].bytes = 90;
  trace.records[1].detail = 2;
  EXPECT_EQ(slices_of(trace), "0(program 5>timeout+90 6> 7)");
}

TEST(TraceSlices, an_unfinished_trace_ends_all_slices_at_its_last_record) {
  PeTrace trace = MadeTrace(0, 2).phase(5, 1).wait(10).take(20, 1).end(30);
  trace.records.pop_back();
  EXPECT_EQ(slices_of(trace), "0(program 5) 5(phase 1 5(program 10) 10(wait for frames 20(handler 0 20) 20) 20)");
}

TEST(TraceSlices, ends_whose_begin_is_lost_are_skipped) {
  PeTrace trace = MadeTrace(0, 2).phase(5, 1).wait(10).go_on(20).phase_end(30, 1).end(40);
  trace.records.erase(trace.records.begin(), trace.records.begin() + 4);
  trace.lost = 4;
  EXPECT_EQ(slices_of(trace), "0(program 10) 10(program 20)");
}

TEST(TraceSlices, marks_have_the_names_of_the_library_or_of_the_trace) {
  PeTrace trace = MadeTrace(0, 2).none(5).none(6).none(7).end(8);
  for (std::size_t i = 1; i < 4; ++i) {
    trace.records[i].kind = Kind::mark;
    trace.records[i].handler = std::uint32_t(i) * 2 - 2;
  }
  trace.names.push_back({model::trace::NameKind::mark, 4, "own"});
  EXPECT_EQ(slices_of(trace), "0(program 5!transfer 6!element 7!own 8)");
}

/// The examples of https://protobuf.dev/programming-guides/encoding/.
TEST(TraceSlices, fields_of_protocol_buffers_are_encoded_as_their_specification_says) {
  using protobuf::Message;
  EXPECT_EQ(Message().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(Message().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(Message().message(3, Message().number(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(Message().signed_number(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(Message().fixed(47, 0x0102).bytes(), std::string("\xf9\x02\x02\x01\0\0\0\0\0\0", 10));
  EXPECT_EQ(Message().real(1, 1.0).bytes(), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
}

}  // namespace
}  // namespace headway::tools
