// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <headway/launch/lines.hpp>

namespace headway::launch {
namespace {
// Bytes that a pipe accepts without waiting when poll() says it is ready (PIPE_BUF of Linux).
constexpr std::size_t ready_bytes = 4096;
}  // namespace

LineOutput::LineOutput(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  is_file_ = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

void LineOutput::put(std::size_t from, std::string_view text) {
  if (text.empty() || error_ != 0) return;
  if (open_line_of_ != nobody && open_line_of_ != from) waiting_ += '\n';
  waiting_ += text;
  open_line_of_ = text.back() == '\n' ? nobody : from;
  write_some();
}

void LineOutput::write_some() {
  while (has_waiting()) {
    std::size_t bytes = waiting_.size() - written_;
    if (!is_file_) {
      pollfd ready{descriptor_, POLLOUT, 0};
      if (poll(&ready, 1, 0) <= 0) break;
      bytes = std::min(bytes, ready_bytes);
    }
    const ssize_t written = write(descriptor_, waiting_.data() + written_, bytes);
    if (written >= 0) {
      written_ += std::size_t(written);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      drop_waiting();
    }
  }
  if (!has_waiting()) {
    drop_waiting();
  } else if (written_ > waiting_bytes_max) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
}

void LineOutput::drop_waiting() {
  waiting_.clear();
  written_ = 0;
}

void LineSplitter::add(std::size_t from, std::string_view piece, LineOutput& output) {
  const auto last_end = piece.rfind('\n');
  if (last_end == piece.npos) {
    partial_ += piece;
    if (partial_.size() > bytes_max) flush(from, output);
    return;
  }
  // One put(), so that no text of another process comes between.
  partial_ += piece.substr(0, last_end + 1);
  flush(from, output);
  partial_ = piece.substr(last_end + 1);
}

void LineSplitter::flush(std::size_t from, LineOutput& output) {
  output.put(from, partial_);
  partial_.clear();
}

}  // namespace headway::launch
