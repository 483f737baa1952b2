// SPDX-License-Identifier: BSD-3-Clause
#include "gzip_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <headway/base/error.hpp>
#include <system_error>
#include <utility>

namespace headway::tools {
namespace {
constexpr std::size_t buffer_bytes = std::size_t(1) << 18;
constexpr const char* mode = "wb5";  // level 5 of 9 takes three quarters of the time of 6, for 2 % more bytes

gzFile file_of(void* file) { return static_cast<gzFile>(file); }
}  // namespace

GzipFile::GzipFile(const std::string& path) : path_(path) {
  errno = 0;
  file_ = gzopen(path.c_str(), mode);
  if (file_ == nullptr) refuse(errno);
  gzbuffer(file_of(file_), buffer_bytes);
}

GzipFile::~GzipFile() {
  if (file_ != nullptr) gzclose(file_of(file_));
}

void GzipFile::refuse(int error) const {
  throw SystemError(fmt::format("'{}' cannot be written: {}", path_,
                                error == 0 ? "out of memory" : std::generic_category().message(error)));
}

void GzipFile::write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= buffer_bytes) flush();
}

void GzipFile::flush() {
  errno = 0;
  if (!buffer_.empty() && gzwrite(file_of(file_), buffer_.data(), unsigned(buffer_.size())) == 0) refuse(errno);
  buffer_.clear();
}

void GzipFile::close() {
  flush();
  errno = 0;
  if (gzclose(file_of(std::exchange(file_, nullptr))) != Z_OK) refuse(errno);
}

}  // namespace headway::tools
