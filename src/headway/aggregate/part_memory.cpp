// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <headway/aggregate/part_memory.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>

namespace headway::aggregate {
namespace {

constexpr std::int64_t kept_ns = 100'000'000;

/// Moves an area of memory to `to` and grows it. It replaces the area at `to`, and keeps its pages and its advice. A
/// direct system call, because UCX replaces mremap() by a function that ignores the new address.
void move_area(std::byte* from, std::size_t bytes, std::byte* to, std::size_t larger) {
  if (syscall(SYS_mremap, from, bytes, larger, MREMAP_MAYMOVE | MREMAP_FIXED, to) == -1) {
    base::throw_errno("mremap of memory for a message in parts");
  }
}

}  // namespace

Mapping::Mapping(std::size_t bytes, const base::SizeConstants& sizes)
    : bytes_(base::align_up(std::max<std::size_t>(bytes, 1), sizes.mapping_granule_bytes)), sizes_(&sizes) {
  const std::size_t small = sizes.mapping_huge_page_bytes, slack = bytes_ > small ? small : 0;
  void* const got =
      mmap(nullptr, bytes_ + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) base::throw_errno("mmap of memory for a message in parts");
  at_ = static_cast<std::byte*>(got);
  if (slack == 0) return;
  const std::size_t before =
      base::align_up(reinterpret_cast<std::uintptr_t>(got), small) - reinterpret_cast<std::uintptr_t>(got);
  if (before != 0) munmap(at_, before);
  if (before != slack) munmap(at_ + before + bytes_, slack - before);
  at_ += before;
  // Small pages at the beginning: a first touch then never adds more memory than is in use already.
  madvise(at_ + small, bytes_ - small, MADV_HUGEPAGE);
}

Mapping::~Mapping() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

void Mapping::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  // New addresses: the areas grow as they move, so that small and huge pages stay one area each.
  Mapping larger(bytes, *sizes_);
  const std::size_t small = sizes_->mapping_huge_page_bytes;
  move_area(at_, std::min(bytes_, small), larger.at_, std::min(larger.bytes_, small));
  if (bytes_ > small) move_area(at_ + small, bytes_ - small, larger.at_ + small, larger.bytes_ - small);
  at_ = std::exchange(larger.at_, nullptr);
  bytes_ = larger.bytes_;
}

Mapping PartMemory::take(std::size_t bytes) {
  auto best = kept_.end();
  for (auto one = kept_.begin(); one != kept_.end(); ++one) {
    if (one->bytes() >= bytes && (best == kept_.end() || one->bytes() <= best->bytes())) best = one;
  }
  if (best == kept_.end()) return Mapping(bytes, *sizes_);
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
  for (; kept_bytes_ > kept_bytes_max_ || std::size_t(kept_.end() - first) > sizes_->kept_mappings_max; ++first) {
    kept_bytes_ -= first->bytes();
  }
  kept_.erase(kept_.begin(), first);
}

void PartMemory::forget() {
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace headway::aggregate
