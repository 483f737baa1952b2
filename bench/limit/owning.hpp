// SPDX-License-Identifier: BSD-3-Clause
/// Messages that are objects with memory of their own, as types `vector` and `struct` of Headway's benchmarks: a sender
/// stamps its object and writes lengths and content into the buffer; a receiver reads each message into an object that
/// it keeps, and gives that to the handler. Copies read and write the content and no byte more, since the bytes behind
/// it may belong to another object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "comparison.hpp"
#include "deliver.hpp"
#include "messages.hpp"
#include "processor.hpp"
#include "send.hpp"

namespace headway::limit {

// Copies of at least 8 bytes. Content that was just written in words is read in words: a wider load would wait until
// the words have left the store buffer. All work for a message must be inlined into the loop: the compiler, left to
// itself, makes calls of it where there are several loops, which took 1.1 times as long.

// NOLINTBEGIN(misc-const-correctness): the empty asm of each copy writes its words

/// In words; the last one may overlap the word before.
struct CopyWords {
  static constexpr const char* name = "words";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    Word last = load(from + bytes - word_bytes);
    asm("" : "+r"(last));
    for (std::size_t i = 0; i + word_bytes < bytes; i += word_bytes) {
      Word word = load(from + i);
      asm("" : "+r"(word));
      store(to + i, word);
    }
    store(to + bytes - word_bytes, last);
  }
};

/// The same, by branches up to 32 bytes.
struct CopyBranches {
  static constexpr const char* name = "branches";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 32) return CopyWords::copy(to, from, bytes);
    const auto word = [&](std::size_t at) {
      Word value = load(from + at);
      asm("" : "+r"(value));
      store(to + at, value);
    };
    Word last = load(from + bytes - word_bytes);
    asm("" : "+r"(last));
    if (bytes > 8) word(0);
    if (bytes > 16) word(8);
    if (bytes > 24) word(16);
    store(to + bytes - word_bytes, last);
  }
};

inline void copy_piece(std::byte* to, const std::byte* from) {
  Wide piece;
  std::memcpy(&piece, from, sizeof piece);
  forget_source(piece);
  std::memcpy(to, &piece, sizeof piece);
}

/// Both ends in words, in wide pieces between.
struct CopyEnds {
  static constexpr const char* name = "ends";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes < 32) return CopyBranches::copy(to, from, bytes);
    Word first = load(from), last = load(from + bytes - word_bytes);
    asm("" : "+r"(first), "+r"(last));
    store(to, first);
    std::size_t i = word_bytes;
    for (; i + sizeof(Wide) < bytes - word_bytes; i += sizeof(Wide)) copy_piece(to + i, from + i);
    copy_piece(to + bytes - word_bytes - sizeof(Wide), from + bytes - word_bytes - sizeof(Wide));
    store(to + bytes - word_bytes, last);
  }
};

/// Both ends in words, by the C library between.
struct CopyEndsLibc {
  static constexpr const char* name = "ends, libc";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes < 32) return CopyBranches::copy(to, from, bytes);
    Word first = load(from), last = load(from + bytes - word_bytes);
    asm("" : "+r"(first), "+r"(last));
    store(to, first);
    copy_libc(to + word_bytes, from + word_bytes, bytes - 2 * word_bytes);
    store(to + bytes - word_bytes, last);
  }
};

// NOLINTEND(misc-const-correctness)

struct CopyLibc {
  static constexpr const char* name = "libc";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    copy_libc(to, from, bytes);
  }
};

/// In wide pieces, for what another processor has written.
struct CopyWide {
  static constexpr const char* name = "wide";
  [[gnu::always_inline]] static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes < sizeof(Wide)) return CopyBranches::copy(to, from, bytes);
    for (std::size_t i = 0; i + sizeof(Wide) < bytes; i += sizeof(Wide)) copy_piece(to + i, from + i);
    copy_piece(to + bytes - sizeof(Wide), from + bytes - sizeof(Wide));
  }
};

// Setting a vector or a string from bytes. Memory is kept from message to message.

template <class Copy>
struct Resized {
  static constexpr const char* name = Copy::name;
  template <class Content>
  [[gnu::always_inline]] static void set(Content& content, const std::byte* from, std::size_t bytes) {
    if (content.size() != bytes) [[unlikely]]
      content.resize(bytes);
    Copy::copy(reinterpret_cast<std::byte*>(content.data()), from, bytes);
  }
};
struct Assigned {
  static constexpr const char* name = "assign";
  template <class Content>
  [[gnu::always_inline]] static void set(Content& content, const std::byte* from, std::size_t bytes) {
    const auto* const begin = reinterpret_cast<const typename Content::value_type*>(from);
    content.assign(begin, begin + bytes);
  }
};

// Types of objects.

struct VectorType {
  using Object = std::vector<std::byte>;
  using Lengths = std::uint32_t;

