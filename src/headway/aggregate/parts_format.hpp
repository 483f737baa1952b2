// SPDX-License-Identifier: BSD-3-Clause
/// The layout of the parts of one message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/piece_reader.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/reflect.hpp>
#include <headway/base/sendable.hpp>
#include <headway/base/serialize.hpp>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace headway::aggregate {

/// FormatError: a message of `bytes` is too short or too long for its arguments, or states a count that is too large.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_short_message(std::size_t bytes, std::size_t least);
[[noreturn, gnu::cold, gnu::noinline]] void refuse_long_message(std::size_t bytes, std::size_t used);
[[noreturn, gnu::cold, gnu::noinline]] void refuse_view_count(std::uint64_t count, std::size_t most);

/// The memory into which a message is packed.
enum class Into {
  memory,  // of this message only
  frame,   // more messages follow: the next cache lines are prefetched
};

/// Numbers for which all bit patterns are valid.
template <class T>
inline constexpr bool is_plain_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;
template <class T>
inline constexpr bool is_word_array = false;  // a short array of words
template <class T, std::size_t n>
inline constexpr bool is_word_array<std::array<T, n>> = is_plain_number<T> && sizeof(T) == 8 && n <= 16;

/// Stores a value field by field, so that the compiler builds it in the frame instead of copying it from the stack:
/// wide loads after narrow stores stall. Scalars are stored with their own type, so that the compiler knows that the
/// store does not change the aggregator's pointers.
template <class T>
inline __attribute__((always_inline)) void store(std::byte* at, const T& value) {
  if constexpr (std::is_empty_v<T>) {
    *at = std::byte(0);
    return;
  }
  if constexpr (is_plain_number<T>) {
    ::new (at) T(value);
    return;
  }
  if constexpr (is_word_array<T>) {
#pragma GCC unroll 32
    for (std::size_t i = 0; i < value.size(); ++i) store(at + i * sizeof value[0], value[i]);
    return;
  }
  if constexpr (std::is_class_v<T> && Addressable<T>) {
    if constexpr (1 < field_count<T>) {
      for_each_field(value, [&]<class Field>(const Field& field) {
        // an empty field may share its address with another
        if constexpr (!std::is_empty_v<Field>) {
          store(at + (reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&value)), field);
        }
      });
      return;
    }
  }
  base::copy_fixed<sizeof(T)>(at, reinterpret_cast<const std::byte*>(&value));
}

/// The bytes of a message with these parts. No part is of a type for which is_assembled holds: MessageFormat has split
/// these types into parts.
///
///   | fixed parts, each aligned | counts of elements of views | views, each aligned | owning parts, serialized |
///
/// If the last part of the message is a view, it has no count: its number of elements follows from the length of the
/// message. All offsets up to the first view are compile-time constants.
template <class... Parts>
struct PartsFormat {
  using Tuple = std::tuple<Parts...>;
  template <std::size_t i>
  using Part = std::tuple_element_t<i, Tuple>;
  template <std::size_t i>
  static constexpr ArgumentKind kind = kind_of<Part<i>>();

  static constexpr std::size_t views = (std::size_t(kind_of<Parts>() == ArgumentKind::view) + ... + 0);
  static constexpr bool owning = ((kind_of<Parts>() == ArgumentKind::owning) || ...);
  static constexpr bool fixed = views == 0 && !owning;
  /// Views that need a count: all but the last part of the message.
  static constexpr std::size_t counts = owning ? views : views == 0 ? 0 : views - 1;

 private:
  template <class Arg>
  static constexpr std::size_t alignment_of() {
    if constexpr (is_view<Arg>)
      return alignof(typename ViewElement<Arg>::Type);
    else
      return FixedSize<Arg> ? alignof(Arg) : 1;
  }
  static constexpr std::size_t max_of(std::initializer_list<std::size_t> values) {
    std::size_t result = 1;
    for (const std::size_t v : values) result = v > result ? v : result;
    return result;
  }

 public:
  static constexpr std::size_t alignment = max_of({alignment_of<Parts>()..., counts != 0 ? alignof(std::uint64_t) : 1});
  static_assert(alignment <= 64, "headway: a type aligned to more than 64 bytes cannot be sent");

 private:
  struct Offsets {
    std::array<std::size_t, sizeof...(Parts) + 1> of{};  // of fixed parts
    std::size_t counts = 0;
    std::size_t end = 0;
  };
  static constexpr Offsets offsets = [] {
    Offsets result;
    std::size_t at = 0, i = 0;
    [[maybe_unused]] auto place = [&]<class A>(std::type_identity<A>) {
      if constexpr (kind_of<A>() == ArgumentKind::fixed) {
        at = base::align_up(at, alignof(A));
        result.of[i] = at;
        at += sizeof(A);
      }
      ++i;
    };
    (place(std::type_identity<Parts>{}), ...);
    if (counts != 0) {
      at = base::align_up(at, alignof(std::uint64_t));
      result.counts = at;
      at += counts * sizeof(std::uint64_t);
    }
    result.end = at;
    return result;
  }();

