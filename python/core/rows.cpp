// SPDX-License-Identifier: BSD-3-Clause
/// Rows of columns that move to other PEs: headway.shuffle and the functions above it.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "bytes.hpp"
#include "run.hpp"

namespace headway::python {
namespace {

using Ids = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// The finalizer of SplitMix64: neighbouring keys go to PEs that are independent of each other.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
std::uint64_t mixed(const std::uint8_t* at, std::size_t bytes) {
  std::uint64_t hash = bytes;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mixed(hash + 0x9e3779b97f4a7c15 + word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, bytes);
  return mixed(hash + 0x9e3779b97f4a7c15 + rest);
}
/// The upper half of the hash chooses: there are far fewer PEs than 2^32.
std::uint32_t owner(std::uint64_t hash, std::size_t pes) { return std::uint32_t(((hash >> 32) * pes) >> 32); }

/// The PE of each key of `width` bytes.
nb::object owners_of_keys(const Bytes& keys, std::size_t width) {
  const std::size_t pes = Run::get().pe().size(), count = keys.size() / width;
  std::vector<std::uint32_t> owners(count);
  const std::uint8_t* at = keys.data();
  if (width == 8) {
    for (std::size_t i = 0; i < count; ++i, at += 8) {
      std::uint64_t key;
      std::memcpy(&key, at, 8);
      owners[i] = owner(mixed(key + 0x9e3779b97f4a7c15), pes);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i, at += width) owners[i] = owner(mixed(at, width), pes);
  }
  return to_array(std::move(owners));
}

/// The same for strings: string i has the bytes from offsets[i] to offsets[i + 1].
nb::object owners_of_strings(const Bytes& offsets, const Bytes& text) {
  const auto* const at = reinterpret_cast<const std::int64_t*>(offsets.data());
  const std::size_t pes = Run::get().pe().size(), count = offsets.size() / 8 - 1;
  std::vector<std::uint32_t> owners(count);
  for (std::size_t i = 0; i < count; ++i)
    owners[i] = owner(mixed(text.data() + at[i], std::size_t(at[i + 1] - at[i])), pes);
  return to_array(std::move(owners));
}

template <std::size_t width>
void scatter_fixed(const std::uint8_t* from, const Ids& to, std::vector<std::uint8_t*>& cursors) {
  for (std::size_t i = 0; i < to.size(); ++i, from += width) {
    std::uint8_t*& at = cursors[to.data()[i]];
    std::memcpy(at, from, width);
    at += width;
  }
}

/// Appends each row to the place of its PE.
void scatter(const std::uint8_t* from, std::size_t width, const Ids& to, std::vector<std::uint8_t*>& cursors) {
  switch (width) {
    case 1: return scatter_fixed<1>(from, to, cursors);
    case 2: return scatter_fixed<2>(from, to, cursors);
    case 4: return scatter_fixed<4>(from, to, cursors);
    case 8: return scatter_fixed<8>(from, to, cursors);
    case 16: return scatter_fixed<16>(from, to, cursors);
    default: break;
  }
  for (std::size_t i = 0; i < to.size(); ++i, from += width) {
    std::uint8_t*& at = cursors[to.data()[i]];
    std::memcpy(at, from, width);
    at += width;
  }
}

/// Columns as the package gives them. A column of strings has its offsets as int64 and its text; width 0.
struct Columns {
  std::vector<Bytes> data, offsets;  // as many as there are columns; offsets of others are empty
  std::vector<std::size_t> widths;