  static Object make(const std::byte* content, std::size_t bytes) { return Object(content, content + bytes); }
  static std::size_t bytes(Lengths lengths) { return lengths; }
  [[gnu::always_inline]] static void stamp(Object& object, Word number) {
    std::byte* const content = object.data();
    const std::size_t bytes = object.size();
    limit::stamp(content, bytes, number);
  }

  /// The object's address and size, held by registers.
  struct View {
    const std::byte* content;
    std::size_t size;
    explicit View(const Object& object) : content(object.data()), size(object.size()) {}
    Lengths lengths() const { return Lengths(size); }
    std::size_t bytes() const { return size; }
    template <class Copy>
    [[gnu::always_inline]] void write(std::byte* to) const {
      Copy::copy(to, content, size);
    }
  };
  template <class Set>
  [[gnu::always_inline]] static void read(Object& object, const std::byte* from, Lengths lengths) {
    Set::set(object, from, lengths);
  }
  static Word first(const Object& object) { return load(object.data()); }
  static Word last(const Object& object) {
    const std::size_t bytes = object.size();
    return load(object.data() + (bytes >= 2 * word_bytes ? bytes - word_bytes : 0));
  }
  static std::vector<std::byte> content(const Object& object) { return object; }
};

/// The first half of the bytes is a vector, the others a string.
struct PartsType {
  struct Object {
    std::vector<std::byte> front;
    std::string back;
  };
  struct Lengths {
    std::uint32_t front, back;
  };

  static Object make(const std::byte* content, std::size_t bytes) {
    const char* const characters = reinterpret_cast<const char*>(content);
    return {{content, content + bytes / 2}, {characters + bytes / 2, characters + bytes}};
  }
  static std::size_t bytes(Lengths lengths) { return std::size_t(lengths.front) + lengths.back; }
  [[gnu::always_inline]] static void stamp(Object& object, Word number) {
    std::byte* const back = reinterpret_cast<std::byte*>(object.back.data());
    const std::size_t back_bytes = object.back.size();
    store(object.front.data(), number);
    store(back + back_bytes - word_bytes, ~number);
  }

  struct View {
    const std::byte *front, *back;
    std::size_t front_bytes, back_bytes;
    explicit View(const Object& object)
        : front(object.front.data()),
          back(reinterpret_cast<const std::byte*>(object.back.data())),
          front_bytes(object.front.size()),
          back_bytes(object.back.size()) {}
    Lengths lengths() const { return {std::uint32_t(front_bytes), std::uint32_t(back_bytes)}; }
    std::size_t bytes() const { return front_bytes + back_bytes; }
    template <class Copy>
    [[gnu::always_inline]] void write(std::byte* to) const {
      Copy::copy(to, front, front_bytes);
      Copy::copy(to + front_bytes, back, back_bytes);
    }
  };
  template <class Set>
  [[gnu::always_inline]] static void read(Object& object, const std::byte* from, Lengths lengths) {
    Set::set(object.front, from, lengths.front);
    Set::set(object.back, from + lengths.front, lengths.back);
  }
  static Word first(const Object& object) { return load(object.front.data()); }
  static Word last(const Object& object) {
    return load(reinterpret_cast<const std::byte*>(object.back.data()) + object.back.size() - word_bytes);
  }
  static std::vector<std::byte> content(const Object& object) {
    std::vector<std::byte> all = object.front;
    for (const char character : object.back) all.push_back(std::byte(character));
    return all;
  }
};

/// The objects that a receiver reads all its messages into.
struct OwnedObjects {
  VectorType::Object vector;
  PartsType::Object parts;

  template <class Type>
  auto& of() {
    if constexpr (std::is_same_v<Type, VectorType>) {
      return vector;
    } else {
      return parts;
    }
  }
};

// Where lengths lie. Messages lie without gaps.

template <class Type>
struct BeforeEach {
  static constexpr const char* name = "length before";
  using Lengths = typename Type::Lengths;
  static constexpr std::size_t needed(std::size_t bytes) { return sizeof(Lengths) + bytes; }
  /// Puts lengths; returns where the content goes.
  static std::byte* put(Cursor& cursor, Lengths lengths, std::size_t bytes) {
    std::memcpy(cursor.at, &lengths, sizeof lengths);
    std::byte* const content = cursor.at + sizeof lengths;
    cursor.at = content + bytes;
    return content;
  }

  const std::byte* at;
  BeforeEach(const std::byte* buffer, std::size_t /*buffer_bytes*/) : at(buffer) {}
  Lengths lengths() const {
    Lengths lengths;
    std::memcpy(&lengths, at, sizeof lengths);
    return lengths;
  }
  const std::byte* content() const { return at + sizeof(Lengths); }
  void step(Lengths lengths) { at += needed(Type::bytes(lengths)); }
};

template <class Type>
struct AtEnd {
  static constexpr const char* name = "lengths at end";
  using Lengths = typename Type::Lengths;
  static constexpr std::size_t needed(std::size_t bytes) { return sizeof(Lengths) + bytes; }
  static std::byte* put(Cursor& cursor, Lengths lengths, std::size_t bytes) {
    cursor.limit -= sizeof lengths;
    std::memcpy(cursor.limit, &lengths, sizeof lengths);
    std::byte* const content = cursor.at;
    cursor.at = content + bytes;
    return content;
  }

