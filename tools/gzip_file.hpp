// SPDX-License-Identifier: BSD-3-Clause
/// A compressed file that is written from its begin to its end.
#pragma once

#include <string>
#include <string_view>

namespace headway::tools {

/// SystemError with one line, which names the file, if the system refuses it.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path);
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile();

  void write(std::string_view bytes);
  /// Once, after the last write(); without it the file is incomplete.
  void close();

 private:
  void flush();
  [[noreturn]] void refuse(int error) const;

  std::string path_;
  std::string buffer_;
  void* file_;  // gzFile
};

}  // namespace headway::tools
