// SPDX-License-Identifier: BSD-3-Clause
/// The name of a Source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/argument.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/format_error.hpp>
#include <headway/rma/buffer_key.hpp>
#include <headway/transport/frame.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway {
namespace transfer {

/// A PE and bytes: the content of a short Source, or a key. It owns the bytes, or views them in a message.
class SourceContent {
 public:
  static constexpr std::size_t inside_bytes_max = 192;  // still fits a frame by value, with a few bytes more

  /// One word: a load of 8 bytes after two stores of 4 would wait until both have left the store buffer.
  struct Header {
    std::uint64_t word;

    static Header of(std::uint32_t pe, std::uint32_t bytes) { return {std::uint64_t(bytes) << 32 | pe}; }
    std::uint32_t pe() const { return std::uint32_t(word); }
    std::uint32_t bytes() const { return std::uint32_t(word >> 32); }  // of the content, or is_key
  };
  using MessageParts = aggregate::PartList<Header, std::span<const std::byte>>;
  static constexpr bool has_parts_ready = true;
  using Bytes = std::span<const std::byte>;

  SourceContent() = default;
  SourceContent(const SourceContent& other) : header_(other.header_) { keep(other.held()); }
  SourceContent(SourceContent&& other) noexcept : header_(other.header_) { take(other); }
  SourceContent& operator=(const SourceContent& other) {
    if (this == &other) return *this;
    header_ = other.header_;
    keep(other.held());
    return *this;
  }
  SourceContent& operator=(SourceContent&& other) noexcept {
    if (this == &other) return *this;
    header_ = other.header_;
    take(other);
    return *this;
  }
  ~SourceContent() = default;

  void hold(PeId pe, Bytes content) {
    header_ = Header::of(std::uint32_t(pe.value), std::uint32_t(content.size()));
    keep(content);
  }
  void hold(const rma::BufferKey& key) {
    header_ = Header::of(key.pe, is_key);
    keep(std::as_bytes(std::span(&key, 1)));
  }

  std::uint32_t pe() const { return header_.pe(); }
  bool is_short() const { return header_.bytes() != is_key; }
  Bytes content() const { return {at_, header_.bytes()}; }
  rma::BufferKey key() const {
    rma::BufferKey key;
    std::memcpy(&key, at_, sizeof key);
    return key;
  }

  template <class F>
  inline __attribute__((always_inline)) decltype(auto) with_message_parts(F&& f) const {
    return f(header_, held());
  }
  inline __attribute__((always_inline)) void view_message(const Header& header, Bytes held) {
    const std::size_t stated = header.bytes() == is_key ? sizeof(rma::BufferKey) : header.bytes();
    if (held.size() != stated) [[unlikely]]
      refuse(held.size(), stated);
    header_ = header;
    at_ = held.data();
  }
  template <class Archive>
  void serialize(Archive& archive) {
    std::vector<std::byte> bytes;
    if constexpr (!Archive::is_loading::value) bytes.assign(held().begin(), held().end());
    archive(header_, bytes);
    if constexpr (Archive::is_loading::value) {
      view_message(header_, bytes);
      keep(bytes);
    }
  }

 private:
  static constexpr std::uint32_t is_key = ~std::uint32_t(0);

  [[noreturn]] __attribute__((noinline, cold)) static void refuse(std::size_t bytes, std::size_t stated) {
    throw FormatError("a RemoteSource has " + std::to_string(bytes) + " bytes where its header states " +
                      std::to_string(stated));
  }

  Bytes held() const { return {at_, is_short() ? header_.bytes() : sizeof(rma::BufferKey)}; }
  void keep(Bytes bytes) {
    std::byte* to = inside_;
    if (bytes.size() > sizeof inside_) {
      heap_ = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
      to = heap_.get();
    }
    base::copy_short(to, bytes.data(), bytes.size());
    at_ = to;
  }
  void take(SourceContent& other) {
    if (other.heap_ == nullptr || other.at_ != other.heap_.get()) return keep(other.held());
    heap_ = std::move(other.heap_);
    at_ = heap_.get();
    other.header_ = {};
    other.at_ = nullptr;
  }

  Header header_{};
  const std::byte* at_ = nullptr;
  std::unique_ptr<std::byte[]> heap_;
  std::byte inside_[inside_bytes_max];
};

}  // namespace transfer

/// The name of a Source: an argument of messages and calls, which a program may keep and pass on. It holds the content
/// of a short Source.
template <class T>
class RemoteSource : public transfer::SourceContent {
 public:
  RemoteSource() {}  // NOLINT: with `= default`, {} would set all bytes to 0
  std::size_t size() const { return (is_short() ? content().size() : key().bytes) / sizeof(T); }
};

}  // namespace headway
