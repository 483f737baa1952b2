// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <headway/base/random.hpp>
#include <new>
#include <string>

namespace headway::base {
namespace {

/// Memory that begins a page.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : at_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(4096)))) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::operator delete(at_, std::align_val_t(4096)); }

  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
constexpr Copy copies[] = {&copy_large, &copy_past_caches, &copy_bytes};

constexpr std::size_t bytes_most = 70'000, offset_most = 4096 + 64;

class CopyLarge : public ::testing::Test {
 protected:
  CopyLarge() {
    Random random(1);
    for (std::size_t i = 0; i < room; ++i) from_.at()[i] = std::byte(random.next());
  }

  /// Checks that a copy writes all of its target and nothing else.
  void expect_exact(Copy copy, std::size_t to_offset, std::size_t from_offset, std::size_t bytes) {
    std::byte* const to = to_.at() + 64 + to_offset;
    const std::byte* const from = from_.at() + from_offset;
    std::memset(to - 64, 0xee, bytes + 128);
    copy(to, from, bytes);
    const auto is_untouched = [](std::byte b) { return b == std::byte(0xee); };
    ASSERT_EQ(bytes == 0 ? 0 : std::memcmp(to, from, bytes), 0) << where(to_offset, from_offset, bytes);
    ASSERT_TRUE(std::all_of(to - 64, to, is_untouched)) << where(to_offset, from_offset, bytes);
    ASSERT_TRUE(std::all_of(to + bytes, to + bytes + 64, is_untouched)) << where(to_offset, from_offset, bytes);
  }

 private:
  static std::string where(std::size_t to_offset, std::size_t from_offset, std::size_t bytes) {
    return std::to_string(bytes) + " bytes from " + std::to_string(from_offset) + " to " + std::to_string(to_offset);
  }

  static constexpr std::size_t room = bytes_most + offset_most + 256;
  Pages from_{room}, to_{room};
};

TEST_F(CopyLarge, copies_of_every_short_length_are_exact) {
  for (const Copy copy : copies) {
    for (std::size_t bytes = 0; bytes <= 600; ++bytes) {
      for (const std::size_t offset : {0, 1, 8, 63, 64, 100}) {
        expect_exact(copy, offset, 0, bytes);
        expect_exact(copy, 0, offset, bytes);
      }
    }
  }
}

TEST_F(CopyLarge, copies_of_any_length_are_exact_wherever_they_lie_within_pages) {
  for (const Copy copy : copies) {
    for (const std::size_t bytes : {2047, 2048, 2049, 4096, 12'287, 12'288, 32'767, 32'768, 65'537}) {
      for (const std::size_t offset : {0, 1, 8, 15, 16, 17, 64, 1023, 1024, 2047, 2048, 2049, 4095}) {
        expect_exact(copy, offset, 0, bytes);
        expect_exact(copy, 0, offset, bytes);
        expect_exact(copy, 16, offset, bytes);
      }
    }
    Random random(2);
    for (int i = 0; i < 300; ++i) {
      expect_exact(copy, random.below(offset_most), random.below(offset_most), random.size(0, bytes_most));
    }
  }
}

}  // namespace
}  // namespace headway::base
