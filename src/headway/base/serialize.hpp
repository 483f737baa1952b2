// SPDX-License-Identifier: BSD-3-Clause
/// Serializes values for messages, elements and checkpoints. The bytes have no alignment. Their order is that of the
/// machine.
///
///   type                 bytes
///   bool                 0 or 1; the reader refuses other values
///   FixedSize            the bytes of the object, except for bool, optional and variant
///   string, containers   count, elements; packed bits for vector<bool>. If elements may take no bytes, zeros follow
///                        until the elements and the zeros have at least `count` bytes together.
///   optional             bool, value if true
///   variant              index + 1 (0: valueless), value
///   pair, tuple, aggregate, array, serialize()    the parts in order
///
/// So a container of `count` elements has at least `count` bytes, or count / 8 for vector<bool>. The reader refuses a
/// count for which too few bytes follow, before it claims memory.
///
/// Counts and indices are LEB128. The reader does not check bool, optional and variant inside a FixedSize aggregate.
#pragma once

#include <array>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/archive.hpp>
#include <headway/base/sendable.hpp>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace headway {
namespace detail {

// Copied as bytes without checks: FixedSize types, except those with invalid values that are refused.
template <class T>
consteval bool is_raw() {
  if constexpr (std::is_array_v<T>)
    return is_raw<std::remove_all_extents_t<T>>();
  else if constexpr (is_std_array<T>)
    return is_raw<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool> || is_a<T, std::optional> || is_a<T, std::variant>)
    return false;
  else if constexpr (TupleLike<T>)  // compilers differ on whether a pair with a const part is trivially copyable
    return false;
  else
    return FixedSize<T>;
}
template <class T>
concept Raw = is_raw<std::remove_cv_t<T>>();

template <class T>
concept BitVector =
    Sequence<T> && std::is_same_v<typename T::value_type, bool> && !std::is_same_v<typename T::reference, bool&>;
template <class T>
concept RawRange = Sequence<T> && Raw<typename T::value_type> && requires(T& c) {
  c.data();
};

template <class T>
consteval std::size_t bytes_min();

template <template <class...> class Template, class... Parts>
consteval std::size_t bytes_min_of_parts(const Template<Parts...>*) {
  return (bytes_min<std::remove_cv_t<Parts>>() + ... + std::size_t{0});
}
struct SumOfFields {
  template <class... Fields>
  std::integral_constant<std::size_t, (bytes_min<Fields>() + ... + std::size_t{0})> operator()(Fields&...) const {
    return {};
  }
};

// The smallest serialized length of any value of type T.
template <class T>
consteval std::size_t bytes_min() {
  if constexpr (Raw<T>)
    return sizeof(T);
  else if constexpr (std::is_array_v<T>)
    return std::extent_v<T> * bytes_min<std::remove_extent_t<T>>();
  else if constexpr (is_std_array<T>)
    return std::tuple_size_v<T> * bytes_min<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return 1;
  else if constexpr (HasSerialize<T>)
    return 0;
  else if constexpr (TupleLike<T>)
    return bytes_min_of_parts(static_cast<const T*>(nullptr));
  else if constexpr (Growable<T> || is_a<T, std::optional> || is_a<T, std::variant>)
    return 1;
  else
    return decltype(visit_fields(std::declval<T&>(), SumOfFields{}))::value;
}

template <class Sink, class T>
void put(Sink& sink, const T& value);

template <class Sink, class T>
void put_elements(Sink& sink, const T& values) {
  const std::size_t begin = sink.position();
  for (const auto& value : values) put(sink, value);
  if constexpr (bytes_min<typename T::value_type>() == 0) {
    const std::size_t bytes = sink.position() - begin;
    if (bytes < values.size()) sink.zeros(values.size() - bytes);
  }
}

template <class Sink, class T>
void put_bits(Sink& sink, const T& bits) {
  unsigned packed = 0;
  unsigned used = 0;
  for (const bool bit : bits) {
    packed |= static_cast<unsigned>(bit) << used;
    if (++used == CHAR_BIT) {
      sink.byte(static_cast<unsigned char>(packed));
      packed = used = 0;
    }
  }
  if (used > 0) sink.byte(static_cast<unsigned char>(packed));
}