  std::size_t size() const { return widths.size(); }
  const std::int64_t* offsets_of(std::size_t c) const {
    return reinterpret_cast<const std::int64_t*>(offsets[c].data());
  }
};

/// Where the content for all PEs lies until they have it. It stays for later calls: fresh memory costs as much as the
/// rows.
struct Outgoing final : Resource {
  explicit Outgoing(std::size_t bytes) : memory(Run::get().pe(), bytes) {}
  PooledArray<std::uint8_t> memory;
};

std::uint8_t* outgoing(std::size_t bytes) {
  static std::weak_ptr<Slot> kept;
  std::shared_ptr<Slot> slot = kept.lock();
  if (!slot) kept = slot = Run::get().keep_until_end(std::unique_ptr<Outgoing>()).slot();
  auto* const now = static_cast<Outgoing*>(slot->resource.get());
  if (now == nullptr || now->memory.size() < bytes) {
    slot->resource.reset();
    slot->resource = std::make_unique<Outgoing>(bytes + bytes / 4);
  }
  return static_cast<Outgoing&>(*slot->resource).memory.data();
}

/// What one PE has for another: pieces of memory, and the bytes of each. The first bytes are the number of rows. A
/// column of strings has two pieces, lengths and text.
struct Offer {
  std::vector<std::uint64_t> bytes;
  std::vector<RemoteSource<std::uint8_t>> pieces;
};

/// The content for all PEs, one PE after the other within each column.
class Outbox {
 public:
  Outbox(const Columns& columns, const Ids& to, std::size_t pes) : columns_(columns), to_(to), rows_(pes) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to.data()[i] >= pes) [[unlikely]]
        throw UsageError("the row " + std::to_string(i) + " is for PE " + std::to_string(to.data()[i]) +
                         ", allowed are 0 to " + std::to_string(pes - 1));
      ++rows_[to.data()[i]];
    }
    for (const std::uint64_t rows : rows_) bytes_.push_back({rows});
    for (std::size_t c = 0; c < columns.size(); ++c) add_bytes_of(c);
    std::size_t all = 0;
    for (const auto& bytes : bytes_)
      for (std::size_t piece = 1; piece < bytes.size(); ++piece) all += padded(bytes[piece]);
    std::uint8_t* at = outgoing(all);
    begins_.resize(bytes_[0].size() - 1);
    for (std::size_t piece = 0; piece < begins_.size(); ++piece) {
      for (std::size_t p = 0; p < pes; ++p) {
        begins_[piece].push_back(at);
        at += padded(bytes_[p][piece + 1]);
      }
    }
    for (std::size_t c = 0, piece = 0; c < columns.size(); ++c) piece = fill(c, piece);
  }

  /// Exposes the content for that PE until `remaining` is 0.
  Offer offer(Pe& pe, std::size_t p, std::vector<Source<std::uint8_t>>& sources, std::size_t& remaining) const {
    Offer made{bytes_[p], {}};
    for (std::size_t piece = 0; piece < begins_.size(); ++piece) {
      made.pieces.emplace_back();
      if (bytes_[p][piece + 1] == 0) continue;
      ++remaining;
      const std::span<const std::uint8_t> content(begins_[piece][p], bytes_[p][piece + 1]);
      sources.emplace_back(pe, content, [&remaining] { --remaining; });
      made.pieces.back() = sources.back().remote();
    }
    return made;
  }

 private:
  void add_bytes_of(std::size_t c) {
    if (const std::size_t width = columns_.widths[c]; width != 0) {
      for (std::size_t p = 0; p < rows_.size(); ++p) bytes_[p].push_back(rows_[p] * width);
      return;
    }
    std::vector<std::uint64_t> text(rows_.size());
    const std::int64_t* const offsets = columns_.offsets_of(c);
    for (std::size_t i = 0; i < to_.size(); ++i) text[to_.data()[i]] += std::uint64_t(offsets[i + 1] - offsets[i]);
    for (std::size_t p = 0; p < rows_.size(); ++p) {
      bytes_[p].push_back(rows_[p] * 8);
      bytes_[p].push_back(text[p]);
    }
  }
  /// Returns the piece after those of the column.
  std::size_t fill(std::size_t c, std::size_t piece) {
    std::vector<std::uint8_t*> cursors = begins_[piece];
    if (columns_.widths[c] != 0) {
      scatter(columns_.data[c].data(), columns_.widths[c], to_, cursors);
      return piece + 1;
    }
    const std::int64_t* const offsets = columns_.offsets_of(c);
    std::vector<std::uint8_t*> text = begins_[piece + 1];
    for (std::size_t i = 0; i < to_.size(); ++i) {
      const std::size_t p = to_.data()[i];
      const std::int64_t length = offsets[i + 1] - offsets[i];
      std::memcpy(cursors[p], &length, 8);
      cursors[p] += 8;
      if (length != 0) std::memcpy(text[p], columns_.data[c].data() + offsets[i], std::size_t(length));
      text[p] += length;
    }
    return piece + 2;
  }

  const Columns& columns_;
  const Ids& to_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::vector<std::uint64_t>> bytes_;   // as in Offer, for each PE
  std::vector<std::vector<std::uint8_t*>> begins_;  // of each piece, for each PE
};

/// Gets the pieces of all PEs, one behind the other.
std::vector<Growing> get_pieces(Pe& pe, const std::vector<Offer>& offers) {
  std::vector<Growing> pieces(offers[0].pieces.size());
  std::size_t missing = 0;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    std::size_t bytes = 0;
    for (const Offer& offer : offers) bytes += offer.bytes[piece + 1];
    auto* at = reinterpret_cast<std::uint8_t*>(pieces[piece].grow(bytes));
    for (const Offer& offer : offers) {
      const std::size_t here = offer.bytes[piece + 1];
      if (here == 0) continue;
      ++missing;
      get(pe, offer.pieces[piece], std::span(at, here), [&missing] { --missing; });
      at += here;
    }
  }
  wait_until(pe, [&] { return missing == 0; });
  return pieces;
}

nb::object offsets_of(const Growing& lengths) {
  std::vector<std::int64_t> offsets(lengths.size() / 8 + 1);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    std::int64_t length;
    std::memcpy(&length, lengths.data() + i * 8, 8);
    offsets[i + 1] = offsets[i] + length;
  }
  return to_array(std::move(offsets));
}

/// Collective. The rows for this PE, by number of the sender: arrays of bytes; for strings a pair, offsets and text.
nb::list exchange_rows(const Ids& to, std::vector<Bytes> data, std::vector<Bytes> offsets,
                       std::vector<std::size_t> widths) {
  Pe& pe = Run::get().pe();
  const Columns columns{std::move(data), std::move(offsets), std::move(widths)};
  std::vector<Growing> pieces;
  {
    const Waiting waiting;
    const Outbox outbox(columns, to, pe.size());
    std::size_t remaining = 0;
    std::vector<Source<std::uint8_t>> sources;
    std::vector<Offer> offers;
    for (std::size_t p = 0; p < pe.size(); ++p) offers.push_back(outbox.offer(pe, p, sources, remaining));
    pieces = get_pieces(pe, all_to_all(pe, offers));
    wait_until(pe, [&] { return remaining == 0; });
  }
  nb::list result;
  for (std::size_t c = 0, piece = 0; c < columns.size(); ++c) {
    if (columns.widths[c] != 0) {
      result.append(pieces[piece++].take());
    } else {
      nb::object starts = offsets_of(pieces[piece]);
      result.append(nb::make_tuple(starts, pieces[piece + 1].take()));
      piece += 2;
    }
  }
  return result;
}

}  // namespace

void add_rows(nb::module_& module) {
  module.def("owners_of_keys", &owners_of_keys);
  module.def("owners_of_strings", &owners_of_strings);
  module.def("exchange_rows", &exchange_rows);
}

}  // namespace headway::python
