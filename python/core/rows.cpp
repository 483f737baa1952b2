// SPDX-License-Identifier: BSD-3-Clause
/// Rows of columns that move to other PEs: headway.shuffle and what is built on it.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "bytes.hpp"
#include "run.hpp"

namespace headway::python {
namespace {

using Block = std::vector<std::uint8_t>;
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
std::uint32_t owner(std::uint64_t hash, std::size_t pes) {
  return std::uint32_t(((hash >> 32) * pes) >> 32);
}

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

/// A block for each PE: the number of rows, then for each column its values; for strings their lengths and their text.
/// Each of these begins at a multiple of 8 bytes.
std::vector<Block> make_blocks(const Columns& columns, const Ids& to, std::size_t pes) {
  std::vector<std::uint64_t> rows(pes);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to.data()[i] >= pes) [[unlikely]]
      throw UsageError("the row " + std::to_string(i) + " is for PE " + std::to_string(to.data()[i]) +
                       ", allowed are 0 to " + std::to_string(pes - 1));
    ++rows[to.data()[i]];
  }
  std::vector<std::vector<std::uint64_t>> text(columns.size());
  std::vector<std::size_t> bytes(pes, 8);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns.widths[c] == 0) {
      text[c].resize(pes);
      const std::int64_t* const offsets = columns.offsets_of(c);
      for (std::size_t i = 0; i < to.size(); ++i) text[c][to.data()[i]] += std::uint64_t(offsets[i + 1] - offsets[i]);
    }
    for (std::size_t p = 0; p < pes; ++p)
      bytes[p] += columns.widths[c] != 0 ? padded(rows[p] * columns.widths[c]) : rows[p] * 8 + padded(text[c][p]);
  }
  std::vector<Block> blocks(pes);
  std::vector<std::uint8_t*> begin(pes), cursors;
  for (std::size_t p = 0; p < pes; ++p) {
    blocks[p].resize(bytes[p]);
    std::memcpy(blocks[p].data(), &rows[p], 8);
    begin[p] = blocks[p].data() + 8;
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::size_t width = columns.widths[c];
    cursors = begin;
    if (width != 0) {
      scatter(columns.data[c].data(), width, to, cursors);
      for (std::size_t p = 0; p < pes; ++p) begin[p] += padded(rows[p] * width);
      continue;
    }
    const std::int64_t* const offsets = columns.offsets_of(c);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t length = offsets[i + 1] - offsets[i];
      std::memcpy(cursors[to.data()[i]], &length, 8);
      cursors[to.data()[i]] += 8;
    }
    for (std::size_t p = 0; p < pes; ++p) begin[p] += rows[p] * 8;
    cursors = begin;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto length = std::size_t(offsets[i + 1] - offsets[i]);
      std::uint8_t*& at = cursors[to.data()[i]];
      if (length != 0) std::memcpy(at, columns.data[c].data() + offsets[i], length);
      at += length;
    }
    for (std::size_t p = 0; p < pes; ++p) begin[p] += padded(text[c][p]);
  }
  return blocks;
}

/// The columns of all blocks, by number of the sender: arrays of bytes; for strings a pair, offsets and text.
nb::list read_blocks(const std::vector<Block>& blocks, const std::vector<std::size_t>& widths) {
  std::vector<std::uint64_t> rows;
  std::vector<const std::uint8_t*> at;
  std::uint64_t all = 0;
  for (const Block& block : blocks) {
    std::uint64_t count;
    std::memcpy(&count, block.data(), 8);
    rows.push_back(count);
    at.push_back(block.data() + 8);
    all += count;
  }
  nb::list columns;
  for (const std::size_t width : widths) {
    if (width != 0) {
      Growing values;
      std::byte* to = values.grow(all * width);
      for (std::size_t p = 0; p < blocks.size(); ++p) {
        if (rows[p] != 0) std::memcpy(to, at[p], rows[p] * width);
        to += rows[p] * width;
        at[p] += padded(rows[p] * width);
      }
      columns.append(values.take());
      continue;
    }
    std::vector<std::int64_t> offsets = {0};
    offsets.reserve(all + 1);
    Growing text;
    for (std::size_t p = 0; p < blocks.size(); ++p) {
      const std::int64_t before = offsets.back();
      for (std::uint64_t i = 0; i < rows[p]; ++i, at[p] += 8) {
        std::int64_t length;
        std::memcpy(&length, at[p], 8);
        offsets.push_back(offsets.back() + length);
      }
      const auto bytes = std::size_t(offsets.back() - before);
      if (bytes != 0) std::memcpy(text.grow(bytes), at[p], bytes);
      at[p] += padded(bytes);
    }
    nb::object starts = to_array(std::move(offsets));
    columns.append(nb::make_tuple(starts, text.take()));
  }
  return columns;
}

nb::list exchange_rows(const Ids& to, std::vector<Bytes> data, std::vector<Bytes> offsets,
                       std::vector<std::size_t> widths) {
  Pe& pe = Run::get().pe();
  const Columns columns{std::move(data), std::move(offsets), std::move(widths)};
  std::vector<Block> arrived;
  {
    const Waiting waiting;
    const std::vector<Block> blocks = make_blocks(columns, to, pe.size());
    arrived = all_to_all(pe, blocks);
  }
  return read_blocks(arrived, columns.widths);
}

}  // namespace

void add_rows(nb::module_& module) {
  module.def("owners_of_keys", &owners_of_keys);
  module.def("owners_of_strings", &owners_of_strings);
  module.def("exchange_rows", &exchange_rows);
}

}  // namespace headway::python