template <class Sink, class T>
void put(Sink& sink, const T& value) {
  if constexpr (Raw<T> && std::is_empty_v<T>) {
    sink.zeros(sizeof(T));
  } else if constexpr (Raw<T>) {
    sink.raw(std::addressof(value), sizeof(T));
  } else if constexpr (std::is_array_v<T> || is_std_array<T>) {
    for (const auto& element : value) put(sink, element);
  } else if constexpr (std::is_same_v<T, bool>) {
    sink.byte(value ? 1 : 0);
  } else if constexpr (HasSerialize<T>) {
    if constexpr (requires { value.serialize(sink); })
      value.serialize(sink);
    else
      const_cast<T&>(value).serialize(sink);  // one function serves both directions; saving changes nothing
  } else if constexpr (TupleLike<T>) {
    std::apply([&sink](const auto&... part) { (put(sink, part), ...); }, value);
  } else if constexpr (is_a<T, std::optional>) {
    sink.byte(value.has_value() ? 1 : 0);
    if (value.has_value()) put(sink, *value);
  } else if constexpr (is_a<T, std::variant>) {
    sink.count(value.index() + 1);
    if (!value.valueless_by_exception()) std::visit([&sink](const auto& it) { put(sink, it); }, value);
  } else if constexpr (Growable<T>) {
    sink.count(value.size());
    if constexpr (BitVector<T>)
      put_bits(sink, value);
    else if constexpr (RawRange<T>)
      sink.row(value.data(), value.size() * sizeof(typename T::value_type));
    else
      put_elements(sink, value);
  } else {
    visit_fields(value, [&sink](const auto&... field) { (put(sink, field), ...); });
  }
}

template <class Sink, class T>
void put_field(Sink& sink, const T& field) {
  base::require_sendable<T>();
  if constexpr (Sendable<T>) put(sink, field);
}

template <class... Fields>
void ByteCounter::operator()(const Fields&... field) {
  (put_field(*this, field), ...);
}
template <class... Fields>
void ByteWriter::operator()(const Fields&... field) {
  (put_field(*this, field), ...);
}

template <class T>
void get(ByteReader& reader, T& out);

template <class T>
T make(ByteReader& reader) {
  if constexpr (std::is_default_constructible_v<T>) {
    T value{};
    get(reader, value);
    return value;
  } else {  // FixedSize: starts as zeros
    T value = std::bit_cast<T>(std::array<std::byte, sizeof(T)>{});
    get(reader, value);
    return value;
  }
}

// `out` may be a member of an object. Another member of that object may lie in the only byte of an empty `out`, or in
// the tail padding of an `out` that is not plain old data. memcpy() would change that member; assignment does not.
template <class T>
void get_raw(ByteReader& reader, T& out) {
  const std::byte* bytes = reader.take(sizeof(T));
  if constexpr (std::is_empty_v<T>) {
    return;
  } else if constexpr ((std::is_trivial_v<T> && std::is_standard_layout_v<T>) || !std::is_copy_assignable_v<T>) {
    std::memcpy(static_cast<void*>(std::addressof(out)), bytes, sizeof(T));
  } else {
    std::array<std::byte, sizeof(T)> copy;
    std::memcpy(copy.data(), bytes, sizeof(T));
    out = std::bit_cast<T>(copy);
  }
}

template <class T>
void get_bits(ByteReader& reader, T& out) {
  const std::uint64_t count = reader.number();
  const std::byte* bytes = reader.take(static_cast<std::size_t>(count / CHAR_BIT + (count % CHAR_BIT != 0 ? 1 : 0)));
  out.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = (std::to_integer<unsigned>(bytes[i / CHAR_BIT]) >> (i % CHAR_BIT) & 1) != 0;
  }
}

// Elements may take no bytes each, so memory is allocated while they are read.
template <class T>
void get_growing(ByteReader& reader, T& out, std::size_t count) {
  if (out.size() > count) out.resize(count);
  auto next = out.begin();
  for (std::size_t done = 0; done < count; ++done) {
    if (done == out.size()) {
      out.resize(count - done > done ? 2 * done + 1 : count);
      next = std::next(out.begin(), static_cast<std::ptrdiff_t>(done));
    }
    get(reader, *next++);
  }
}

template <class T>
void get_sequence(ByteReader& reader, T& out, std::size_t count) {
  using Element = typename T::value_type;
  constexpr std::size_t element_bytes_min = bytes_min<Element>();
  constexpr bool resizable = std::is_default_constructible_v<Element> && requires { out.resize(count); };
  if constexpr (RawRange<T> && sizeof(Element) == 1 && std::is_scalar_v<Element>) {
    const std::byte* bytes = reader.take(count);
    if constexpr (requires { static_cast<Element*>(out.data()); }) {
      if (out.size() == count) {  // the target holds memory of the right size
        return base::copy_received(reinterpret_cast<std::byte*>(out.data()), bytes, count);
      }
    }
    const auto* first = reinterpret_cast<const Element*>(bytes);
    out.assign(first, first + count);
  } else if constexpr (RawRange<T> && resizable) {
    const std::byte* bytes = reader.take(count * sizeof(Element));
    out.resize(count);
    if (count > 0) base::copy_bytes(reinterpret_cast<std::byte*>(out.data()), bytes, count * sizeof(Element));
  } else if constexpr (resizable && element_bytes_min == 0) {
    get_growing(reader, out, count);
  } else if constexpr (resizable) {
    out.resize(count);
    ByteReader::Promise promise(reader, count, element_bytes_min);
    for (auto& element : out) {
      promise.begin_element();
      get(reader, element);
    }
  } else {
    out.clear();
    for (std::size_t i = 0; i < count; ++i) out.push_back(make<Element>(reader));
  }
}

