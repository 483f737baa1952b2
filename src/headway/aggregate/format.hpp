/// How the arguments of one message lie in its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/reflect.hpp>
#include <headway/base/sendable.hpp>
#include <headway/base/serialize.hpp>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// The three ways in which an argument travels.
enum class ArgumentKind {
  fixed,   // its bytes, aligned, read in place
  view,    // span<const T>, string_view: their content, aligned, read in place
  owning,  // serialized
};

template <class Arg>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<std::span<T>> = true;
template <>
inline constexpr bool is_view<std::string_view> = true;

template <class Arg>
struct ViewElement;
template <class T>
struct ViewElement<std::span<T>> {
  using Type = std::remove_const_t<T>;
};
template <>
struct ViewElement<std::string_view> {
  using Type = char;
};

/// What a vector's content may be copied as.
template <class T>
inline constexpr bool is_row_element =
    detail::Raw<T> && !std::is_empty_v<T> && std::is_default_constructible_v<T> && std::is_copy_constructible_v<T> &&
    std::is_copy_assignable_v<T> && alignof(T) <= 64;
/// A vector or string of such: it is sent as a view of its content, and copied into an object of the receiver's.
template <class Arg>
inline constexpr bool is_row = false;
template <class T, class Allocator>
inline constexpr bool is_row<std::vector<T, Allocator>> = is_row_element<T>;
template <class T, class Traits, class Allocator>
inline constexpr bool is_row<std::basic_string<T, Traits, Allocator>> = is_row_element<T>;

template <class Arg>
struct Sent {
  using Type = Arg;
};
template <class Arg>
requires is_row<Arg>
struct Sent<Arg> {
  using Type = std::span<const typename Arg::value_type>;
};
/// What an argument is sent as.
template <class Arg>
using SentAs = typename Sent<Arg>::Type;
template <class Arg>
inline __attribute__((always_inline)) decltype(auto) as_sent(const Arg& arg) {
  if constexpr (is_row<Arg>)
    return SentAs<Arg>(arg);
  else
    return (arg);
}

/// Objects are reused: most rows have the length of the one before.
template <class Row>
inline __attribute__((always_inline)) void assign(Row& row, SentAs<Row> elements) {
  if (row.size() != elements.size()) [[unlikely]] {
    row.assign(elements.begin(), elements.end());
  } else {
    copy_received(reinterpret_cast<std::byte*>(row.data()), reinterpret_cast<const std::byte*>(elements.data()),
                  elements.size_bytes());
  }
}

template <class Arg>
constexpr ArgumentKind kind_of() {
  if constexpr (is_view<Arg>)
    return ArgumentKind::view;
  else
    return FixedSize<Arg> ? ArgumentKind::fixed : ArgumentKind::owning;
}

/// Refuses what may not be an argument, with one line of compile error. Returns whether it may.
template <class Arg>
constexpr bool require_argument() {
  if constexpr (!std::is_same_v<Arg, std::remove_cvref_t<Arg>>) {
    static_assert(std::is_same_v<Arg, std::remove_cvref_t<Arg>>,
                  "headway: write the types of a message without const and &");
    return false;
  } else if constexpr (std::is_array_v<Arg>) {
    static_assert(
        !std::is_array_v<Arg>,
        "headway: an array is no argument of a message: use std::array, or std::span<const T> for its content");
    return false;
  } else if constexpr (is_view<Arg>) {
    using Element = typename ViewElement<Arg>::Type;
    static_assert(
        FixedSize<Element>,
        "headway: a span as an argument stands for its content, which must be trivially copyable and carry no "
        "address");
    if constexpr (FixedSize<Element>) {
      constexpr bool read_only = std::is_const_v<std::remove_pointer_t<decltype(std::declval<Arg>().data())>>;
      static_assert(read_only, "headway: a span as an argument is read in place: write std::span<const T>");
      return read_only;
    }
    return false;
  } else {
    require_sendable<Arg>();
    return Sendable<Arg>;
  }
}

