// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/transport/sim/memory.hpp>
#include <new>

namespace headway::sim {
namespace {

constexpr int guard_value = 0xA5;
constexpr int free_value = 0xDD;
constexpr std::size_t poisoned_bytes_max = 4096;

std::uint64_t checksum(const std::byte* at, std::size_t bytes, std::uint64_t sum) {
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    sum = std::rotl(sum ^ word, 29) * 0x9fb21c651e98df25;
  }
  std::uint64_t rest = 0;
  if (bytes != 0) std::memcpy(&rest, at, bytes);
  return std::rotl(sum ^ rest, 29) * 0x9fb21c651e98df25;
}

std::uint64_t checksum(transport::Frame* frame, const transport::FrameHeader& header, const std::byte* tail_end) {
  std::uint64_t sum = header.payload_bytes ^ std::uint64_t(header.tail_bytes) << 32;
  sum = checksum(frame->payload(), header.payload_bytes, sum);
  return checksum(tail_end - header.tail_bytes, header.tail_bytes, sum);
}

}  // namespace

Memory::~Memory() {
  for (Block* block : all_) std::free(block);
}

std::size_t Memory::block_bytes(std::size_t frame_bytes) {
  return std::bit_ceil(std::max<std::size_t>(frame_bytes, 128));
}

Memory::Block& Memory::block_of(transport::Frame* frame) {
  return *reinterpret_cast<Block*>(reinterpret_cast<std::byte*>(frame) - before_frame);
}

void Memory::set_guards(Block& block) {
  auto* frame = reinterpret_cast<std::byte*>(block.frame());
  std::memset(frame - guard_bytes, guard_value, guard_bytes);
  std::memset(frame + block.frame_bytes, guard_value, guard_bytes);
}

void Memory::require(const Block& block, State state, const char* call) {
  if (block.state == state) return;
  throw ContractViolation(fmt::format("{} of a frame of PE {} that is {}, not {}", call, block.pe,
                                      names[int(block.state)], names[int(state)]));
}

void Memory::require_guards(Block& block, const char* call) {
  const auto* frame = reinterpret_cast<const std::byte*>(block.frame());
  auto whole = [](const std::byte* at) {
    return std::all_of(at, at + guard_bytes, [](std::byte b) { return b == std::byte(guard_value); });
  };
  if (whole(frame - guard_bytes) && whole(frame + block.frame_bytes)) return;
  throw ContractViolation(fmt::format("{} of a frame of PE {} of {}: a write went beyond it", call, block.pe,
                                      base::counted(block.frame_bytes, "byte")));
}

void Memory::require_unchanged(Block& block, const transport::FrameHeader& header, const std::byte* tail_end,
                               const char* call) {
  require_guards(block, call);
  if (checksum(block.frame(), header, tail_end) == block.checksum) return;
  throw ContractViolation(
      fmt::format("{} of a frame of PE {}: it has changed since it was posted: checksum {:x} instead of {:x}", call,
                  block.pe, checksum(block.frame(), header, tail_end), block.checksum));
}

transport::Frame* Memory::try_claim(std::size_t frame_bytes, std::uint64_t tag) {
  const std::size_t bytes = block_bytes(frame_bytes);
  if (bytes_ + bytes > bytes_max_) return nullptr;
  std::vector<Block*>& free = free_[std::size_t(std::countr_zero(bytes))];
  if (free.empty()) {
    void* memory = std::aligned_alloc(64, before_frame + bytes + guard_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    all_.push_back(new (memory) Block);
    free.push_back(all_.back());
  }
  Block& block = *free.back();
  free.pop_back();
  block = {pe_, frame_bytes, bytes, tag, 0, State::claimed};
  set_guards(block);
  bytes_ += bytes;
  bytes_peak_ = std::max(bytes_peak_, bytes_);
  return block.frame();
}

void Memory::make_free(Block& block) {
  require_guards(block, "giving back");
  // A later read of the freed frame finds these bytes.
  std::memset(block.frame()->payload(), free_value,
              std::min(block.frame_bytes - transport::frame_overhead, poisoned_bytes_max));
  block.state = State::free;
  bytes_ -= block.block_bytes;
  free_[std::size_t(std::countr_zero(block.block_bytes))].push_back(&block);
}

void Memory::drop(transport::Frame* frame) {
  Block& block = block_of(frame);
  require(block, State::claimed, "drop");
  make_free(block);
}

Memory::Block& Memory::post(transport::Frame* frame, const std::byte* tail_end) {
  Block& block = block_of(frame);
  require(block, State::claimed, "post");
  require_guards(block, "post");
  const transport::FrameHeader& header = frame->header;
  const auto* begin = reinterpret_cast<const std::byte*>(frame);
  if (tail_end > begin + block.frame_bytes || std::size_t(tail_end - begin) < transport::frame_overhead +
                                                                                  header.payload_bytes +
                                                                                  std::size_t(header.tail_bytes)) {
    throw ContractViolation(fmt::format("post of a frame of PE {} of {}: payload of {} and tail of {} do not fit", pe_,
                                        base::counted(block.frame_bytes, "byte"), header.payload_bytes,
                                        header.tail_bytes));
  }
  block.checksum = checksum(frame, header, tail_end);
  block.state = State::posted;
  return block;
}

void Memory::lend(Block& block, const transport::FrameHeader& header, const std::byte* tail_end) {
  require(block, State::posted, "poll");
  require_unchanged(block, header, tail_end, "poll");
  block.state = State::lent;
}

void Memory::give_back(Block& block, const transport::FrameHeader& header, const std::byte* tail_end) {
  require(block, State::lent, "release");
  require_unchanged(block, header, tail_end, "release");
  block.state = State::returned;
}

void Memory::reclaim(Block& block) {
  require(block, State::returned, "reclaim");
  make_free(block);
}

std::string Memory::missing() const {
  std::string text;
  for (const Block* block : all_) {
    if (block->state == State::free || block->state == State::returned) continue;
    text += fmt::format("{}a frame of PE {} of {} is {}", text.empty() ? "" : ", ", pe_,
                        base::counted(block->frame_bytes, "byte"), names[int(block->state)]);
  }
  return text;
}

}  // namespace headway::sim