template <class T>
void get_associative(ByteReader& reader, T& out, std::size_t count) {
  constexpr std::size_t element_bytes_min = bytes_min<typename T::value_type>();
  out.clear();
  if constexpr (element_bytes_min != 0 && requires { out.reserve(count); }) out.reserve(count);
  ByteReader::Promise promise(reader, count, element_bytes_min);
  for (std::size_t i = 0; i < count; ++i) {
    promise.begin_element();
    auto key = make<typename T::key_type>(reader);
    if constexpr (MapLike<T>)
      out.emplace_hint(out.end(), std::move(key), make<typename T::mapped_type>(reader));
    else
      out.emplace_hint(out.end(), std::move(key));
  }
}

template <class T>
void get_container(ByteReader& reader, T& out) {
  constexpr std::size_t element_bytes_min = bytes_min<typename T::value_type>();
  const std::size_t count = reader.count(element_bytes_min);
  const std::byte* begin = reader.position();
  if constexpr (Associative<T>)
    get_associative(reader, out, count);
  else
    get_sequence(reader, out, count);
  if constexpr (element_bytes_min == 0) {
    const auto bytes = static_cast<std::size_t>(reader.position() - begin);
    if (bytes < count) reader.take(count - bytes);
  }
}

template <std::size_t i, class T>
void get_alternative(ByteReader& reader, T& out) {
  if (out.index() == i)
    get(reader, *std::get_if<i>(&out));
  else
    out.template emplace<i>(make<std::variant_alternative_t<i, T>>(reader));
}

template <class T>
void get_variant(ByteReader& reader, T& out) {
  const std::uint64_t index = reader.number();
  const bool found = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return ((index == i + 1 && (get_alternative<i>(reader, out), true)) || ...);
  }
  (std::make_index_sequence<std::variant_size_v<T>>());
  if (!found) ByteReader::fail("a variant has no alternative number ", index);
}

template <class T>
void get(ByteReader& reader, T& out) {
  if constexpr (Raw<T>) {
    get_raw(reader, out);
  } else if constexpr (std::is_array_v<T> || is_std_array<T>) {
    for (auto& element : out) get(reader, element);
  } else if constexpr (std::is_same_v<T, bool>) {
    out = reader.boolean();
  } else if constexpr (HasSerialize<T>) {
    const ByteReader::Nesting nesting(reader);
    out.serialize(reader);
  } else if constexpr (TupleLike<T>) {
    std::apply([&reader](auto&... part) { (get(reader, part), ...); }, out);
  } else if constexpr (is_a<T, std::optional>) {
    if (!reader.boolean())
      out.reset();
    else if (out.has_value())
      get(reader, *out);
    else
      out.emplace(make<typename T::value_type>(reader));
  } else if constexpr (is_a<T, std::variant>) {
    get_variant(reader, out);
  } else if constexpr (BitVector<T>) {
    get_bits(reader, out);
  } else if constexpr (Growable<T>) {
    get_container(reader, out);
  } else {
    const ByteReader::Nesting nesting(reader);
    visit_fields(out, [&reader](auto&... field) { (get(reader, field), ...); });
  }
}

}  // namespace detail

template <class... Fields>
void ByteReader::operator()(Fields&... field) {
  const auto read = [this]<class T>(T& out) {
    base::require_sendable<T>();
    if constexpr (Sendable<T>) detail::get(*this, out);
  };
  (read(field), ...);
}

/// The exact number of bytes that serialize() writes for `value`.
template <class T>
[[nodiscard]] std::size_t serialized_bytes(const T& value) {
  detail::ByteCounter counter;
  counter(value);
  return counter.position();
}

/// Writes `value` to the serialized_bytes(value) bytes at `out`, with any alignment; returns their end. `more_follows`:
/// the caller will write more messages behind this one in the same frame, as for copy_short().
template <class T>
std::byte* serialize(std::byte* out, const T& value, bool more_follows = false) {
  detail::ByteWriter writer(out, more_follows);
  writer(value);
  return writer.end();
}

/// Reads a T that serialize() has written into `out`, and reuses the memory of `out` if possible. Throws FormatError
/// for bytes that are no T; `out` is then valid but unspecified. Allocates memory for at most as many elements as the
/// remaining bytes can hold if each has its smallest serialized length.
template <class T>
void deserialize(ByteReader& reader, T& out) {
  reader(out);
}

/// Reads into a new value.
template <class T>
[[nodiscard]] T deserialize(ByteReader& reader) {
  base::require_sendable<T>();
  if constexpr (Sendable<T>) return detail::make<T>(reader);
}

}  // namespace headway
