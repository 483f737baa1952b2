// SPDX-License-Identifier: BSD-3-Clause
/// Messages of Protocol Buffers, as bytes: fields are appended, and nothing is read.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace headway::tools::protobuf {

/// Encoding of https://protobuf.dev/programming-guides/encoding/: a field is its tag, number * 8 + wire type, and its
/// value. clear() keeps the memory.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
    return *this;
  }
  Message& signed_number(std::uint32_t field, std::int64_t value) { return number(field, std::uint64_t(value)); }
  Message& fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    for (int byte = 0; byte < 8; ++byte) bytes_.push_back(char(value >> 8 * byte));
    return *this;
  }
  Message& real(std::uint32_t field, double value) { return fixed(field, std::bit_cast<std::uint64_t>(value)); }
  Message& text(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(std::uint32_t field, const Message& value) { return text(field, value.bytes_); }

  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(std::uint64_t(field) << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(char(value | 0x80));
    bytes_.push_back(char(value));
  }

  std::string bytes_;
};

}  // namespace headway::tools::protobuf
