// SPDX-License-Identifier: BSD-3-Clause
/// One file of a checkpoint: magic, version, content, checksum. Writing it to the disc, and reading it with all checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/base/serialize.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headway::object::checkpoint_file {

using Magic = std::array<char, 8>;
inline constexpr Magic manifest_magic = {'h', 'w', '-', 'c', 'h', 'e', 'c', 'k'};
inline constexpr Magic elements_magic = {'h', 'w', '-', 'e', 'l', 'e', 'm', 's'};

/// The length and the checksum of a file.
struct Part {
  std::uint64_t bytes = 0, checksum = 0;
};

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(serialized_bytes(value));
  serialize(bytes.data(), value);
  return bytes;
}

/// Throws SystemError with errno.
[[noreturn]] void throw_system(const char* call, const std::string& name);
[[noreturn]] void throw_damaged(const std::string& name, const std::string& why);

/// Checksum of a stream. It detects any change within 8 bytes, because each step is invertible.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  void next();

  std::uint64_t sum_ = 0x243f6a8885a308d3, word_ = 0, length_ = 0;
  std::size_t held_ = 0;
};

/// An open file. Closes it.
class Descriptor {
 public:
  Descriptor(const std::string& name, int flags);
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

/// Waits until the names in a folder are on the disc.
void sync_folder(const std::string& path);

/// Writes a new file. Removes it if finish() is not reached.
class Writer {
 public:
  Writer(std::string name, const Magic& magic);
  ~Writer();
  void add(std::span<const std::byte> bytes);
  /// Waits until the file is on the disc.
  Part finish();

 private:
  static constexpr std::size_t buffer_bytes = std::size_t(1) << 20;

  void put(std::span<const std::byte> bytes);
  void flush();
  void write(std::span<const std::byte> bytes);

  std::string name_;
  Descriptor file_;
  std::vector<std::byte> buffer_;
  Checksum checksum_;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;
};

/// `expected`: the length that the file must have. FormatError for another length.
std::vector<std::byte> read_file(const std::string& name, std::optional<std::uint64_t> expected);
/// The content between head and checksum. FormatError if one of these is wrong.
std::span<const std::byte> checked(const std::string& name, std::span<const std::byte> bytes, const Magic& magic,
                                   std::uint64_t* checksum = nullptr);

}  // namespace headway::object::checkpoint_file
