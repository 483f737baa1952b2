#include <algorithm>
#include <headway/transfer/stages.hpp>
#include <headway/base/error.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>

namespace headway::transfer {

Stages::Stages(Pe& pe) : pe_(&pe), sizes_(&pe.engine().sizes()) {}

bool Stages::has_room() {
  if (!begun_) begin();
  return !free_.empty();
}

std::span<const std::byte> Stages::put(std::span<const std::byte> content, LargeCopy copy) {
  if (!has_room()) return {};
  std::byte* const stage = memory_ + free_.front() * sizes_->bounce_buffer_stride;
  free_.pop_front();
  prefetch(content);
  copy(stage, content.data(), content.size());
  return {stage, content.size()};
}

/// Without shared memory, which limits of the process may forbid, content stays where it is.
void Stages::begin() {
  begun_ = true;
  if (!rma::Reach::of(*pe_).others_map_pool()) return;
  rma::Pool& pool = rma::Pool::of(*pe_);
  try {
    memory_ = pool.memory().data() + pool.allocate(sizes_->bounce_buffers * sizes_->bounce_buffer_stride);
  } catch (const UsageError&) {
    return;
  }
  for (std::uint32_t stage = 0; stage != sizes_->bounce_buffers; ++stage) free_.push_back(stage);
}

}  // namespace headway::transfer
