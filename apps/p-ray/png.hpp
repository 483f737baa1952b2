// SPDX-License-Identifier: BSD-3-Clause
/// Writes images as PNG (ISO/IEC 15948), not compressed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headway::p_ray {

/// CRC-32 of ISO 3309, as in every chunk of a PNG.
inline std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> all{};
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      std::uint32_t rest = i;
      for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0xedb88320u : 0);
      all[i] = rest;
    }
    return all;
  }();
  std::uint32_t crc = ~std::uint32_t(0);
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ std::uint8_t(byte)) & 255];
  return ~crc;
}

/// The checksum at the end of a zlib stream (RFC 1950).
inline std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + std::uint8_t(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

class PngWriter {
 public:
  /// The file's content. `rgb` has three bytes for each pixel, row by row from the top. Width and height are 1 or more.
  static std::string png(std::size_t width, std::size_t height, std::string_view rgb) {
    std::string file = "\x89PNG\r\n\x1a\n", header;
    add_number(header, std::uint32_t(width));
    add_number(header, std::uint32_t(height));
    header += std::string("\x08\x02\0\0\0", 5);  // 8 bits of each of red, green, blue; no interlacing
    add_chunk(file, "IHDR", header);
    std::string rows;
    rows.reserve(height * (1 + 3 * width));
    for (std::size_t y = 0; y < height; ++y) {
      rows += '\0';  // the row is not filtered
      rows += rgb.substr(y * 3 * width, 3 * width);
    }
    add_chunk(file, "IDAT", stored(rows));
    add_chunk(file, "IEND", "");
    return file;
  }

 private:
  static constexpr std::size_t block_bytes = 65535;

  static void add_number(std::string& to, std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) to += char(number >> shift & 255);
  }
  static void add_chunk(std::string& file, std::string_view type, std::string_view content) {
    add_number(file, std::uint32_t(content.size()));
    std::string checked(type);
    checked += content;
    file += checked;
    add_number(file, crc32(checked));
  }
  /// A zlib stream of stored blocks (RFC 1951): one bit that says whether it is the last, length, and its complement.
  static std::string stored(std::string_view bytes) {
    std::string stream = "\x78\x01";
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
      const std::string_view block = bytes.substr(at, block_bytes);
      const auto length = std::uint16_t(block.size());
      stream += char(at + block.size() == bytes.size());
      for (const std::uint16_t number : {length, std::uint16_t(~length)}) {
        stream += char(number & 255);
        stream += char(number >> 8);
      }
      stream += block;
    }
    add_number(stream, adler32(bytes));
    return stream;
  }
};

}  // namespace headway::p_ray
