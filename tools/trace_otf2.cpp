// SPDX-License-Identifier: BSD-3-Clause
#include "trace_otf2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <map>

#include "child.hpp"
#include "outcome.hpp"
#include "trace_prediction.hpp"
#include "trace_script.hpp"
#include "trace_slices.hpp"

namespace headway::tools {

using model::trace::FrameEnd;
using model::trace::Record;

namespace {

constexpr std::chrono::seconds script_limit{3600};

std::string last_line(const std::string& text) {
  std::string line = tail(text, 1);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

/// Tabs and line ends separate fields.
std::string field(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

/// Lines as trace_otf2.py reads them.
class Lines final : public SliceSink {
 public:
  explicit Lines(std::ostream& out) : out_(out) {}

  void begin(std::int64_t at, SliceKind kind, const std::string& name, const FrameEnd* taken) override {
    const std::size_t number = region(kind, name);
    out_ << "B\t" << at << '\t' << number << '\n';
    open_.push_back(number);
    if (taken != nullptr && taken->number != 0) frame('R', at, *taken);
  }
  void end(std::int64_t at) override {
    out_ << "E\t" << at << '\t' << open_.back() << '\n';
    open_.pop_back();
  }
  void post(std::int64_t at, const FrameEnd& posted, const Flushed&) override {
    if (posted.number != 0) frame('S', at, posted);
  }
  /// Regions nest, and marks with a length need not: their begin and their end are regions without a length.
  void mark(std::int64_t at, const Record& record, const std::string& name) override {
    static constexpr std::array steps = {"", " begins", " ends"};
    const std::size_t number = region(SliceKind::mark, name + steps[record.detail < steps.size() ? record.detail : 0]);
    out_ << "B\t" << at << '\t' << number << "\nE\t" << at << '\t' << number << '\n';
  }

 private:
  void frame(char kind, std::int64_t at, const FrameEnd& end) {
    out_ << kind << '\t' << at << '\t' << end.peer << '\t' << end.bytes << '\n';
  }
  std::size_t region(SliceKind kind, const std::string& name) {
    const auto [found, is_new] = regions_.emplace(std::pair(kind, name), regions_.size());
    if (is_new) out_ << "region\t" << name_of(kind) << '\t' << field(name) << '\n';
    return found->second;
  }

  std::ostream& out_;
  std::map<std::pair<SliceKind, std::string>, std::size_t> regions_;
  std::vector<std::size_t> open_;
};

void write_lines(const TraceFolder& trace, const std::string& path) {
  std::ofstream out(path);
  const auto& frames = trace.flows().counts();
  out << "attribute\trecords_lost\t" << trace.lost() << "\nattribute\tframes_undelivered\t" << frames.undelivered
      << "\nattribute\tframes_unknown\t" << frames.unknown << "\nattribute\tclock_residual_ns\t" << trace.residual_ns()
      << '\n';
  if (trace.description().is_object()) {
    for (const auto& [name, value] : trace.description().items())
      out << "attribute\t" << field(name) << '\t' << field(value.is_string() ? value.get<std::string>() : value.dump())
          << '\n';
  }
  for (const TraceProcess& process : trace.processes())
    out << "process\t" << process.host << '\t' << process.name << '\n';
  for (std::size_t pe = 0; pe < trace.pes(); ++pe)
    out << "pe\t" << trace.process_of(pe) << '\t' << trace.lost(pe) << '\n';
  Lines lines(out);
  for (std::size_t pe = 0; pe < trace.pes(); ++pe) {
    out << "at\t" << pe << '\n';
    slice(trace.trace(pe), trace.flows().of(pe), trace.flows().shift_ns(pe), lines);
  }
  out.close();
  if (!out) throw SystemError(fmt::format("{}: cannot be written", path));
}

}  // namespace

void require_otf2(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error))
    throw SettingError(fmt::format("--otf2: '{}' cannot be written: it exists and is not an empty folder", folder));
  const ChildResult python = run_child({"python3", "-c", "import otf2"}, {}, std::chrono::seconds(60));
  if (python.status == 127) throw SettingError("--otf2: it needs python3, which is not on the path: install python3");
  if (python.status != 0) {
    throw SettingError(
        fmt::format("--otf2: python3 cannot import its package otf2: install it by `python3 -m pip install otf2` ({})",
                    last_line(python.errors)));
  }
}

std::uint64_t write_otf2(const TraceFolder& trace, const std::string& folder) {
  const TemporaryFolder temporary;
  const std::string lines = temporary.path() + "/events";
  write_lines(trace, lines);
  std::error_code ignored;
  std::filesystem::remove(folder, ignored);  // an empty one: the package makes it
  const ChildResult python = run_child({"python3", "-c", otf2_script(), lines, folder}, {}, script_limit);
  const std::string output = last_line(python.output);
  std::uint64_t events = 0;
  const auto parsed = std::from_chars(output.data(), output.data() + output.size(), events);
  if (python.status != 0 || parsed.ec != std::errc() || parsed.ptr != output.data() + output.size()) {
    throw SystemError(fmt::format("'{}' cannot be written as OTF2: python3 ended with {}: {}", folder, python.status,
                                  python.timed_out ? "it took longer than an hour" : last_line(python.errors)));
  }
  return events;
}

}  // namespace headway::tools
