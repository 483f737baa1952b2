// SPDX-License-Identifier: BSD-3-Clause
/// The records of a PE as nested slices of time, for viewers.
#pragma once

#include <cstdint>
#include <headway/model/trace/flows.hpp>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headway::tools {

enum class SliceKind : std::uint8_t { program, phase, wait, handler, mark };
inline constexpr std::size_t slice_kinds = 5;
const char* name_of(SliceKind kind);

/// The names of slices and marks of one PE. Two PEs may give one number to different names.
class SliceNames {
 public:
  explicit SliceNames(const std::vector<model::trace::NameEntry>& names);
  std::string phase(std::uint32_t number) const;
  std::string handler(const model::trace::Record& frame) const;
  std::string mark(std::uint32_t number) const;
  static const char* wait(model::trace::Phase reason);

 private:
  std::string find(model::trace::NameKind kind, std::uint32_t number) const;
  std::map<std::pair<model::trace::NameKind, std::uint32_t>, std::string> names_;
};

/// Why an aggregator posted a frame.
struct Flushed {
  const char* reason = nullptr;  // none: no buffer of an aggregator
  std::uint32_t age_ns = 0;      // of its first message
};
const char* flush_reason(const model::trace::Record& flushed);

/// Gets the slices of one PE in order. Times ascend and are aligned. Each begin() has its end(), and they nest.
class SliceSink {
 public:
  virtual ~SliceSink() = default;
  /// `taken` is of a handler alone.
  virtual void begin(std::int64_t at, SliceKind kind, const std::string& name, const model::trace::FrameEnd* taken) = 0;
  virtual void end(std::int64_t at) = 0;
  virtual void post(std::int64_t at, const model::trace::FrameEnd& posted, const Flushed& flushed) = 0;
  /// `detail` of the record tells whether it is an instant, a begin or an end.
  virtual void mark(std::int64_t at, const model::trace::Record& record, const std::string& name) = 0;
};

/// Phases contain the slices of program work and waits; both contain those of the handlers that run in them. Slices of
/// program work without a length are left out. At the last record all slices end. Records that the loss of older ones
/// has left without their begin are skipped.
void slice(const model::trace::PeTrace& trace, std::span<const model::trace::FrameEnd> ends, std::int64_t shift_ns,
           SliceSink& sink);

}  // namespace headway::tools
