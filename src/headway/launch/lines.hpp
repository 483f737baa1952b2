/// What many processes write, passed on to one descriptor line by line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headway::launch {

/// One output of a run. Takes whole lines, or the end of what a process wrote, and never waits for the reader: what it
/// does not take yet is kept. When another process's text follows a line without end, that line is ended first.
class LineOutput {
 public:
  static constexpr std::size_t nobody = ~std::size_t(0);

  explicit LineOutput(int descriptor);
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  /// Adds text that `from` wrote, and writes what can be written now. Dropped once the output is broken.
  void put(std::size_t from, std::string_view text);

  /// Writes what can be written now without waiting.
  void write_some();

  int descriptor() const { return descriptor_; }
  bool has_waiting() const { return written_ != waiting_.size(); }
  /// False while so much waits that its writers had better wait, too.
  bool wants_more() const { return waiting_.size() - written_ < waiting_bytes_max; }
  /// Drops what waits.
  void drop_waiting();

  /// The errno that writing failed with, or 0. EPIPE: nobody reads it any more.
  int error() const { return error_; }

 private:
  static constexpr std::size_t waiting_bytes_max = 256 * 1024;

  int descriptor_;
  bool is_file_;  // is always ready
  int error_ = 0;
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  std::size_t open_line_of_ = nobody;
};

/// Splits what one process writes into lines.
class LineSplitter {
 public:
  /// Adds a piece and moves whole lines to `output`. A line beyond bytes_max goes on in pieces.
  void add(std::size_t from, std::string_view piece, LineOutput& output);
  /// Moves what is left, too: the process has ended, or asks a question.
  void flush(std::size_t from, LineOutput& output);

  static constexpr std::size_t bytes_max = 1 << 20;

 private:
  std::string partial_;
};

}  // namespace headway::launch