 public:
  /// Bytes before the first view; all of them for a message of fixed size.
  static constexpr std::size_t prefix_bytes = offsets.end;
  /// Bytes of a message of fixed size with padding; at least 1, so that messages can be counted.
  static constexpr std::size_t fixed_bytes = base::align_up(prefix_bytes == 0 ? 1 : prefix_bytes, alignment);

  /// True if every message has a length that is a multiple of the alignment. Then no padding lies between messages.
  static constexpr bool lengths_are_aligned = [] {
    std::size_t last = 0;
    ((last = is_view<Parts> ? alignment_of<Parts>() : last), ...);
    return fixed || (!owning && last == alignment);
  }();
  static constexpr std::size_t padded(std::size_t bytes) {
    return lengths_are_aligned ? bytes : base::align_up(bytes, alignment);
  }

  /// Length of a message without padding behind it.
  static std::size_t bytes(const Parts&... parts) {
    std::size_t at = prefix_bytes;
    [[maybe_unused]] auto add_view = [&]<class A>(const A& part) {
      if constexpr (is_view<A>) {
        using Element = typename ViewElement<A>::Type;
        at = base::align_up(at, alignof(Element)) + part.size() * sizeof(Element);
      }
    };
    (add_view(parts), ...);
    if constexpr (owning) {
      [[maybe_unused]] auto add_owning = [&]<class A>(const A& part) {
        if constexpr (kind_of<A>() == ArgumentKind::owning) at += serialized_bytes(part);
      };
      (add_owning(parts), ...);
    }
    return at;
  }

  /// Writes the message, which takes bytes(parts...), to `at`, aligned to `alignment`.
  template <Into into = Into::memory>
  static inline __attribute__((always_inline)) void pack(std::byte* at, const Parts&... parts) {
    constexpr bool more_follows = into == Into::frame;
    pack_prefix(at, parts...);
    if constexpr (!fixed) {
      std::byte* end = at + prefix_bytes;
      [[maybe_unused]] auto put_view = [&]<class A>(const A& part) __attribute__((always_inline)) {
        if constexpr (is_view<A>) {
          using Element = typename ViewElement<A>::Type;
          end = at + base::align_up(std::size_t(end - at), alignof(Element));
          const std::size_t size = part.size() * sizeof(Element);
          base::copy_short<true>(end, reinterpret_cast<const std::byte*>(part.data()), size, more_follows);
          end += size;
        }
      };
      (put_view(parts), ...);
      if constexpr (owning) {
        [[maybe_unused]] auto put_owning = [&]<class A>(const A& part) {
          if constexpr (kind_of<A>() == ArgumentKind::owning) end = serialize(end, part, more_follows);
        };
        (put_owning(parts), ...);
      }
    }
  }

  /// Fixed parts of up to so many bytes are copied into one piece. If their addresses escaped, the compiler would have
  /// to assume for every message that a store to a frame changes the arguments.
  static constexpr std::size_t copied_prefix_max = 1024;
  /// Calls f(Pieces) with the message in pieces, which have fixed_bytes or bytes(parts...) together. Views and longer
  /// fixed parts are not copied.
  template <class F>
  static decltype(auto) with_pieces(F&& f, const Parts&... parts) {
    static constexpr std::byte zeros[64]{};
    static_assert(alignment <= sizeof zeros);
    std::vector<std::span<const std::byte>> pieces;
    std::size_t end = 0, i = 0;
    const auto add = [&](std::size_t at, std::span<const std::byte> piece) {
      if (at != end) pieces.push_back(std::span(zeros, at - end));
      if (!piece.empty()) pieces.push_back(piece);
      end = at + piece.size();
    };

    constexpr bool copies_prefix = prefix_bytes <= copied_prefix_max;
    alignas(64) std::byte prefix[copies_prefix ? prefix_bytes + 1 : 1]{};
    if constexpr (copies_prefix) {
      pack_prefix(prefix, parts...);
      add(0, std::span(prefix, prefix_bytes));
    }
    std::vector<std::uint64_t> view_sizes;
    [[maybe_unused]] auto add_fixed = [&]<class A>(const A& part) {
      // an empty type travels as store() writes it
      if constexpr (kind_of<A>() == ArgumentKind::fixed) {
        add(offsets.of[i], std::is_empty_v<A> ? std::span(zeros, 1) : std::as_bytes(std::span(&part, 1)));
      }
      if constexpr (is_view<A>) view_sizes.push_back(part.size());
      ++i;
    };
    if constexpr (!copies_prefix) {
      (add_fixed(parts), ...);
      if constexpr (counts != 0) add(offsets.counts, std::as_bytes(std::span(view_sizes).first(counts)));
    }
    if constexpr (fixed) add(fixed_bytes, {});

    [[maybe_unused]] auto add_view = [&]<class A>(const A& part) {
      if constexpr (is_view<A>) {
        using Element = typename ViewElement<A>::Type;
        add(base::align_up(end, alignof(Element)), std::as_bytes(std::span(part.data(), part.size())));
      }
    };
    (add_view(parts), ...);
    std::vector<std::byte> serialized;
    if constexpr (owning) {
      [[maybe_unused]] auto add_owning = [&]<class A>(const A& part) {
        if constexpr (kind_of<A>() == ArgumentKind::owning) {
          const std::size_t before = serialized.size();
          serialized.resize(before + serialized_bytes(part));
          serialize(serialized.data() + before, part);
        }
      };
      (add_owning(parts), ...);
      add(end, serialized);
    }
    return f(Pieces(pieces));
  }

