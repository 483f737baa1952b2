#include <sys/mman.h>

#include <algorithm>
#include <headway/aggregate/part_memory.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>

namespace headway::aggregate {
namespace {

constexpr std::size_t granule = 64_KiB, huge_page = 2_MiB;
constexpr std::size_t kept_max = 16;
constexpr std::int64_t kept_ns = 100'000'000;

}  // namespace

Mapping::Mapping(std::size_t bytes) : bytes_(align_up(std::max<std::size_t>(bytes, 1), granule)) {
  const std::size_t slack = bytes_ > huge_page ? huge_page : 0;
  void* const got = mmap(nullptr, bytes_ + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
  if (got == MAP_FAILED) throw_errno("mmap of memory for a message in parts");
  at_ = static_cast<std::byte*>(got);
  if (slack == 0) return;
  const std::size_t before = align_up(reinterpret_cast<std::uintptr_t>(got), huge_page) -
                             reinterpret_cast<std::uintptr_t>(got);
  if (before != 0) munmap(at_, before);
  if (before != slack) munmap(at_ + before + bytes_, slack - before);
  at_ += before;
  // The first page stays small, so that with each that is touched no more comes than has come before.
  madvise(at_ + huge_page, bytes_ - huge_page, MADV_HUGEPAGE);
}

Mapping::~Mapping() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

void Mapping::grow(std::size_t bytes) {
  const std::size_t larger = align_up(bytes, granule);
  void* const got = mremap(at_, bytes_, larger, MREMAP_MAYMOVE);
  if (got == MAP_FAILED) throw_errno("mremap of memory for a message in parts");
  at_ = static_cast<std::byte*>(got);
  bytes_ = larger;
}

Mapping PartMemory::take(std::size_t bytes) {
  auto best = kept_.end();
  for (auto one = kept_.begin(); one != kept_.end(); ++one) {
    if (one->bytes() >= bytes && (best == kept_.end() || one->bytes() <= best->bytes())) best = one;
  }
  if (best == kept_.end()) return Mapping(bytes);
  Mapping memory = std::move(*best);
  kept_bytes_ -= memory.bytes();
  kept_.erase(best);
  return memory;
}

void PartMemory::give(Mapping memory, std::int64_t now) {
  if (memory.bytes() > kept_bytes_max_) return;
  kept_bytes_ += memory.bytes();
  kept_.push_back(std::move(memory));
  due_ = now + kept_ns;
  auto first = kept_.begin();
  for (; kept_bytes_ > kept_bytes_max_ || std::size_t(kept_.end() - first) > kept_max; ++first) {
    kept_bytes_ -= first->bytes();
  }
  kept_.erase(kept_.begin(), first);
}

void PartMemory::forget() {
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace headway::aggregate
