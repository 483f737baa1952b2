// SPDX-License-Identifier: BSD-3-Clause
/// The check of messages with arbitrary numbers: the updates of randomaccess that are larger than their value. Shared
/// with the peers on plain MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <message/message.hpp>
#include <vector>

namespace headway::bench {

/// Compares every byte of messages with what their senders must have sent.
class PayloadChecker {
 public:
  PayloadChecker(std::size_t bytes, std::size_t sources) : expected_(sources, std::vector<std::byte>(bytes)) {
    for (std::size_t source = 0; source < sources; ++source) fill_pattern(expected_[source], source);
  }

  void operator()(std::size_t source, const std::byte* message, std::size_t bytes) {
    ++count_;
    std::vector<std::byte>& expected = expected_[source];
    if (bytes != expected.size()) {
      ++errors_;
      return;
    }
    stamp(expected.data(), bytes, ends_of(message, bytes).front);
    errors_ += std::memcmp(message, expected.data(), bytes) != 0;
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t errors() const { return errors_; }

 private:
  std::vector<std::vector<std::byte>> expected_;  // by source
  std::uint64_t count_ = 0, errors_ = 0;
};

}  // namespace headway::bench
