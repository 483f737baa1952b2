// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/halo/index_list.hpp>

namespace headway::halo {
namespace {

// Lists with shorter runs on average are gathered: a loop over elements has less work for each.
constexpr std::size_t run_length_least = 4;

// The first number of an encoded box; no index is as large.
constexpr std::uint64_t boxed = ~std::uint64_t(0);

// A copy from list to list goes through a buffer of so many bytes, which stays in the first-level cache.
constexpr std::size_t buffer_bytes = 4096;

/// Calls f(std::integral_constant) for the usual element sizes, and f(bytes) for others: copies of constant size are
/// single moves.
template <class F>
void with_size(std::size_t bytes, F f) {
  using std::integral_constant;
  switch (bytes) {
    case 1: return f(integral_constant<std::size_t, 1>());
    case 2: return f(integral_constant<std::size_t, 2>());
    case 4: return f(integral_constant<std::size_t, 4>());
    case 8: return f(integral_constant<std::size_t, 8>());
    case 12: return f(integral_constant<std::size_t, 12>());
    case 16: return f(integral_constant<std::size_t, 16>());
    case 24: return f(integral_constant<std::size_t, 24>());
    case 32: return f(integral_constant<std::size_t, 32>());
    default: return f(bytes);
  }
}

/// Calls move(offset, place): the byte offset of each element in the field, and its bytes' place in the packed ones.
template <class Index, class Size, class Move>
void gather(const std::vector<Index>& indices, std::size_t first, std::size_t count, Size size, std::size_t stride,
            Move move) {
  const Index* const at = indices.data() + first;
  if (stride == std::size_t(size)) {
    for (std::size_t i = 0; i != count; ++i) move(std::size_t(at[i]) * size, i * size);
  } else {
    for (std::size_t i = 0; i != count; ++i) move(std::size_t(at[i]) * stride, i * size);
  }
}

}  // namespace

IndexList::IndexList(std::span<const std::uint64_t> indices) : size_(indices.size()) {
  if (indices.empty()) return;
  extent_ = *std::max_element(indices.begin(), indices.end()) + 1;
  for (std::size_t i = 0; i != size_; ++i) {
    if (i == 0 || indices[i] != indices[i - 1] + 1) runs_.push_back({indices[i], i});
  }
  if (find_box()) {
    runs_ = {};
    return;
  }
  if (size_ / runs_.size() >= run_length_least) {
    form_ = ListForm::runs;
    return;
  }
  runs_ = {};
  form_ = ListForm::gather;
  if (extent_ <= (std::uint64_t(1) << 32))
    narrow_.assign(indices.begin(), indices.end());
  else
    wide_.assign(indices.begin(), indices.end());
}

/// Whether the runs are rows of equal length at equal distances, and these the planes of a box.
bool IndexList::find_box() {
  const std::uint64_t row = runs_.size() == 1 ? size_ : runs_[1].begin;
  if (size_ % row != 0 || runs_.size() != size_ / row) return false;
  for (std::size_t r = 0; r != runs_.size(); ++r) {
    if (runs_[r].begin != r * row) return false;
  }
  const std::size_t rows_all = runs_.size();
  const auto step = [&](std::size_t r) { return runs_[r + 1].index - runs_[r].index; };  // modulo 2^64
  std::size_t rows = 1;
  while (rows < rows_all && step(rows - 1) == step(0)) ++rows;
  if (rows_all % rows != 0) return false;
  const std::size_t planes = rows_all / rows;
  box_ = {.first = runs_[0].index,
          .row = row,
          .rows = rows,
          .planes = planes,
          .row_step = rows > 1 ? step(0) : 0,
          .plane_step = planes > 1 ? runs_[rows].index - runs_[0].index : 0};
  for (std::size_t p = 0; p != planes; ++p) {
    for (std::size_t r = 0; r != rows; ++r) {
      if (runs_[p * rows + r].index != box_.first + p * box_.plane_step + r * box_.row_step) return false;
    }
  }
  // Rows follow one another without overlap; a step backwards is above 2^63 here.
  constexpr std::uint64_t step_max = ~std::uint64_t(0) >> 1;
  if (rows > 1 && (box_.row_step < row || box_.row_step > step_max)) return false;
  if (planes > 1 && (box_.plane_step < row + (rows - 1) * box_.row_step || box_.plane_step > step_max)) return false;
  form_ = rows_all == 1 ? ListForm::contiguous : ListForm::box;
  return true;
}

std::size_t IndexList::mean_run() const {
  switch (form_) {
    case ListForm::contiguous:
    case ListForm::box: return box_.row;
    case ListForm::runs: return size_ / runs_.size();
    default: return 1;
  }
}

std::vector<std::uint64_t> IndexList::encoded() const {
  if (form_ != ListForm::contiguous && form_ != ListForm::box) return indices();
  return {boxed, size_, box_.first, box_.row, box_.rows, box_.planes, box_.row_step, box_.plane_step};
}

IndexList IndexList::decoded(std::span<const std::uint64_t> numbers) {
  if (numbers.empty() || numbers[0] != boxed) return IndexList(numbers);
  IndexList list;
  list.size_ = numbers[1];
  list.box_ = {numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]};
  list.form_ = list.box_.rows * list.box_.planes == 1 ? ListForm::contiguous : ListForm::box;
  list.extent_ = list.size_ == 0 ? 0 : list[list.size_ - 1] + 1;
  return list;
}

