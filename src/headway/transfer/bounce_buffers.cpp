// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>
#include <headway/transfer/bounce_buffers.hpp>

namespace headway::transfer {

BounceBuffers::BounceBuffers(Pe& pe) : pe_(&pe), sizes_(&pe.engine().sizes()) {}

bool BounceBuffers::has_free() {
  if (!begun_) begin();
  return !free_.empty();
}

std::span<const std::byte> BounceBuffers::put(std::span<const std::byte> content, LargeCopy copy) {
  if (!has_free()) return {};
  std::byte* const buffer = memory_ + free_.front() * sizes_->bounce_buffer_stride;
  free_.pop_front();
  prefetch(content);
  copy(buffer, content.data(), content.size());
  return {buffer, content.size()};
}

/// Without shared memory, which limits of the process may forbid, content stays where it is.
void BounceBuffers::begin() {
  begun_ = true;
  if (!rma::Reach::of(*pe_).others_map_pool()) return;
  rma::Pool& pool = rma::Pool::of(*pe_);
  try {
    memory_ = pool.memory().data() + pool.allocate(sizes_->bounce_buffers * sizes_->bounce_buffer_stride);
  } catch (const UsageError&) {
    return;
  }
  for (std::uint32_t i = 0; i != sizes_->bounce_buffers; ++i) free_.push_back(i);
}

}  // namespace headway::transfer