/// Numbers, all of whose bytes are their value, whatever it is.
template <class T>
inline constexpr bool is_plain_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;
template <class T>
inline constexpr bool is_word_array = false;  // a short one of words
template <class T, std::size_t n>
inline constexpr bool is_word_array<std::array<T, n>> = is_plain_number<T> && sizeof(T) == 8 && n <= 16;

/// Stores a value field by field, so that the compiler builds it in the frame instead of copying it from the stack: a
/// struct written in small pieces and read in large ones stalls the processor. Scalars are stored as what they are, so
/// that the compiler knows that the aggregator's own pointers are not changed by it.
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
        // an empty one may share its place with another
        if constexpr (!std::is_empty_v<Field>) {
          store(at + (reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&value)), field);
        }
      });
      return;
    }
  }
  copy_fixed<sizeof(T)>(at, reinterpret_cast<const std::byte*>(&value));
}

/// How an argument is passed on to a function that is not inlined: small ones by value.
template <class Arg>
using Kept =
    std::conditional_t<(is_view<Arg> || (std::is_trivially_copyable_v<Arg> && sizeof(Arg) <= 16)), Arg, const Arg&>;
template <class Arg>
inline __attribute__((always_inline)) Kept<Arg> keep_in_register(const Arg& arg) {
  return arg;
}

/// The bytes of a message with these arguments:
///
///   | fixed arguments, each aligned | counts of the views but the last part | views, each aligned | owning ones |
///
/// The number of elements of the last part follows from the message's length. All offsets up to the first view are
/// compile-time constants.
template <class... Args>
struct MessageFormat {
  static constexpr std::size_t arguments = sizeof...(Args);
  using Tuple = std::tuple<Args...>;
  template <std::size_t i>
  using Arg = std::tuple_element_t<i, Tuple>;
  template <std::size_t i>
  static constexpr ArgumentKind kind = kind_of<SentAs<Arg<i>>>();

  static constexpr std::size_t views = (std::size_t(kind_of<SentAs<Args>>() == ArgumentKind::view) + ... + 0);
  static constexpr bool owning = ((kind_of<SentAs<Args>>() == ArgumentKind::owning) || ...);
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
  static constexpr std::size_t alignment =
      max_of({alignment_of<SentAs<Args>>()..., counts != 0 ? alignof(std::uint64_t) : 1});
  static_assert(alignment <= 64, "headway: a type aligned to more than 64 bytes cannot be sent");

 private:
  struct Offsets {
    std::array<std::size_t, arguments + 1> of{};  // of fixed arguments
    std::size_t counts = 0;
    std::size_t end = 0;
  };
  static constexpr Offsets offsets = [] {
    Offsets result;
    std::size_t at = 0, i = 0;
    [[maybe_unused]] auto place = [&]<class A>(std::type_identity<A>) {
      if constexpr (kind_of<A>() == ArgumentKind::fixed) {
        at = align_up(at, alignof(A));
        result.of[i] = at;
        at += sizeof(A);
      }
      ++i;
    };
    (place(std::type_identity<SentAs<Args>>{}), ...);
    if (counts != 0) {
      at = align_up(at, alignof(std::uint64_t));
      result.counts = at;
      at += counts * sizeof(std::uint64_t);
    }
    result.end = at;
    return result;
  }();

 public:
  /// Bytes before the first view; all of them for a message of fixed size.
  static constexpr std::size_t prefix_bytes = offsets.end;
  /// Of one message of fixed size, padding included; at least 1, so that messages can be counted.
  static constexpr std::size_t fixed_bytes = align_up(prefix_bytes == 0 ? 1 : prefix_bytes, alignment);

  /// Every length is a multiple of the alignment: no padding between messages.
  static constexpr bool lengths_are_aligned = [] {
    std::size_t last = 0;
    ((last = is_view<SentAs<Args>> ? alignment_of<SentAs<Args>>() : last), ...);
    return fixed || (!owning && last == alignment);
  }();
  static constexpr std::size_t padded(std::size_t bytes) {
    return lengths_are_aligned ? bytes : align_up(bytes, alignment);
  }

