// SPDX-License-Identifier: BSD-3-Clause
// A decoder with holes planted in it, one at a time, to show that the frame of all fuzzers finds them; the first
// argument says which.
#include <cstdio>
#include <cstring>
#include <fuzz/fuzz.hpp>
#include <headway/base/format_error.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using headway::FormatError;
using headway::Random;
using headway::fuzz::Bytes;

enum class Hole { none, overrun, allocation, exception, endless, broken };

Hole hole_named(std::string_view name) {
  constexpr std::string_view names[] = {"none", "overrun", "allocation", "exception", "endless", "broken"};
  for (int i = 0; i < 6; ++i) {
    if (name == names[i]) return Hole(i);
  }
  throw std::invalid_argument("usage: headway_planted_fuzz none|overrun|allocation|exception|endless|broken [options]");
}

///   | count, 2 bytes | count numbers of 2 bytes | ... until the end, where a count is 0 |
class Numbers final : public headway::fuzz::Target {
 public:
  explicit Numbers(Hole hole) : hole_(hole) {}

  std::vector<Bytes> valid_inputs() override {
    Bytes input;
    for (const int number : {2, 7, 9, 1, 5, 0}) {
      input.push_back(std::byte(number));
      input.push_back(std::byte(0));
    }
    return {input};
  }

  void begin_round(std::uint64_t) override {}

  void mutate(Bytes& input, const Bytes& other, Random& random) override {
    headway::fuzz::change_bytes(input, 0, other, random);
  }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    const std::byte* const at = memory_.hold(input, 1, 0, 0);
    try {
      read(at, at + input.size());
    } catch (const FormatError& error) {
      refusal_ = error.what();
    }
    memory_.let_go();
    return refusal_;
  }

 private:
  static std::size_t number(const std::byte* at) {
    std::uint16_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  void read(const std::byte* at, const std::byte* end) {
    for (;;) {
      if (end - at < 2) throw FormatError("a count is missing");
      const std::size_t count = number(at);
      at += 2;
      if (count == 0) return;
      const auto left = std::size_t(end - at) / 2;
      if (hole_ == Hole::allocation) claimed_.reserve(64 * count);
      if (hole_ == Hole::exception && count == 0xffff) throw std::out_of_range("count");
      if (hole_ == Hole::broken && count == 0x100) throw headway::fuzz::Broken("a count of 256");
      while (hole_ == Hole::endless && count > 0x7fff) sum_ = sum_ + 1;
      if (count > left + (hole_ == Hole::overrun ? 1 : 0)) throw FormatError("a count is too large");
      for (std::size_t i = 0; i < count; ++i, at += 2) sum_ = sum_ + number(at);
      if (at > end) return;
    }
  }

  Hole hole_;
  std::vector<std::uint64_t> claimed_;
  volatile std::size_t sum_ = 0;
  headway::fuzz::FencedMemory memory_{16 << 10};
  std::string refusal_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Numbers numbers(hole_named(argc > 1 ? argv[1] : ""));
    return headway::fuzz::run(argc - 1, argv + 1, "headway_planted_fuzz", numbers);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
