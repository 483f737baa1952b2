// SPDX-License-Identifier: BSD-3-Clause
/// A transport with delays that the explorer chooses: frames between two PEs stay in order, and otherwise the receiver
/// sees each of them at any later time. Every frame is passed by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <explorer/shared.hpp>
#include <headway/transport/endpoint.hpp>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::explore {

inline constexpr std::size_t pes_max = 3;

/// Frames from one PE to another, in the order they were posted. The receiver may see a relaxed store late: that is the
/// delay, and tells nothing about frames of other senders.
class Channel {
 public:
  struct Bytes {
    transport::FrameHeader header;
    std::array<std::byte, 32> payload;
  };

  /// After so many polls in vain the receiver sees all posted frames: no delay lasts for ever.
  explicit Channel(unsigned late_looks_max) : late_looks_left_(late_looks_max) {}

  Atomic<std::uint32_t>& posted_count() { return posted_; }

  void post(const Bytes& frame) {
    frames_.push_back(frame);
    posted_.store(std::uint32_t(frames_.size()), std::memory_order_relaxed);
  }

  /// The next frame that is seen, or nullptr.
  const Bytes* next() {
    if (taken_ == seen_) {
      // A read-modify-write sees the newest there is.
      seen_ = late_looks_left_ == 0 ? posted_.fetch_add(0, std::memory_order_relaxed)
                                    : posted_.load(std::memory_order_relaxed);
      if (late_looks_left_ > 0 && taken_ == seen_) --late_looks_left_;
    }
    return taken_ == seen_ ? nullptr : &frames_[taken_++];
  }

  bool all_taken() const { return taken_ == frames_.size(); }

 private:
  Atomic<std::uint32_t> posted_;
  std::vector<Bytes> frames_;
  std::uint32_t seen_ = 0, taken_ = 0;
  unsigned late_looks_left_;
};

/// The channels among all PEs, and their boards.
class Network {
 public:
  static constexpr std::size_t board_bytes = 16384;

  Network(std::size_t pes, unsigned late_looks_max) : pes_(pes), boards_(pes) {
    for (std::size_t i = 0; i < pes * pes; ++i) {
      channels_.push_back(std::make_unique<Channel>(late_looks_max));
      channels_[i]->posted_count().named("posted " + std::to_string(i / pes) + " to " + std::to_string(i % pes));
    }
  }

  std::size_t pes() const { return pes_; }
  Channel& channel(std::size_t source, std::size_t target) { return *channels_[source * pes_ + target]; }
  std::span<std::byte> board(std::size_t pe) { return boards_[pe].bytes; }
  bool all_taken() const {
    for (const auto& channel : channels_) {
      if (!channel->all_taken()) return false;
    }
    return true;
  }

 private:
  struct alignas(64) Board {
    std::array<std::byte, board_bytes> bytes{};
  };

  std::size_t pes_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Board> boards_;
};

class ExploredEndpoint : public transport::Endpoint, private transport::SharedMemory {
 public:
  ExploredEndpoint(Network& network, std::size_t pe)
      : transport::Endpoint({.id = pe, .size = network.pes()}, *this), network_(&network), pe_(pe) {}

  transport::Frame* try_claim(std::size_t, std::uint64_t) override { return nullptr; }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return frame_bytes; }
  void drop(transport::Frame*) override {}
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte*, bool) override {
    if (target == pe_) throw std::logic_error("a PE sends to itself");
    Channel::Bytes bytes{frame->header, {}};
    if (frame->header.payload_bytes > bytes.payload.size())
      throw std::length_error("a frame is too long to be explored");
    std::memcpy(bytes.payload.data(), frame->payload(), frame->header.payload_bytes);
    network_->channel(pe_, target).post(bytes);
    return Posted::copied;
  }
  std::size_t by_value_bytes_max() const override { return sizeof(Channel::Bytes::payload); }
  std::size_t reclaim(void (*)(void*, std::size_t, std::uint64_t), void*) override { return 0; }

  bool poll(transport::Arrival& arrival) override {
    for (std::size_t source = 0; source < size(); ++source) {
      if (source == pe_) continue;  // no PE sends to itself here
      const Channel::Bytes* frame = network_->channel(source, pe_).next();
      if (frame == nullptr) continue;
      arrive(*frame, arrival);
      return true;
    }
    return false;
  }
  void release(const transport::Arrival&) override {}
  void sleep(std::int64_t) override {
    if (!wait_for_news()) check(false, "a PE waits for a frame that nobody will send");
  }
  std::int64_t now() const override { return 0; }
  transport::TransportCosts costs() const override { return {}; }

 protected:
  void arrive(const Channel::Bytes& frame, transport::Arrival& arrival) {
    arrived_ = frame;
    arrival.header = arrived_.header;
    arrival.payload = arrived_.payload.data();
    arrival.tail_end = arrival.payload + arrived_.header.payload_bytes;
    arrival.owned = 0;
  }

 private:
  std::span<std::byte> board(std::size_t pe) override { return network_->board(pe); }

  Network* network_;
  std::size_t pe_;
  alignas(32) Channel::Bytes arrived_{};
};

}  // namespace headway::explore