  /// Length of a message without padding behind it.
  static std::size_t bytes(const Args&... args) {
    std::size_t at = prefix_bytes;
    [[maybe_unused]] auto add_view = [&]<class A>(const A& arg) {
      if constexpr (is_view<A>) {
        using Element = typename ViewElement<A>::Type;
        at = align_up(at, alignof(Element)) + arg.size() * sizeof(Element);
      }
    };
    (add_view(as_sent(args)), ...);
    if constexpr (owning) {
      [[maybe_unused]] auto add_owning = [&]<class A>(const A& arg) {
        if constexpr (kind_of<A>() == ArgumentKind::owning) at += serialized_bytes(arg);
      };
      (add_owning(as_sent(args)), ...);
    }
    return at;
  }

  /// Writes the message, which takes bytes(args...), to `at`, aligned to `alignment`.
  static inline __attribute__((always_inline)) void pack(std::byte* at, const Args&... args) {
    pack_prefix(at, args...);
    if constexpr (!fixed) {
      std::byte* end = at + prefix_bytes;
      [[maybe_unused]] auto put_view = [&]<class A>(const A& arg) __attribute__((always_inline)) {
        if constexpr (is_view<A>) {
          using Element = typename ViewElement<A>::Type;
          end = at + align_up(std::size_t(end - at), alignof(Element));
          const std::size_t size = arg.size() * sizeof(Element);
          copy_short<true>(end, reinterpret_cast<const std::byte*>(arg.data()), size);
          end += size;
        }
      };
      (put_view(as_sent(args)), ...);
      if constexpr (owning) {
        [[maybe_unused]] auto put_owning = [&]<class A>(const A& arg) {
          if constexpr (kind_of<A>() == ArgumentKind::owning) end = serialize(end, arg);
        };
        (put_owning(as_sent(args)), ...);
      }
    }
  }

  /// The message in pieces, for one that is too large to be packed in one place. Views stay where they are.
  struct Pieces {
    alignas(64) std::byte prefix[prefix_bytes + 1];
    std::vector<std::byte> serialized;
    std::vector<std::span<const std::byte>> parts;
  };
  static void split(Pieces& pieces, const Args&... args) {
    static constexpr std::byte zeros[64]{};
    pack_prefix(pieces.prefix, args...);
    pieces.parts.push_back(std::span(pieces.prefix, prefix_bytes));
    std::size_t at = prefix_bytes;
    [[maybe_unused]] auto add_view = [&]<class A>(const A& arg) {
      if constexpr (is_view<A>) {
        using Element = typename ViewElement<A>::Type;
        const std::size_t padding = align_up(at, alignof(Element)) - at;
        pieces.parts.push_back(std::span(zeros, padding));
        pieces.parts.push_back(std::as_bytes(std::span(arg.data(), arg.size())));
        at += padding + arg.size() * sizeof(Element);
      }
    };
    (add_view(as_sent(args)), ...);
    if constexpr (owning) {
      [[maybe_unused]] auto add_owning = [&]<class A>(const A& arg) {
        if constexpr (kind_of<A>() == ArgumentKind::owning) {
          const std::size_t before = pieces.serialized.size();
          pieces.serialized.resize(before + serialized_bytes(arg));
          serialize(pieces.serialized.data() + before, arg);
        }
      };
      (add_owning(as_sent(args)), ...);
      pieces.parts.push_back(pieces.serialized);
    }
  }

 private:
  static inline __attribute__((always_inline)) void pack_prefix(std::byte* at, const Args&... args) {
    std::size_t i = 0, view = 0;
    [[maybe_unused]] auto put_fixed = [&]<class A>(const A& arg) __attribute__((always_inline)) {
      if constexpr (kind_of<A>() == ArgumentKind::fixed) store(at + offsets.of[i], arg);
      if constexpr (is_view<A>) {
        if (view < counts) {
          const std::uint64_t count = arg.size();
          std::memcpy(at + offsets.counts + 8 * view, &count, 8);
        }
        ++view;
      }
      ++i;
    };
    (put_fixed(as_sent(args)), ...);
  }

  template <class Arg>
  using OwnedValue =
      std::conditional_t<is_row<Arg> || kind_of<SentAs<Arg>>() == ArgumentKind::owning, Arg, std::monostate>;

