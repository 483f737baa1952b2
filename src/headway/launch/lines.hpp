// SPDX-License-Identifier: BSD-3-Clause
/// Forwards the output of many processes to one descriptor, line by line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headway::launch {

/// One output of a run. Accepts whole lines, or the end of a process's output. Never waits for the reader: it keeps
/// text that the reader does not take. It ends an unfinished line before text of another process.
class LineOutput {
 public:
  static constexpr std::size_t nobody = ~std::size_t(0);

  explicit LineOutput(int descriptor);
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  /// Adds text of process `from`, and writes as much as possible without waiting. Drops the text after a write error.
  void put(std::size_t from, std::string_view text);

  /// Writes as much as possible without waiting.
  void write_some();

  int descriptor() const { return descriptor_; }
  bool has_waiting() const { return written_ != waiting_.size(); }
  /// False while so much text waits that the processes should wait, too.
  bool wants_more() const { return waiting_.size() - written_ < waiting_bytes_max; }
  /// Drops waiting text.
  void drop_waiting();

  /// The errno of a failed write, or 0. EPIPE: no process reads the output.
  int error() const { return error_; }

 private:
  static constexpr std::size_t waiting_bytes_max = 256 * 1024;

  int descriptor_;
  bool is_file_;  // files are always ready for writing
  int error_ = 0;
  std::string waiting_;
  std::size_t written_ = 0;  // bytes of waiting_ that are written
  std::size_t open_line_of_ = nobody;
};

/// Splits the output of one process into lines.
class LineSplitter {
 public:
  /// Adds a piece, and moves whole lines to `output`. A line longer than bytes_max is moved in pieces.
  void add(std::size_t from, std::string_view piece, LineOutput& output);
  /// Moves the unfinished line, too: the process has ended, or waits for an answer on the terminal.
  void flush(std::size_t from, LineOutput& output);

  static constexpr std::size_t bytes_max = 1 << 20;

 private:
  std::string partial_;
};

}  // namespace headway::launch
