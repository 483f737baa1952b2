#include <algorithm>
#include <headway/aggregate/pipeline.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>
#include <new>

namespace headway::aggregate {
namespace {

/// Written before the reader learns of it.
constexpr std::size_t step_bytes_max = 16_KiB, step_bytes_min = 4_KiB;

}  // namespace

void Pipeline::begin_ring() {
  begun_ = true;
  if (!rma::Reach::of(*pe_).others_map_pool()) return;
  const std::size_t bytes = std::clamp<std::size_t>(2 * cache_sizes().own, 1_MiB, 4_MiB);
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
  const auto at = [this](const Chunk& chunk) { return reinterpret_cast<PipelinedContent*>(memory_.data() + chunk.at); };
  while (!chunks_.empty() && at(chunks_.front())->taken.load(std::memory_order_acquire) != 0) chunks_.pop_front();

  const std::size_t needed = align_up(sizeof(PipelinedContent) + bytes, alignof(PipelinedContent));
  // Free is what lies behind the newest chunk up to the ring's end, and before the oldest.
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
  auto* const content = new (memory_.data() + chunk.at) PipelinedContent;
  content->written.store(0, std::memory_order_relaxed);
  content->taken.store(0, std::memory_order_relaxed);
  return content;
}

std::uint64_t Pipeline::offset(const PipelinedContent& content) const {
  return std::uint64_t(reinterpret_cast<const std::byte*>(&content) - rma::Pool::of(*pe_).memory_in_use().data());
}

void PipelineRing::write(PipelinedContent& content, std::span<const std::byte> from, LargeCopy copy) {
  std::size_t step = step_bytes_min;
  for (std::size_t done = 0; done < from.size();) {
    // Who reads soon has something, and little left when all is written.
    const std::size_t left = from.size() - done;
    const std::size_t n = std::min({step, left, std::max(step_bytes_min, left / 2)});
    step = std::min(2 * step, step_bytes_max);
    copy(content.bytes() + done, from.data() + done, n);
    done += n;
    content.written.store(done, std::memory_order_release);
  }
}

bool PipelinedRead::read(unsigned looks) {
  for (unsigned in_vain = 0; done_ < bytes_;) {
    const std::uint64_t written = content_->written.load(std::memory_order_acquire);
    if (written > bytes_ || written < done_) throw FormatError("more is said to be written than was wanted");
    if (written == done_) {
      if (in_vain++ == looks) return false;
      continue;
    }
    copy_(to_ + done_, content_->bytes() + done_, written - done_);
    done_ = written;
    in_vain = 0;
  }
  content_->taken.store(1, std::memory_order_release);
  return true;
}

}  // namespace headway::aggregate
