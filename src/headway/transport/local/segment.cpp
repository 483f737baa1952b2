#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::local {
namespace {
constexpr std::uint64_t segment_magic = 0x31796177'64616568;  // "headway1"
constexpr std::size_t arena_alignment = std::size_t(2) << 20;
}  // namespace

std::size_t Segment::bytes_for(std::size_t pes, std::size_t arena_bytes) {
  return align_up(page_bytes + pes * pe_bytes, arena_alignment) + pes * arena_bytes;
}

Segment::Segment(std::size_t pes, std::size_t processes, std::size_t pes_per_process, std::size_t arena_bytes)
    : bytes_(bytes_for(pes, arena_bytes)) {
  descriptor_ = memfd_create("headway", 0);  // inherited by the processes of the run
  if (descriptor_ < 0) throw_errno("memfd_create");
  if (ftruncate(descriptor_, off_t(bytes_)) != 0) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    throw_errno("ftruncate of the shared memory");
  }
  map();
  SegmentHeader& h = header();
  h.magic = segment_magic;
  h.pes = pes;
  h.processes = processes;
  h.pes_per_process = pes_per_process;
  h.arena_bytes = arena_bytes;
  h.sleepers_fence = FutexSystem::can_fence_everywhere();
  arenas_ = bytes_ - pes * arena_bytes;
}

Segment::Segment(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) throw_errno("fstat of the shared memory");
  bytes_ = std::size_t(status.st_size);
  if (bytes_ < page_bytes) throw SettingError("the descriptor given at start is not a Headway segment");
  map();
  if (header().magic != segment_magic || bytes_for(header().pes, header().arena_bytes) != bytes_) {
    throw SettingError("the descriptor given at start is not a segment of this version of Headway");
  }
  arenas_ = bytes_ - header().pes * header().arena_bytes;
}

void Segment::map() {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    throw_errno("mmap of the shared memory");
  }
  base_ = static_cast<std::byte*>(at);
}

Segment::~Segment() {
  munmap(base_, bytes_);
  close(descriptor_);
}

}  // namespace headway::local
