// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::local {
namespace {
// "headway2". Changes with the layout of boards, too: `headway watch` attaches to runs of other builds.
constexpr std::uint64_t segment_magic = 0x32796177'64616568;
constexpr std::size_t huge_page = std::size_t(2) << 20;
// Frames begin so far into a page. Messages to and from the network are copied between a frame and memory that begins
// at the start of a page; a load waits for an older store to the same place in another page.
constexpr std::size_t frames_in_page = 2048;
constexpr std::size_t pools_bytes_max = std::size_t(1) << 44;  // of all PEs: a small part of the address space

/// The machine's memory or more: a pool reserves addresses, and its pages take memory when they are touched.
std::size_t pool_bytes_for(std::size_t pes, std::size_t other_bytes) {
  const std::size_t bytes =
      std::min(std::bit_ceil(base::available_memory_bytes()), std::bit_floor(pools_bytes_max / pes));
  rlimit limit{};
  const bool fits = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur / pes >= bytes &&
                    limit.rlim_cur - pes * bytes >= other_bytes;
  return fits ? bytes : 0;
}

/// Maps the file from `offset` on, a multiple of huge_page, at an address that permits huge pages.
void* map_aligned(int descriptor, std::size_t offset, std::size_t bytes) {
  void* const reserved =
      mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return reserved;
  auto* const begin = static_cast<std::byte*>(reserved);
  const auto address = reinterpret_cast<std::uintptr_t>(reserved);
  const std::size_t before = base::align_up(address, huge_page) - address;
  constexpr int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  void* const at = mmap(begin + before, bytes, PROT_READ | PROT_WRITE, flags, descriptor, off_t(offset));
  if (at == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, bytes + huge_page);
    errno = error;
    return at;
  }
  if (before != 0) munmap(begin, before);
  if (before != huge_page) munmap(begin + before + bytes, huge_page - before);
  return at;
}
}  // namespace

std::size_t Segment::bytes_for(std::size_t pes, std::size_t arena_bytes) {
  const std::size_t before = page_bytes + pes * (pe_bytes + eager_slots_bytes(arena_bytes));
  return base::align_up(base::align_up(before, huge_page) + pes * arena_bytes + page_bytes, huge_page);
}

Segment::Segment(std::size_t pes, std::size_t processes, std::size_t pes_per_process, std::size_t arena_bytes)
    : bytes_(bytes_for(pes, arena_bytes)) {
  descriptor_ = memfd_create("headway", 0);  // inherited by the processes of the run
  if (descriptor_ < 0) base::throw_errno("memfd_create");
  const std::size_t pool_bytes = pool_bytes_for(pes, bytes_);
  if (ftruncate(descriptor_, off_t(bytes_ + pes * pool_bytes)) != 0) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    base::throw_errno("ftruncate of the shared memory");
  }
  map();
  SegmentHeader& h = header();
  h.magic = segment_magic;
  h.pes = pes;
  h.processes = processes;
  h.pes_per_process = pes_per_process;
  h.arena_bytes = arena_bytes;
  h.pool_bytes = pool_bytes;
  h.sleepers_fence = FutexSystem::can_fence_everywhere();
  arenas_ = bytes_ - pes * arena_bytes - frames_in_page;
}

Segment::Segment(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) base::throw_errno("fstat of the shared memory");
  const auto file_bytes = std::size_t(status.st_size);
  SegmentHeader told{};
  const auto head = reinterpret_cast<char*>(&told);
  if (pread(descriptor, head, sizeof told, 0) != ssize_t(sizeof told) || file_bytes < page_bytes) {
    throw SettingError("the descriptor given at start is not a Headway segment");
  }
  bytes_ = bytes_for(told.pes, told.arena_bytes);
  if (told.magic != segment_magic || bytes_ + told.pes * told.pool_bytes != file_bytes) {
    throw SettingError("the descriptor given at start is not a segment of this version of Headway");
  }
  map();
  arenas_ = bytes_ - header().pes * header().arena_bytes - frames_in_page;
}

void Segment::map() {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    base::throw_errno("mmap of the shared memory");
  }
  base_ = static_cast<std::byte*>(at);
}

std::span<std::byte> Segment::pool(std::size_t pe) const {
  const std::size_t each = header().pool_bytes, all = header().pes * each;
  if (each == 0) return {};
  std::call_once(pools_mapped_, [&] {
    void* at = map_aligned(descriptor_, bytes_, all);
    if (at == MAP_FAILED) base::throw_errno("mmap of the pools of shared memory");
    madvise(at, all, MADV_DONTFORK);  // a child that a PE makes by fork() must not write into the run
    pools_ = static_cast<std::byte*>(at);
  });
  return {pools_ + pe * each, each};
}

Segment::~Segment() {
  if (pools_ != nullptr) munmap(pools_, header().pes * header().pool_bytes);
  munmap(base_, bytes_);
  close(descriptor_);
}

}  // namespace headway::local