  const std::byte* at;
  const std::byte* length;
  AtEnd(const std::byte* buffer, std::size_t buffer_bytes)
      : at(buffer), length(buffer + buffer_bytes - sizeof(Lengths)) {}
  Lengths lengths() const {
    Lengths lengths;
    std::memcpy(&lengths, length, sizeof lengths);
    return lengths;
  }
  const std::byte* content() const { return at; }
  void step(Lengths lengths) {
    at += Type::bytes(lengths);
    length -= sizeof(Lengths);
  }
};

/// Stands for a program that does anything with an object: here the compiler has written its lengths and its content to
/// memory, and knows neither from here on.
template <class Object>
void out_of_hand(const Object& object) {
  asm volatile("" : : "r"(&object) : "memory");
}

// Sending.

template <class Type, template <class> class Where, class Copy>
struct SendOwning {
  using Walk = Where<Type>;

  /// Writes the object at the cursor; turn_over() gets an empty buffer where it does not fit.
  template <class TurnOver>
  [[gnu::always_inline]] static void write(typename Type::Object& object, Word number, Cursor& cursor,
                                           TurnOver turn_over) {
    Type::stamp(object, number);
    out_of_hand(object);
    const typename Type::View view(object);
    if (cursor.at + Walk::needed(view.bytes()) > cursor.limit) [[unlikely]]
      turn_over();
    view.template write<Copy>(Walk::put(cursor, view.lengths(), view.bytes()));
  }

  template <class Numbers, class Target>
  static void all(Exchange& exchange, typename Type::Object& object, Numbers numbers, Target target,
                  std::uint64_t messages) {
    Cursor* const cursors = exchange.cursors();
    for (std::uint64_t i = 0; i < messages; ++i) {
      const Word number = numbers.next();
      const std::size_t to = target(number);
      write(object, number, cursors[to], [&] { exchange.turn_over(to); });
    }
  }
  /// To one target; registers hold its cursor.
  template <class Numbers>
  static void all(Exchange& exchange, typename Type::Object& object, Numbers numbers, Always target,
                  std::uint64_t messages) {
    Cursor& kept = exchange.cursors()[target.pe];
    Cursor cursor = kept;
    for (std::uint64_t i = 0; i < messages; ++i) {
      write(object, numbers.next(), cursor, [&] {
        kept = cursor;
        exchange.turn_over(target.pe);
        cursor = kept;
      });
      asm("" : "+r"(cursor.at), "+r"(cursor.limit));  // a register each: else both become halves of a wide one
    }
    kept = cursor;
  }

  static void send(Exchange& exchange, const Sending& sending, std::uint64_t messages) {
    typename Type::Object object = Type::make(sending.prepared, sending.bytes);
    sending.traffic.with_numbers_of(
        sending.source, [&](auto numbers, auto target) { all(exchange, object, numbers, target, messages); });
  }
};

// Delivering.

template <class Type, class Walk, class Set>
struct DeliverOwning {
  using Object = typename Type::Object;
  static constexpr std::size_t ahead = 64;  // messages

  /// The handler; it works on the object, not on the buffer.
  template <class Apply>
  [[gnu::always_inline]] static void handle(const Object& object, Apply& apply, const Receiver& receiver) {
    out_of_hand(object);
    if constexpr (std::is_same_v<Apply, Compare>) {
      const std::vector<std::byte> content = Type::content(object);
      receiver.comparison->take(content.data(), content.size(), receiver.source);
    } else {
      apply(Type::first(object), Type::last(object));
    }
  }

  template <class Apply>
  static std::uint64_t one_by_one(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    const std::byte* const end = messages + bytes;
    Object& object = receiver.objects->of<Type>();
    for (Walk walk(messages, receiver.buffer_bytes); walk.at != end; ++count) {
      const auto lengths = walk.lengths();
      Type::template read<Set>(object, walk.content(), lengths);
      walk.step(lengths);
      handle(object, apply, receiver);
    }
    receiver.as<Apply>() = apply;
    return count;
  }

  /// What later ones update is asked for first.
  template <class Apply>
  static std::uint64_t prefetching(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    const std::byte* const end = messages + bytes;
    Object& object = receiver.objects->of<Type>();
    Walk walk(messages, receiver.buffer_bytes);
    while (walk.at != end) {
      Walk later = walk;
      std::size_t block = 0;
      for (; block < ahead && later.at != end; ++block) {
        if constexpr (!std::is_same_v<Apply, Compare>) apply.prefetch(load(later.content()));
        later.step(later.lengths());
      }
      for (std::size_t i = 0; i < block; ++i) {
        const auto lengths = walk.lengths();
        Type::template read<Set>(object, walk.content(), lengths);
        walk.step(lengths);
        handle(object, apply, receiver);
      }
      count += block;
    }
    receiver.as<Apply>() = apply;
    return count;
  }
};

}  // namespace headway::limit
