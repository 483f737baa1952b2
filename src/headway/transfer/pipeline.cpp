// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>
#include <headway/transfer/pipeline.hpp>
#include <new>

namespace headway::transfer {
void Pipeline::begin_ring() {
  begun_ = true;
  if (!rma::Reach::of(*pe_).others_map_pool()) return;
  const base::SizeConstants& sizes = pe_->engine().sizes();
  const std::size_t bytes = std::clamp(2 * base::cache_sizes().own, sizes.ring_bytes_min, sizes.ring_bytes_max);
  rma::Pool& pool = rma::Pool::of(*pe_);
  try {
    ring_.emplace(pool.memory().subspan(pool.allocate(bytes), bytes));
  } catch (const UsageError&) {  // without shared memory, which limits of the process may forbid
  }
}

PipelinedContent* Pipeline::begin(std::size_t bytes) {
  if (!begun_) begin_ring();
  return ring_ ? ring_->begin(bytes) : nullptr;
}

PipelinedContent* PipelineRing::begin(std::size_t bytes) {
  while (!chunks_.empty() && content(chunks_.front())->consumed.load(std::memory_order_acquire) != 0) {
    chunks_.pop_front();
  }

  const std::size_t needed = base::align_up(sizeof(PipelinedContent) + bytes, alignof(PipelinedContent));
  // Free memory is after the newest chunk, up to the ring's end, and before the oldest.
  const std::size_t oldest = chunks_.empty() ? memory_.size() : chunks_.front().at;
  const bool wrapped = !chunks_.empty() && next_ <= oldest;
  Chunk chunk{next_, needed};
  std::size_t end = wrapped ? oldest : memory_.size();
  if (!wrapped && needed > end - chunk.at) {
    chunk.at = 0;
    end = oldest;
  }
  if (needed > end - chunk.at) return nullptr;

  next_ = chunk.at + needed;
  chunks_.push_back(chunk);
  auto* const begun = new (memory_.data() + chunk.at) PipelinedContent;
  begun->written.store(0, std::memory_order_relaxed);
  begun->consumed.store(0, std::memory_order_relaxed);
  return begun;
}

std::uint64_t Pipeline::offset(const PipelinedContent& content) const {
  return std::uint64_t(reinterpret_cast<const std::byte*>(&content) - rma::Pool::of(*pe_).memory_in_use().data());
}

void PipelineRing::write(PipelinedContent& content, std::span<const std::byte> from, base::LargeCopy copy,
                         const base::SizeConstants& sizes) {
  for (std::size_t done = 0; done < from.size();) {
    // The reader can begin soon, and has little left to copy when the last step is written.
    const std::size_t left = from.size() - done, step = std::clamp(done, sizes.step_bytes_min, sizes.step_bytes_max);
    const std::size_t n = std::min({step, left, std::max(sizes.step_bytes_min, left / 2)});
    copy(content.bytes() + done, from.data() + done, n);
    done += n;
    content.written.store(done, std::memory_order_release);
  }
}

bool PipelinedRead::read(unsigned looks) {
  for (unsigned in_vain = 0; done_ < bytes_;) {
    const std::uint64_t written = content_->written.load(std::memory_order_acquire);
    if (written > bytes_ || written < done_) {
      throw FormatError(fmt::format("the owner states {} written bytes of a piece of {}, after {}: expected {} to {}",
                                    written, bytes_, done_, done_, bytes_));
    }
    if (written == done_) {
      if (in_vain++ == looks) return false;
      continue;
    }
    copy_(to_ + done_, content_->bytes() + done_, written - done_);
    done_ = written;
    in_vain = 0;
  }
  content_->consumed.store(1, std::memory_order_release);
  return true;
}

}  // namespace headway::transfer
