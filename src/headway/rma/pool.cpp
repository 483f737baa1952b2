// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/rma/pool.hpp>

namespace headway::rma {
namespace {

const std::size_t extension = am::register_extension(&Pool::make);

// Pools, and blocks of a huge page or more, begin at addresses that permit huge pages.
constexpr std::size_t huge_page = 2_MiB;

}  // namespace

Pool& Pool::of(Pe& pe) { return static_cast<Pool&>(pe.engine().extension(extension)); }

std::span<std::byte> Pool::memory() {
  if (memory_.empty()) {
    memory_ = pe_->engine().endpoint().shared_memory().pool(pe_->id());
    if (memory_.empty()) {
      throw UsageError(
          fmt::format("PE {} has no memory that others could reach: files may not be as large as the machine's "
                      "memory here (ulimit -f)",
                      pe_->id().value));
    }
  }
  return memory_;
}

std::uint64_t Pool::take(std::optional<Arena>& half, std::size_t bytes) {
  const std::span<std::byte> all = memory();
  const std::size_t half_bytes = all.size() / 2;
  if (!half) half.emplace(all.data() + (&half == &own_ ? half_bytes : 0), half_bytes, 0);
  std::byte* const at = bytes > half_bytes ? nullptr : half->try_allocate(std::max<std::size_t>(bytes, 1), 0);
  if (at == nullptr) {
    throw UsageError(fmt::format("PE {} cannot have {} of shared memory: {} are allowed, less what it has already",
                                 pe_->id().value, base::format_bytes(bytes), base::format_bytes(half_bytes)));
  }
  // The system may ignore it. The end of a block keeps small pages, so that no unused memory is touched.
  if (bytes >= huge_page) madvise(at, bytes / huge_page * huge_page, MADV_HUGEPAGE);
  return std::uint64_t(at - all.data());
}

void Pool::give_back(std::optional<Arena>& half, std::uint64_t offset) {
  std::byte* const at = memory_.data() + offset;
  const std::size_t bytes = half->block_bytes(at);
  // MADV_REMOVE frees shared memory in its file; MADV_DONTNEED frees private memory.
  if (bytes >= pe_->engine().sizes().given_back_bytes_min && madvise(at, bytes, MADV_REMOVE) != 0) {
    madvise(at, bytes, MADV_DONTNEED);
  }
  half->free(at);
}

void refuse_size(Pe& pe, std::size_t size, std::size_t element_bytes) {
  throw UsageError(fmt::format("PE {} cannot have {} of {} of shared memory", pe.id().value,
                               base::counted(size, "element"), base::counted(element_bytes, "byte")));
}

}  // namespace headway::rma