 private:
  static inline __attribute__((always_inline)) void pack_prefix(std::byte* at, const Parts&... parts) {
    std::size_t i = 0, view = 0;
    [[maybe_unused]] auto put_fixed = [&]<class A>(const A& part) __attribute__((always_inline)) {
      if constexpr (kind_of<A>() == ArgumentKind::fixed) store(at + offsets.of[i], part);
      if constexpr (is_view<A>) {
        if (view < counts) {
          const std::uint64_t count = part.size();
          std::memcpy(at + offsets.counts + 8 * view, &count, 8);
        }
        ++view;
      }
      ++i;
    };
    (put_fixed(parts), ...);
  }

  template <class Part>
  using OwnedValue = std::conditional_t<kind_of<Part>() == ArgumentKind::owning, Part, std::monostate>;

 public:
  /// Objects that owning parts are read into, reused from message to message.
  using Scratch = std::tuple<OwnedValue<Parts>...>;

  /// Calls f(part...) with the message of `bytes` at `at`: fixed parts as const references into it, views as views of
  /// it, owning parts as references to `scratch`. `read`: first reads them into `scratch`. FormatError for an invalid
  /// message.
  template <bool read = true, class F>
  static inline __attribute__((always_inline)) void apply(const std::byte* at, std::size_t bytes, Scratch& scratch,
                                                          F&& f) {
    apply_indexed<read>(at, bytes, scratch, f, std::index_sequence_for<Parts...>());
  }

 private:
  /// Number of views before part i.
  template <std::size_t i>
  static constexpr std::size_t views_before() {
    std::size_t count = 0, n = 0;
    ((count += (n++ < i && kind_of<Parts>() == ArgumentKind::view) ? 1 : 0), ...);
    return count;
  }

  template <bool read, class F, std::size_t... i>
  static inline __attribute__((always_inline)) void apply_indexed(const std::byte* at, std::size_t bytes,
                                                                  Scratch& scratch, F& f, std::index_sequence<i...>) {
    if constexpr (fixed) {
      f(*reinterpret_cast<const Part<i>*>(at + offsets.of[i])...);
    } else {
      if (bytes < prefix_bytes) [[unlikely]]
        refuse_short_message(bytes, prefix_bytes);
      std::size_t end = prefix_bytes;
      std::tuple<decltype(find_view<i>(at, bytes, end))...> views_found{find_view<i>(at, bytes, end)...};
      if constexpr (owning && read) {
        ByteReader reader(at + end, at + bytes);
        (read_owning<i>(reader, scratch), ...);
        if (reader.remaining() != 0) [[unlikely]]
          refuse_long_message(bytes, bytes - reader.remaining());
      }
      f(found_part<i>(at, std::get<i>(views_found), scratch)...);
    }
  }

  template <std::size_t i>
  static inline __attribute__((always_inline)) auto find_view(const std::byte* at, std::size_t bytes,
                                                              std::size_t& end) {
    if constexpr (kind<i> != ArgumentKind::view) {
      return std::monostate{};
    } else {
      using Element = typename ViewElement<Part<i>>::Type;
      end = base::align_up(end, alignof(Element));
      if (end > bytes) [[unlikely]]
        refuse_short_message(bytes, end);
      std::size_t count = (bytes - end) / sizeof(Element);
      if constexpr (views_before<i>() < counts) {
        std::uint64_t stated;
        std::memcpy(&stated, at + offsets.counts + 8 * views_before<i>(), 8);
        if (stated > count) [[unlikely]]
          refuse_view_count(stated, count);
        count = stated;
      }
      const Element* data = reinterpret_cast<const Element*>(at + end);
      end += count * sizeof(Element);
      return Part<i>(data, count);
    }
  }

  template <std::size_t i>
  static void read_owning(ByteReader& reader, Scratch& scratch) {
    if constexpr (kind<i> == ArgumentKind::owning) deserialize(reader, std::get<i>(scratch));
  }

  template <std::size_t i, class View>
  static inline __attribute__((always_inline)) decltype(auto) found_part(const std::byte* at, View& view,
                                                                         Scratch& scratch) {
    if constexpr (kind<i> == ArgumentKind::fixed)
      return *reinterpret_cast<const Part<i>*>(at + offsets.of[i]);
    else if constexpr (kind<i> == ArgumentKind::view)
      return static_cast<Part<i>>(view);
    else
      return static_cast<const Part<i>&>(std::get<i>(scratch));
  }
};

}  // namespace headway::aggregate
