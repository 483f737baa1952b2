// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/checkpoint_file.hpp>
#include <utility>

namespace headway::object::checkpoint_file {
namespace {

constexpr std::uint32_t version = 1;
constexpr std::size_t head_bytes = sizeof(Magic) + sizeof version, tail_bytes = sizeof(std::uint64_t);

}  // namespace

void throw_system(const char* call, const std::string& name) {
  const int error = errno;
  throw SystemError(fmt::format("{} '{}': {} (errno {})", call, name, std::strerror(error), error));
}
void throw_damaged(const std::string& name, const std::string& why) {
  throw FormatError(fmt::format("checkpoint file '{}' {}", name, why));
}

void Checksum::add(std::span<const std::byte> bytes) {
  length_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), sizeof(word_) - held_);
    std::memcpy(reinterpret_cast<std::byte*>(&word_) + held_, bytes.data(), taken);
    held_ += taken;
    bytes = bytes.subspan(taken);
    if (held_ == sizeof(word_)) next();
  }
}
std::uint64_t Checksum::value() const {
  Checksum last = *this;
  last.next();
  last.word_ = length_;
  last.next();
  return last.sum_ ^ last.sum_ >> 32;
}
void Checksum::next() {
  sum_ = std::rotl((sum_ ^ word_) * 0x9e3779b97f4a7c15, 29);
  word_ = 0;
  held_ = 0;
}

Descriptor::Descriptor(const std::string& name, int flags) : number_(::open(name.c_str(), flags | O_CLOEXEC, 0666)) {
  if (number_ < 0) throw_system("open", name);
}
Descriptor::~Descriptor() { ::close(number_); }

void sync_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (::fsync(folder.number()) != 0) throw_system("fsync", path);
}

Writer::Writer(std::string name, const Magic& magic)
    : name_(std::move(name)), file_(name_, O_CREAT | O_EXCL | O_WRONLY) {
  buffer_.reserve(buffer_bytes);
  add(bytes_of(magic));
  add(bytes_of(version));
}
Writer::~Writer() {
  if (!finished_) ::unlink(name_.c_str());
}
void Writer::add(std::span<const std::byte> bytes) {
  checksum_.add(bytes);
  put(bytes);
}
Part Writer::finish() {
  const std::uint64_t checksum = checksum_.value();
  put(bytes_of(checksum));
  flush();
  if (::fsync(file_.number()) != 0) throw_system("fsync", name_);
  finished_ = true;
  return {bytes_, checksum};
}
void Writer::put(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes)
    write(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}
void Writer::flush() {
  write(buffer_);
  buffer_.clear();
}
void Writer::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system("write", name_);
    bytes = bytes.subspan(std::size_t(written));
  }
}

std::vector<std::byte> read_file(const std::string& name, std::optional<std::uint64_t> expected) {
  if (::access(name.c_str(), F_OK) != 0 && errno == ENOENT) throw_damaged(name, "is missing");
  const Descriptor file(name, O_RDONLY);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) throw_system("fstat", name);
  const auto bytes = std::uint64_t(status.st_size);
  if (expected && bytes != *expected)
    throw_damaged(name, fmt::format("has {}: {} {} written", base::counted(bytes, "byte"), *expected,
                                    base::by_number(*expected, "was", "were")));
  std::vector<std::byte> content(bytes);
  std::size_t read = 0;
  while (read < content.size()) {
    const ssize_t got = ::read(file.number(), content.data() + read, content.size() - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system("read", name);
    if (got == 0) throw_damaged(name, "became shorter while it was read");
    read += std::size_t(got);
  }
  return content;
}

std::span<const std::byte> checked(const std::string& name, std::span<const std::byte> bytes, const Magic& magic,
                                   std::uint64_t* checksum) {
  if (bytes.size() < head_bytes + tail_bytes)
    throw_damaged(name, fmt::format("has {}: at least {} are needed", base::counted(bytes.size(), "byte"),
                                    head_bytes + tail_bytes));
  if (std::memcmp(bytes.data(), magic.data(), sizeof magic) != 0)
    throw_damaged(name, "is not of a checkpoint: it begins with other bytes");
  std::uint32_t its_version = 0;
  std::memcpy(&its_version, bytes.data() + sizeof magic, sizeof its_version);
  if (its_version != version)
    throw_damaged(name,
                  fmt::format("has version {} of the format: this program reads version {}", its_version, version));
  Checksum sum;
  sum.add(bytes.first(bytes.size() - tail_bytes));
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - tail_bytes, tail_bytes);
  if (stored != sum.value())
    throw_damaged(name, fmt::format("is damaged: its checksum is {:016x}, expected {:016x}", sum.value(), stored));
  if (checksum != nullptr) *checksum = stored;
  return bytes.subspan(head_bytes, bytes.size() - head_bytes - tail_bytes);
}

}  // namespace headway::object::checkpoint_file
