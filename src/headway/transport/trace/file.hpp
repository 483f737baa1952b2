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

/// The kernel keeps the records of a process that is killed. Disk blocks are reserved 1 MiB at a time: if the disk is
/// full, the ring gets no longer, and the run goes on.
class TraceFile {
 public:
  /// Makes the file, and removes an older one. The names and sizes of the layout are added to `header`. SystemError
  /// with one line that names `folder` if the system refuses it.
  TraceFile(const std::string& folder, const model::trace::Header& header, std::size_t records_max);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// Cuts the file behind its last record.
  ~TraceFile();

  void add(const model::trace::Record& record) {
    ring_[place_] = record;
    std::atomic_ref(header_->written).store(++written_, std::memory_order_release);
    if (++place_ == prefaulted_) [[unlikely]]
      go_on();
  }
  /// Nothing if the table is full. Longer texts are cut.
  void add_name(model::trace::NameKind kind, std::uint16_t number, std::string_view text);

 private:
  bool reserve(std::size_t places);
  void prefault(std::size_t places);
  void go_on();

  int file_;
  std::size_t bytes_ = 0;
  model::trace::Header* header_ = nullptr;
  model::trace::Record* ring_ = nullptr;
  // Places of the ring: number of the next one; how many have pages; how many have disk blocks.
  std::size_t place_ = 0, prefaulted_ = 0, places_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace headway::trace
