// SPDX-License-Identifier: BSD-3-Clause
/// Messages of fixed size that random programs send: one argument, or several, aligned to 1 to 64 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/format.hpp>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "message.hpp"

namespace seeds {

/// `n` bytes, a multiple of the alignment.
template <std::size_t alignment, std::size_t n>
struct alignas(alignment) Lump {
  static_assert(n % alignment == 0);
  std::array<std::byte, n> bytes;
};
/// Bytes that may lie anywhere.
template <std::size_t n>
using Loose = std::array<std::byte, n>;

/// The bytes of the parts, one after the other, are a header and content, or only content where a header does not fit.
template <class... Parts>
struct FixedForm {
  static constexpr std::size_t bytes = (sizeof(Parts) + ...);
  static constexpr std::size_t alignment = std::max({alignof(Parts)...});
  static constexpr bool has_header = bytes >= sizeof(Header);
  /// Of the message's length modulo its alignment. Messages in a frame are padded to a whole alignment.
  static constexpr std::size_t remainder = headway::aggregate::MessageFormat<Parts...>::prefix_bytes % alignment;
};

using FixedForms = std::tuple<
    // alone: whole alignments
    FixedForm<Lump<1, 3>>, FixedForm<Lump<2, 2>>, FixedForm<Lump<4, 100>>, FixedForm<Lump<8, 8>>,
    FixedForm<Lump<16, 208>>, FixedForm<Lump<32, 3200>>, FixedForm<Lump<64, 64>>, FixedForm<Lump<1, 70'001>>,
    FixedForm<Lump<64, 200'000>>,
    // with something behind
    FixedForm<Lump<2, 40>, Loose<1>>, FixedForm<Lump<4, 8>, Loose<1>>, FixedForm<Lump<4, 20'000>, Loose<2>>,
    FixedForm<Lump<4, 24>, Loose<3>>, FixedForm<Lump<8, 16>, Loose<1>>, FixedForm<Lump<8, 24>, Loose<2>>,
    FixedForm<Lump<8, 1000>, Loose<3>>, FixedForm<Lump<8, 40'000>, Loose<4>>, FixedForm<Lump<8, 8>, Loose<5>>,
    FixedForm<Lump<8, 160>, Loose<6>>, FixedForm<Lump<8, 100'000>, Loose<7>>, FixedForm<Lump<16, 16>, Loose<1>>,
    FixedForm<Lump<16, 30'000>, Loose<6>>, FixedForm<Lump<16, 192>, Loose<10>>, FixedForm<Lump<16, 48>, Loose<15>>,
    FixedForm<Lump<32, 32>, Loose<3>>, FixedForm<Lump<32, 65'536>, Loose<12>>, FixedForm<Lump<32, 320>, Loose<21>>,
    FixedForm<Lump<32, 128'000>, Loose<31>>, FixedForm<Lump<64, 192>, Loose<7>>, FixedForm<Lump<64, 10'240>, Loose<20>>,
    FixedForm<Lump<64, 64'000>, Loose<45>>, FixedForm<Lump<64, 64>, Loose<63>>, FixedForm<Lump<64, 1024>, Loose<34>>,
    FixedForm<Lump<64, 150'016>, Loose<57>>, FixedForm<Lump<64, 128>, Loose<40>>, FixedForm<Lump<64, 4096>, Loose<11>>,
    // before and behind
    FixedForm<Loose<5>, Lump<8, 24>, Loose<3>>, FixedForm<Loose<3>, Lump<16, 48>, Loose<14>>,
    FixedForm<Loose<1>, Lump<64, 64>>>;
inline constexpr std::size_t fixed_forms = std::tuple_size_v<FixedForms>;

/// The facts that a program needs about one form.
struct FixedFormFacts {
  std::size_t bytes, alignment, remainder;
  bool has_header;
};
template <class... Forms>
constexpr std::array<FixedFormFacts, sizeof...(Forms)> facts_of(std::type_identity<std::tuple<Forms...>>) {
  return {{{Forms::bytes, Forms::alignment, Forms::remainder, Forms::has_header}...}};
}
inline constexpr auto fixed_form_facts = facts_of(std::type_identity<FixedForms>());

/// Whether there is one of each remainder modulo `modulo`, of messages that are aligned to at least `alignment`.
consteval bool has_each_remainder(std::size_t alignment, std::size_t modulo) {
  for (std::size_t remainder = 0; remainder < modulo; ++remainder) {
    const bool has = std::ranges::any_of(fixed_form_facts, [&](const FixedFormFacts& form) {
      return form.alignment >= alignment && form.remainder % modulo == remainder;
    });
    if (!has) return false;
  }
  return true;
}
static_assert(has_each_remainder(1, 1) && has_each_remainder(2, 2) && has_each_remainder(4, 4) &&
              has_each_remainder(8, 8) && has_each_remainder(16, 16));

namespace codecs {

template <class... Parts>
struct OfFixed {
  using Form = FixedForm<Parts...>;
  static constexpr std::size_t header_bytes = Form::has_header ? sizeof(Header) : 0;
  using Bytes = std::vector<std::byte>;

  /// Of all parts, one after the other.
  static Bytes bytes_of(const Parts&... parts) {
    Bytes bytes(Form::bytes);
    std::byte* at = bytes.data();
    ((std::memcpy(at, &parts, sizeof parts), at += sizeof parts), ...);
    return bytes;
  }
  static bool are_aligned(const Parts&... parts) {
    return ((reinterpret_cast<std::uintptr_t>(&parts) % alignof(Parts) == 0) && ...);
  }

  template <class To>
  static auto send(const Header& header, Content content, To to) {
    Bytes bytes(Form::bytes);
    std::memcpy(bytes.data(), &header, header_bytes);
    std::memcpy(bytes.data() + header_bytes, content.data(), content.size());
    const auto message = std::make_unique<std::tuple<Parts...>>();  // too large for a stack
    return std::apply(
        [&](Parts&... parts) {
          const std::byte* from = bytes.data();
          ((std::memcpy(&parts, from, sizeof parts), from += sizeof parts), ...);
          return to(parts...);
        },
        *message);
  }
  static Header header_of(const Parts&... parts) requires(Form::has_header) {
    Header header;
    std::memcpy(&header, bytes_of(parts...).data(), sizeof header);
    return header;
  }
  static bool holds(Content content, const Parts&... parts) {
    return are_aligned(parts...) && same(content, Content(bytes_of(parts...)).subspan(header_bytes));
  }
  /// Unaligned parts give empty content, which no PE sends.
  static Bytes content_of(const Parts&... parts) { return are_aligned(parts...) ? bytes_of(parts...) : Bytes(); }
};

}  // namespace codecs
}  // namespace seeds
