#include <algorithm>
#include <headway/transfer/pipeline.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>
#include <new>

namespace headway::transfer {
void Pipeline::begin_ring() {
  begun_ = true;
  if (!rma::Reach::of(*pe_).others_map_pool()) return;
  const SizeConstants& sizes = pe_->engine().sizes();
  const std::size_t bytes = std::clamp(2 * cache_sizes().own, sizes.ring_bytes_min, sizes.ring_bytes_max);
  rma::Pool& pool = rma::Pool::of(*pe_);
  try {
    ring_.emplace(pool.memory().subspan(pool.allocate(bytes), bytes));
  } catch (const UsageError&) {  // without shared memory, which limits of the process may forbid
  }
}

PipelinedContent* Pipeline::begin(std::size_t bytes, std::uint64_t id) {
  if (!begun_) begin_ring();
  return ring_ ? ring_->begin(bytes, id) : nullptr;
}

PipelinedContent* PipelineRing::begin(std::size_t bytes, std::uint64_t id) {
  while (!chunks_.empty() && content(chunks_.front())->taken.load(std::memory_order_acquire) != 0) chunks_.pop_front();

  const std::size_t needed = align_up(sizeof(PipelinedContent) + bytes, alignof(PipelinedContent));
  // Free is what lies behind the newest chunk up to the ring's end, and before the oldest.
  const std::size_t oldest = chunks_.empty() ? memory_.size() : chunks_.front().at;
  const bool wrapped = !chunks_.empty() && next_ <= oldest;
  Chunk chunk{next_, needed, id};
  std::size_t end = wrapped ? oldest : memory_.size();
  if (!wrapped && needed > end - chunk.at) {
    chunk.at = 0;
    end = oldest;
  }
  if (needed > end - chunk.at) return nullptr;

  next_ = chunk.at + needed;
  chunks_.push_back(chunk);
  auto* const begun = new (memory_.data() + chunk.at) PipelinedContent;
  begun->id.store(id, std::memory_order_relaxed);
  begun->written.store(0, std::memory_order_relaxed);
  begun->taken.store(0, std::memory_order_relaxed);
  return begun;
}

bool PipelineRing::drop(std::uint64_t id) {
  const auto found = std::ranges::find(chunks_, id, &Chunk::id);
  if (found == chunks_.end()) return false;
  PipelinedContent& dropped = *content(*found);
  if (dropped.taken.load(std::memory_order_acquire) != 0) return false;
  dropped.id.store(0, std::memory_order_relaxed);
  dropped.taken.store(1, std::memory_order_relaxed);
  return true;
}

std::uint64_t Pipeline::offset(const PipelinedContent& content) const {
  return std::uint64_t(reinterpret_cast<const std::byte*>(&content) - rma::Pool::of(*pe_).memory_in_use().data());
}

void PipelineRing::write(PipelinedContent& content, std::span<const std::byte> from, LargeCopy copy,
                         const SizeConstants& sizes, std::size_t until) {
  until = std::min(until, from.size());
  for (std::size_t done = content.written.load(std::memory_order_relaxed); done < until;) {
    // Who reads soon has something, and little left when all is written.
    const std::size_t left = from.size() - done, step = std::clamp(done, sizes.step_bytes_min, sizes.step_bytes_max);
    const std::size_t n = std::min({step, left, std::max(sizes.step_bytes_min, left / 2)});
    copy(content.bytes() + done, from.data() + done, n);
    done += n;
    content.written.store(done, std::memory_order_release);
  }
}

PipelinedRead::Found PipelinedRead::read(unsigned looks) {
  for (unsigned in_vain = 0; done_ < bytes_;) {
    const std::uint64_t written = content_->written.load(std::memory_order_acquire);
    if (content_->id.load(std::memory_order_relaxed) != id_) return Found::gone;
    if (written > bytes_ || written < done_) throw FormatError("more is said to be written than was wanted");
    if (written == done_) {
      if (in_vain++ == looks) return Found::part;
      continue;
    }
    copy_(to_ + done_, content_->bytes() + done_, written - done_);
    done_ = written;
    in_vain = 0;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (content_->id.load(std::memory_order_relaxed) != id_) return Found::gone;  // and what was read perhaps another's
  content_->taken.store(1, std::memory_order_release);
  return Found::all;
}

}  // namespace headway::transfer
