/// The oracle of the rings: receivers know what every sender sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "deliver.hpp"
#include "messages.hpp"
#include "traffic.hpp"

namespace headway::limit {

/// What a PE must get in a pass, byte by byte and in each source's order, and what of that it did not.
class Comparison {
 public:
  Comparison(const Traffic& traffic, std::size_t me, std::size_t bytes, bool variable, std::uint64_t messages)
      : bytes_(bytes), variable_(variable), expected_(messages_by_source(traffic, me, messages)), next_(traffic.pes()) {
    for (std::size_t source = 0; source < expected_.size(); ++source) {
      prepared_.push_back(prepared_message(bytes, source));
    }
  }

  /// As a Deliver does.
  std::uint64_t deliver(std::size_t source, const std::byte* at, std::size_t bytes) {
    std::vector<std::byte>& message = prepared_[source];
    const std::size_t head = variable_ ? VariableMessages::head : 0;
    const std::size_t room = variable_ ? VariableMessages::room(bytes_) : bytes_;
    std::uint64_t count = 0;
    for (; count * room + room <= bytes; ++count, at += room) {
      if (next_[source] == expected_[source].size()) break;
      stamp(message.data(), bytes_, expected_[source][next_[source]++]);
      errors_ += variable_ && load(at) != bytes_;
      errors_ += std::memcmp(at + head, message.data(), bytes_) != 0;
    }
    errors_ += count * room != bytes;
    return count;
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

  std::size_t bytes_;
  bool variable_;
  std::vector<std::vector<Word>> expected_;  // by source, in order
  std::vector<std::vector<std::byte>> prepared_;
  std::vector<std::size_t> next_;  // of each source's
  std::uint64_t errors_ = 0;
};

inline std::uint64_t compare(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
  return receiver.comparison->deliver(receiver.source, messages, bytes);
}

}  // namespace headway::limit
