// SPDX-License-Identifier: BSD-3-Clause
/// The oracle of the rings: receivers know what every sender sends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "deliver.hpp"
#include "messages.hpp"
#include "traffic.hpp"

namespace headway::limit {

/// How messages lie in a buffer.
enum class Format { fixed, length_before, lengths_at_end, owning };

/// The messages that a PE must get in a pass, byte by byte and in each source's order; counts those that differ.
class Comparison {
 public:
  Comparison(const Traffic& traffic, std::size_t me, std::size_t bytes, Format format, std::uint64_t messages)
      : bytes_(bytes),
        format_(format),
        room_(format == Format::fixed ? bytes : align_up(bytes, word_bytes)),
        expected_(messages_by_source(traffic, me, messages)),
        next_(traffic.pes()) {
    if (format == Format::length_before) room_ += LengthBefore::in_front;
    for (std::size_t source = 0; source < expected_.size(); ++source) {
      prepared_.push_back(prepared_message(bytes, source));
    }
  }

  /// As a Deliver does.
  std::uint64_t deliver(const std::byte* buffer, std::size_t bytes, const Receiver& receiver) {
    std::size_t& next = next_[receiver.source];
    const std::vector<Word>& numbers = expected_[receiver.source];
    std::vector<std::byte>& message = prepared_[receiver.source];
    const std::uint64_t count = std::min<std::uint64_t>(bytes / room_, numbers.size() - next);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::byte* const at = buffer + i * room_;
      stamp(message.data(), bytes_, numbers[next++]);
      const std::size_t in_front = format_ == Format::length_before ? LengthBefore::in_front : 0;
      errors_ += std::memcmp(at + in_front, message.data(), bytes_) != 0;
      errors_ += length_of(i, at, buffer + receiver.buffer_bytes) != bytes_;
    }
    errors_ += count * room_ != bytes;
    return count;
  }

  /// The same for one message, wherever it lies.
  void take(const std::byte* message, std::size_t bytes, std::size_t source) {
    std::size_t& next = next_[source];
    if (bytes != bytes_ || next == expected_[source].size()) {
      ++errors_;
      return;
    }
    stamp(prepared_[source].data(), bytes_, expected_[source][next++]);
    errors_ += std::memcmp(message, prepared_[source].data(), bytes_) != 0;
  }

  /// After the pass: what differed, and what did not come.
  std::uint64_t errors() const {
    std::uint64_t missing = 0;
    for (std::size_t source = 0; source < expected_.size(); ++source) {
      missing += expected_[source].size() - next_[source];
    }
    return errors_ + missing;
  }

 private:
  static std::vector<std::vector<Word>> messages_by_source(const Traffic& traffic, std::size_t me,
                                                           std::uint64_t messages) {
    std::vector<std::vector<Word>> numbers(traffic.pes());
    traffic.for_each_to(me, messages, [&](std::size_t source, Word number) { numbers[source].push_back(number); });
    return numbers;
  }

  std::size_t length_of(std::uint64_t index, const std::byte* at, const std::byte* buffer_end) const {
    if (format_ == Format::fixed) return bytes_;
    if (format_ == Format::length_before) return load(at);
    std::uint32_t length;
    std::memcpy(&length, buffer_end - (index + 1) * LengthsAtEnd::at_end, sizeof length);
    return length;
  }

  std::size_t bytes_;
  Format format_;
  std::size_t room_;                         // from one message to the next
  std::vector<std::vector<Word>> expected_;  // by source, in order
  std::vector<std::vector<std::byte>> prepared_;
  std::vector<std::size_t> next_;  // of each source's
  std::uint64_t errors_ = 0;
};

inline std::uint64_t compare(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
  return receiver.comparison->deliver(messages, bytes, receiver);
}

}  // namespace headway::limit
