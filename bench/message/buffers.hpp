// SPDX-License-Identifier: BSD-3-Clause
/// Where the messages lie of a program that sends from, and receives into, the same memory again and again, and of one
/// that does not. Shared with the peers and headway-limit.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace headway::bench {

/// reused: one buffer for all messages; fresh: each message lies elsewhere than those before it, in memory that was
/// touched and has left all caches since.
inline const std::vector<std::string> buffer_kinds = {"reused", "fresh"};
inline constexpr const char* buffer_kinds_help =
    "reused (the same for all messages) or fresh (each out of memory that is in no cache) [reused]";

/// A PE's buffers of one kind: `count` of them, `stride` apart; message `index` lies in offset(index).
struct BufferLayout {
  std::size_t stride = 0, count = 1;
  std::size_t bytes() const { return stride * count; }
  std::size_t offset(std::uint64_t index) const { return count == 1 ? 0 : index % count * stride; }
};

/// Fresh buffers are together twice as large as the last-level cache, at most 256 MiB, and at least two. Each begins a
/// line further into a page than the one before: at the same place of each page they would meet in the same few sets of
/// a cache. Behind each there is room for 64 bytes.
inline BufferLayout layout_of_buffers(std::size_t bytes, bool fresh) {
  constexpr std::size_t page = 4096, line = 64, most = std::size_t(256) << 20;
  BufferLayout layout{(bytes + page - 1) / page * page + line, 1};
  if (!fresh) return layout;
  std::size_t in_all = most;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE); cache > 0) in_all = std::min(2 * std::size_t(cache), most);
#endif
  layout.count = std::max<std::size_t>(2, in_all / layout.stride);
  return layout;
}

/// Such buffers on the heap, the first at the begin of a page, all touched.
class HeapBuffers {
 public:
  HeapBuffers(std::size_t bytes, bool fresh)
      : bytes_(bytes),
        layout_(layout_of_buffers(bytes, fresh)),
        memory_(static_cast<std::byte*>(::operator new(layout_.bytes(), alignment))) {
    std::memset(memory_, 0, layout_.bytes());
  }
  ~HeapBuffers() { ::operator delete(memory_, alignment); }
  HeapBuffers(const HeapBuffers&) = delete;
  HeapBuffers& operator=(const HeapBuffers&) = delete;

  std::byte* of(std::uint64_t index) const { return memory_ + layout_.offset(index); }
  std::size_t count() const { return layout_.count; }
  std::size_t bytes() const { return bytes_; }  // of each

 private:
  static constexpr std::align_val_t alignment{4096};
  std::size_t bytes_;
  BufferLayout layout_;
  std::byte* memory_;
};

}  // namespace headway::bench