 public:
  /// Objects that owning arguments and rows are read into, reused from message to message.
  using Scratch = std::tuple<OwnedValue<Args>...>;
  static constexpr bool has_objects = owning || (is_row<Args> || ...);

  /// Calls f(argument...) with the message at `at`, of `bytes` bytes: fixed ones as const references into it, views as
  /// views of it, owning ones as references to `scratch`, which they are read into, or (not `read`) have been. Throws
  /// FormatError where the bytes cannot be such a message.
  template <bool read = true, class F>
  static inline __attribute__((always_inline)) void apply(const std::byte* at, std::size_t bytes, Scratch& scratch,
                                                          F&& f) {
    apply_indexed<read>(at, bytes, scratch, f, std::index_sequence_for<Args...>());
  }

 private:
  /// Number of views before argument i.
  template <std::size_t i>
  static constexpr std::size_t views_before() {
    std::size_t count = 0, n = 0;
    ((count += (n++ < i && kind_of<SentAs<Args>>() == ArgumentKind::view) ? 1 : 0), ...);
    return count;
  }

  template <bool read, class F, std::size_t... i>
  static inline __attribute__((always_inline)) void apply_indexed(const std::byte* at, std::size_t bytes,
                                                                  Scratch& scratch, F& f, std::index_sequence<i...>) {
    if constexpr (fixed) {
      f(*reinterpret_cast<const Arg<i>*>(at + offsets.of[i])...);
    } else {
      if (bytes < prefix_bytes) [[unlikely]]
        throw FormatError("a message is shorter than its fixed arguments");
      std::size_t end = prefix_bytes;
      std::tuple<decltype(find_view<i>(at, bytes, end))...> views_found{find_view<i>(at, bytes, end)...};
      if constexpr (owning && read) {
        ByteReader reader(at + end, at + bytes);
        (read_owning<i>(reader, scratch), ...);
        if (reader.remaining() != 0) [[unlikely]]
          throw FormatError("a message is longer than its arguments");
      }
      if constexpr (read) (assign_row<i>(std::get<i>(views_found), scratch), ...);
      f(argument<i>(at, std::get<i>(views_found), scratch)...);
    }
  }

  template <std::size_t i>
  static inline __attribute__((always_inline)) auto find_view(const std::byte* at, std::size_t bytes,
                                                              std::size_t& end) {
    if constexpr (kind<i> != ArgumentKind::view) {
      return std::monostate{};
    } else {
      using Element = typename ViewElement<SentAs<Arg<i>>>::Type;
      end = align_up(end, alignof(Element));
      if (end > bytes) [[unlikely]]
        throw FormatError("a message is shorter than its arguments");
      std::size_t count = (bytes - end) / sizeof(Element);
      if constexpr (views_before<i>() < counts) {
        std::uint64_t stated;
        std::memcpy(&stated, at + offsets.counts + 8 * views_before<i>(), 8);
        if (stated > count) [[unlikely]]
          throw FormatError("a view's count exceeds its message");
        count = stated;
      }
      const Element* data = reinterpret_cast<const Element*>(at + end);
      end += count * sizeof(Element);
      return SentAs<Arg<i>>(data, count);
    }
  }

  template <std::size_t i>
  static void read_owning(ByteReader& reader, Scratch& scratch) {
    if constexpr (kind<i> == ArgumentKind::owning) deserialize(reader, std::get<i>(scratch));
  }

  template <std::size_t i, class View>
  static inline __attribute__((always_inline)) void assign_row(View& view, Scratch& scratch) {
    if constexpr (is_row<Arg<i>>) assign(std::get<i>(scratch), view);
  }

  template <std::size_t i, class View>
  static inline __attribute__((always_inline)) decltype(auto) argument(const std::byte* at, View& view,
                                                                       Scratch& scratch) {
    if constexpr (kind<i> == ArgumentKind::fixed)
      return *reinterpret_cast<const Arg<i>*>(at + offsets.of[i]);
    else if constexpr (kind<i> == ArgumentKind::view && !is_row<Arg<i>>)
      return static_cast<Arg<i>>(view);
    else
      return static_cast<const Arg<i>&>(std::get<i>(scratch));
  }
};

}  // namespace headway::aggregate
