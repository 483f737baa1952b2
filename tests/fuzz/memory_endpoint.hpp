// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that keeps its frames in this process: a function gets the posted frames, and the test gives it arriving
/// ones. Each frame has memory of exactly its own size, so that sanitizers find accesses beyond it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <fuzz/fuzz.hpp>
#include <headway/transport/endpoint.hpp>
#include <map>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace headway::fuzz {

class MemoryEndpoint final : public transport::Endpoint, private transport::SharedMemory {
 public:
  using OnPost = std::function<void(std::size_t target, const transport::FrameHeader& header, const std::byte* payload,
                                    const std::byte* tail_end)>;

  /// What PEs that are threads of one process share; `pes` in each. Outlives their endpoints.
  struct Process {
    std::size_t pes = 1;
    transport::SharedByProcess shared;
    std::map<std::size_t, MemoryEndpoint*> members;     // by PE
    std::map<std::size_t, std::span<std::byte>> pools;  // by PE; outlive the endpoints
    transport::Services* services_between_hosts = nullptr;
  };

  /// `hosts`: the first PE of each, which outlive it.
  MemoryEndpoint(std::size_t id, std::size_t size, std::size_t board_bytes, Process& process, OnPost posted,
                 std::span<const std::size_t> hosts = {})
      : transport::Endpoint({.id = id, .size = size, .pes_per_process = process.pes, .host_firsts = hosts}, *this),
        process_(process),
        posted_(std::move(posted)),
        board_(board_bytes) {
    process_.members[id] = this;
  }
  ~MemoryEndpoint() override {
    process_.members.erase(id());
    for (Block* block : blocks_) std::free(block);
  }

  transport::Services* services() override { return process_.services_between_hosts; }
  void arrive(const transport::Arrival& arrival) { arrivals_.push_back(arrival); }
  bool has_arrivals() const { return next_ != arrivals_.size(); }
  /// Whether the frame with this `owned` was given back; forgets it.
  bool take_released(std::uint64_t owned) { return std::erase(released_, owned) != 0; }
  /// Claims are refused from now on, or no more.
  void refuse_claims(bool refuse) { refuses_ = refuse; }

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override {
    if (refuses_) return nullptr;
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, sizeof(Block) + frame_bytes) != 0) throw std::bad_alloc();
    blocks_.push_back(new (memory) Block{frame_bytes, tag, blocks_.size(), {}});
    return reinterpret_cast<transport::Frame*>(blocks_.back() + 1);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override {
    return std::bit_ceil(std::max<std::size_t>(frame_bytes, 128));
  }
  void drop(transport::Frame* frame) override {
    Block* const block = block_of(frame);
    blocks_[block->index] = blocks_.back();
    blocks_[block->index]->index = block->index;
    blocks_.pop_back();
    std::free(block);
  }
  transport::Endpoint::Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end,
                                       bool claimed) override {
    const transport::FrameHeader& header = frame->header;
    const std::size_t bytes = header.payload_bytes + std::size_t(header.tail_bytes);
    const bool by_value = header.hops_left == 0 && bytes <= by_value_bytes_max();
    if (!by_value && !claimed) return transport::Endpoint::Posted::refused;
    if (claimed) {
      const std::byte* const end = reinterpret_cast<const std::byte*>(frame) + block_of(frame)->bytes;
      if (tail_end > end || bytes > std::size_t(tail_end - frame->payload())) {
        throw Broken("a frame is posted that is longer than its memory");
      }
    }
    const auto owner = process_.members.find(header.source);
    if (target >= size() || owner == process_.members.end()) throw Broken("a frame is posted that names no PE");
    posted_(target, header, frame->payload(), tail_end);
    if (by_value) return transport::Endpoint::Posted::copied;
    owner->second->returned_.push_back(frame);
    return transport::Endpoint::Posted::lent;
  }
  std::size_t by_value_bytes_max() const override { return transport::by_value_bytes_most; }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override {
    for (transport::Frame* frame : returned_) {
      const Block block = *block_of(frame);
      drop(frame);
      returned(context, block_bytes(block.bytes), block.tag);
    }
    return std::exchange(returned_, {}).size();
  }
  bool poll(transport::Arrival& arrival) override {
    if (!has_arrivals()) {
      arrivals_.clear();
      next_ = 0;
      return false;
    }
    arrival = arrivals_[next_++];
    return true;
  }
  void release(const transport::Arrival& arrival) override {
    if (arrival.owned != 0) released_.push_back(arrival.owned);
  }
  void sleep(std::int64_t ns) override { now_ += ns; }
  std::int64_t now() const override { return now_ += 1000; }
  transport::TransportCosts costs() const override {
    return {.overhead_ns = 80, .gap_per_byte_ns = 0.025, .latency_ns = 58};
  }

 private:
  std::span<std::byte> board(std::size_t) override { return board_; }
  std::span<std::byte> pool(std::size_t pe) override {
    const auto found = process_.pools.find(pe);
    return found == process_.pools.end() ? std::span<std::byte>() : found->second;
  }
  transport::SharedByProcess* shared_by_process() override { return &process_.shared; }

  struct alignas(64) Block {
    std::size_t bytes;  // of the frame behind it
    std::uint64_t tag;
    std::size_t index;  // in blocks_
    std::byte unused[40];
  };
  static_assert(sizeof(Block) == 64);
  static Block* block_of(transport::Frame* frame) { return reinterpret_cast<Block*>(frame) - 1; }

  Process& process_;
  OnPost posted_;
  std::vector<std::byte> board_;
  std::vector<Block*> blocks_;  // claimed or on their way
  std::vector<transport::Frame*> returned_;
  std::vector<transport::Arrival> arrivals_;
  std::size_t next_ = 0;
  std::vector<std::uint64_t> released_;
  bool refuses_ = false;
  mutable std::int64_t now_ = 0;
};

}  // namespace headway::fuzz
