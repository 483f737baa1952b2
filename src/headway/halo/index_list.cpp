// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/index_list.hpp>
#include <type_traits>

namespace headway::halo {
namespace {

// Lists with shorter runs on average are gathered: a loop over elements has less work for each.
constexpr std::size_t run_length_least = 4;

// Lists with larger indices have offsets of 64 bits.
constexpr std::uint64_t narrow_extent_max = std::uint64_t(1) << 32;

// In the first number of an encoded list: offsets of 64 bits.
constexpr std::uint64_t wide_mark = 1 << 8;

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

IndexList::IndexList(std::span<const std::uint64_t> indices) {
  ListBuilder elements;
  elements.add_each(indices.size(), [&](std::size_t i) { return indices[i]; });
  assign(elements);
}

void IndexList::clear() {
  size_ = extent_ = 0;
  form_ = ListForm::contiguous;
  box_ = {};
  runs_.clear();
  narrow_.clear();
  wide_.clear();
}

void IndexList::assign(const ListBuilder& elements) {
  const std::span<const ListRun> runs = elements.runs();
  clear();
  size_ = elements.size();
  if (size_ == 0) return;
  for (std::size_t r = 0; r + 1 != runs.size(); ++r)
    extent_ = std::max(extent_, runs[r].index + (runs[r + 1].begin - runs[r].begin));
  extent_ = std::max(extent_, runs.back().index + (size_ - runs.back().begin));
  if (find_box(runs)) return;
  if (size_ / runs.size() >= run_length_least) {
    form_ = ListForm::runs;
    runs_.assign(runs.begin(), runs.end());
    return;
  }
  form_ = ListForm::gather;
  const auto fill = [&](auto& indices) {
    using Index = typename std::remove_reference_t<decltype(indices)>::value_type;
    indices.resize(size_);
    if (runs.size() == size_) {
      for (std::size_t i = 0; i != runs.size(); ++i) indices[i] = Index(runs[i].index);
      return;
    }
    for (std::size_t r = 0; r != runs.size(); ++r) {
      const std::uint64_t end = r + 1 == runs.size() ? size_ : runs[r + 1].begin;
      for (std::uint64_t i = runs[r].begin; i != end; ++i) indices[i] = Index(runs[r].index + (i - runs[r].begin));
    }
  };
  if (extent_ <= narrow_extent_max)
    fill(narrow_);
  else
    fill(wide_);
}

/// Whether the runs are rows of equal length at equal distances, and these the planes of a box.
bool IndexList::find_box(std::span<const ListRun> runs) {
  const std::uint64_t row = runs.size() == 1 ? size_ : runs[1].begin;
  if (size_ % row != 0 || runs.size() != size_ / row) return false;
  const std::size_t rows_all = runs.size();
  const auto step = [&](std::size_t r) { return runs[r + 1].index - runs[r].index; };  // modulo 2^64
  std::size_t rows = 1;
  while (rows < rows_all && step(rows - 1) == step(0)) ++rows;
  if (rows_all % rows != 0) return false;
  const std::size_t planes = rows_all / rows;
  const Box box{.first = runs[0].index,
                .row = row,
                .rows = rows,
                .planes = planes,
                .row_step = rows > 1 ? step(0) : 0,
                .plane_step = planes > 1 ? runs[rows].index - runs[0].index : 0};
  if (!box.is_forward()) return false;
  for (std::size_t p = 0; p != planes; ++p) {
    for (std::size_t r = 0; r != rows; ++r) {
      const ListRun& run = runs[p * rows + r];
      if (run.begin != (p * rows + r) * row) return false;
      if (run.index != box.first + p * box.plane_step + r * box.row_step) return false;
    }
  }
  box_ = box;
  form_ = rows_all == 1 ? ListForm::contiguous : ListForm::box;
  return true;
}

bool IndexList::Box::is_forward() const {
  constexpr std::uint64_t step_max = ~std::uint64_t(0) >> 1;  // a step backwards is larger
  if (rows > 1 && (row_step < row || row_step > step_max)) return false;
  return planes == 1 || (plane_step >= row + (rows - 1) * row_step && plane_step <= step_max);
}

std::size_t IndexList::mean_run() const {
  switch (form_) {
    case ListForm::contiguous:
    case ListForm::box: return box_.row;
    case ListForm::runs: return size_ / runs_.size();
    default: return 1;
  }
}

// A message holds: the form, with wide_mark for offsets of 64 bits; the number of elements; and the box, or the runs
// behind their number, or the offsets.

void IndexList::encode(std::vector<std::uint64_t>& to) const {
  to.push_back(std::uint64_t(form_) | (wide_.empty() ? 0 : wide_mark));
  to.push_back(size_);
  switch (form_) {
    case ListForm::contiguous:
    case ListForm::box:
      to.insert(to.end(), {box_.first, box_.row, box_.rows, box_.planes, box_.row_step, box_.plane_step});
      return;
    case ListForm::runs:
      to.push_back(runs_.size());
      for (const ListRun& run : runs_) to.insert(to.end(), {run.index, run.begin});
      return;
    case ListForm::gather: {
      const std::size_t at = to.size();
      to.insert(to.end(), wide_.begin(), wide_.end());
      if (narrow_.empty()) return;
      to.resize(at + (size_ + 1) / 2);
      std::memcpy(to.data() + at, narrow_.data(), size_ * sizeof narrow_[0]);
    }
  }
}

void IndexList::decode(std::span<const std::uint64_t>& numbers) {
  const auto require = [all = numbers](bool valid) {
    if (valid) return;
    throw FormatError(fmt::format("an invalid list of elements in {}, which begin with {}",
                                  base::counted(all.size(), "number"),
                                  fmt::join(all.first(std::min<std::size_t>(all.size(), 8)), ", ")));
  };
  const auto take = [&](std::size_t count) {
    require(numbers.size() >= count);
    const std::span<const std::uint64_t> taken = numbers.first(count);
    numbers = numbers.subspan(count);
    return taken;
  };
  clear();
  const std::span<const std::uint64_t> head = take(2);
  require((head[0] & ~wide_mark) <= std::uint64_t(ListForm::gather));
  form_ = ListForm(head[0] & ~wide_mark);
  size_ = head[1];
  switch (form_) {
    case ListForm::contiguous:
    case ListForm::box: {
      const std::span<const std::uint64_t> box = take(6);
      box_ = {box[0], box[1], box[2], box[3], box[4], box[5]};
      std::uint64_t rows = 0, all = 0, in_plane = 0, planes = 0;
      require(box_.row != 0 && box_.rows != 0 && box_.planes != 0);
      require(!__builtin_mul_overflow(box_.rows, box_.planes, &rows) && !__builtin_mul_overflow(rows, box_.row, &all) &&
              all == size_);
      require(!__builtin_mul_overflow(box_.rows - 1, box_.row_step, &in_plane) &&
              !__builtin_add_overflow(in_plane, box_.row, &in_plane) &&
              !__builtin_mul_overflow(box_.planes - 1, box_.plane_step, &planes) &&
              !__builtin_add_overflow(planes, in_plane, &extent_) &&
              !__builtin_add_overflow(extent_, box_.first, &extent_) && box_.is_forward());
      return;
    }
    case ListForm::runs: {
      const std::uint64_t runs = take(1)[0];
      require(runs != 0 && runs <= size_ && runs <= numbers.size() / 2);
      const std::span<const std::uint64_t> all = take(2 * runs);
      runs_.resize(runs);
      for (std::size_t r = 0; r != runs; ++r) {
        runs_[r] = {all[2 * r], all[2 * r + 1]};
        const std::uint64_t next = r + 1 == runs ? size_ : all[2 * r + 3];
        std::uint64_t end = 0;
        require((r != 0 || runs_[r].begin == 0) && runs_[r].begin < next && next <= size_ &&
                !__builtin_add_overflow(runs_[r].index, next - runs_[r].begin, &end));
        extent_ = std::max(extent_, end);
      }
      return;
    }
    case ListForm::gather: {
      require(size_ != 0 && size_ / 2 <= numbers.size());
      if ((head[0] & wide_mark) != 0) {
        const std::span<const std::uint64_t> all = take(size_);
        wide_.assign(all.begin(), all.end());
        const std::uint64_t most = *std::ranges::max_element(wide_);
        require(most != ~std::uint64_t(0));
        extent_ = most + 1;
        return;
      }
      narrow_.resize(size_);
      std::memcpy(narrow_.data(), take((size_ + 1) / 2).data(), size_ * sizeof narrow_[0]);
      std::uint32_t most = 0;
      for (const std::uint32_t one : narrow_) most = std::max(most, one);
      extent_ = std::uint64_t(most) + 1;
      return;
    }
  }
}

void IndexList::decode_whole(std::span<const std::uint64_t> numbers) {
  decode(numbers);
  if (!numbers.empty())
    throw FormatError(fmt::format("{} behind {}", base::counted(numbers.size(), "number"), description()));
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