std::uint64_t IndexList::operator[](std::size_t i) const {
  std::uint64_t index = 0;
  each_run(i, 1, [&](std::uint64_t first, std::size_t) { index = first; });
  return index;
}

std::vector<std::uint64_t> IndexList::indices() const {
  std::vector<std::uint64_t> all;
  all.reserve(size_);
  each_run(0, size_, [&](std::uint64_t index, std::size_t length) {
    for (std::size_t i = 0; i != length; ++i) all.push_back(index + i);
  });
  return all;
}

std::string IndexList::description() const {
  const std::string elements = base::counted(size_, "element");
  switch (form_) {
    case ListForm::contiguous: return elements + ", contiguous";
    case ListForm::box: return fmt::format("{}, a box of {} x {} x {}", elements, box_.planes, box_.rows, box_.row);
    case ListForm::runs: return fmt::format("{}, {}", elements, base::counted(runs_.size(), "run"));
    default: return fmt::format("{}, anywhere, offsets of {} bits", elements, narrow_.empty() ? 64 : 32);
  }
}

void IndexList::pack(std::size_t first, std::size_t count, const FieldView& field, std::byte* to) const {
  with_size(field.bytes, [&](auto size) {
    const std::byte* const data = field.data;
    if (form_ == ListForm::gather) {
      const auto move = [&](std::size_t offset, std::size_t place) { std::memcpy(to + place, data + offset, size); };
      return narrow_.empty() ? gather(wide_, first, count, size, field.stride, move)
                             : gather(narrow_, first, count, size, field.stride, move);
    }
    each_run(first, count, [&](std::uint64_t index, std::size_t length) {
      const std::byte* from = data + index * field.stride;
      if (field.stride == size) {
        std::memcpy(to, from, length * size);
        to += length * size;
      } else {
        for (std::size_t i = 0; i != length; ++i, from += field.stride, to += size) std::memcpy(to, from, size);
      }
    });
  });
}

void IndexList::unpack(std::size_t first, std::size_t count, const std::byte* from, const FieldView& field) const {
  with_size(field.bytes, [&](auto size) {
    std::byte* const data = field.data;
    if (form_ == ListForm::gather) {
      const auto move = [&](std::size_t offset, std::size_t place) { std::memcpy(data + offset, from + place, size); };
      return narrow_.empty() ? gather(wide_, first, count, size, field.stride, move)
                             : gather(narrow_, first, count, size, field.stride, move);
    }
    each_run(first, count, [&](std::uint64_t index, std::size_t length) {
      std::byte* to = data + index * field.stride;
      if (field.stride == size) {
        std::memcpy(to, from, length * size);
        from += length * size;
      } else {
        for (std::size_t i = 0; i != length; ++i, to += field.stride, from += size) std::memcpy(to, from, size);
      }
    });
  });
}

void IndexList::pack_all(const FieldView& field, std::byte* to, Caches caches) const {
  if (caches == Caches::use || field.bytes > buffer_bytes) return pack(0, size_, field, to);
  if (form_ == ListForm::contiguous && field.stride == field.bytes)
    return base::copy_past_caches(to, field.data + box_.first * field.bytes, size_ * field.bytes);
  std::byte buffer[buffer_bytes];
  const std::size_t most = buffer_bytes / field.bytes;
  for (std::size_t first = 0; first != size_;) {
    const std::size_t count = std::min(most, size_ - first);
    pack(first, count, field, buffer);
    base::copy_past_caches(to + first * field.bytes, buffer, count * field.bytes);
    first += count;
  }
}

void IndexList::copy(const IndexList& from, const FieldView& source, const IndexList& to, const FieldView& target,
                     Caches caches) {
  const auto is_dense = [](const IndexList& list, const FieldView& field) {
    return list.form_ == ListForm::contiguous && field.stride == field.bytes;
  };
  if (is_dense(to, target)) return from.pack_all(source, target.data + to.box_.first * target.bytes, caches);
  if (is_dense(from, source)) return to.unpack(0, to.size_, source.data + from.box_.first * source.bytes, target);
  std::byte buffer[buffer_bytes];
  std::vector<std::byte> large(source.bytes > buffer_bytes ? source.bytes : 0);  // of one large element
  std::byte* const between = large.empty() ? buffer : large.data();
  const std::size_t most = std::max<std::size_t>(1, buffer_bytes / source.bytes);
  for (std::size_t first = 0; first != from.size_;) {
    const std::size_t count = std::min(most, from.size_ - first);
    from.pack(first, count, source, between);
    to.unpack(first, count, between, target);
    first += count;
  }
}

}  // namespace headway::halo
