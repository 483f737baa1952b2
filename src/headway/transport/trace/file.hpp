// SPDX-License-Identifier: BSD-3-Clause
/// The file of one PE's trace, which it maps and writes while the run goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/model/trace/record.hpp>
#include <string>
#include <string_view>

namespace headway::trace {

/// What it has so far is in the file however the process ends. Its blocks are reserved piece by piece, so that a full
/// disk makes the ring shorter, and does not end the run.
class TraceFile {
 public:
  /// Makes the file, and removes an older one. The names and sizes of the layout are added to `header`. SystemError
  /// with one line that names `folder` if the system refuses it.
  TraceFile(const std::string& folder, const model::trace::Header& header, std::size_t records_max);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// Cuts the file to what is used.
  ~TraceFile();

  void add(const model::trace::Record& record) {
    ring_[place_] = record;
    std::atomic_ref(header_->written).store(++written_, std::memory_order_release);
    if (++place_ == touched_) [[unlikely]]
      go_on();
  }
  /// Nothing if the table is full. Longer texts are cut.
  void add_name(model::trace::NameKind kind, std::uint16_t number, std::string_view text);
  /// Most fields are set before the first record.
  model::trace::Header& header() { return *header_; }
  std::uint64_t written() const { return written_; }

 private:
  bool reserve(std::size_t places);
  void touch(std::size_t places);
  void go_on();

  int file_;
  std::size_t bytes_ = 0;
  model::trace::Header* header_ = nullptr;
  model::trace::Record* ring_ = nullptr;
  std::size_t place_ = 0, places_ = 0;  // of the ring: the next one, and those that are reserved
  std::size_t touched_ = 0;             // those whose pages have been written
  std::uint64_t written_ = 0;
};

}  // namespace headway::trace
