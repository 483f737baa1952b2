// SPDX-License-Identifier: BSD-3-Clause
/// A list of local elements, compiled for packing and unpacking.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::halo {

/// How the elements of a list lie in memory.
enum class ListForm : std::uint8_t {
  contiguous,  // one after the other
  box,         // planes of rows of elements at equal distances
  runs,        // pieces of several contiguous elements
  gather,      // anywhere
};

/// How elements are written for another core.
enum class Caches : std::uint8_t {
  use,
  bypass,  // non-temporal stores, where the elements lie one after the other
};

/// An array of elements that are packed: element i begins at `data + i * stride`, and has `bytes` bytes.
struct FieldView {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t stride = 0;
};

/// A maximal piece of contiguous elements of a list. It ends where the next one begins.
struct ListRun {
  std::uint64_t index;
  std::uint64_t begin;  // its place in the list
  bool operator==(const ListRun&) const = default;
};

/// Collects the elements of a list. Its memory may be used for one list after the other.
class ListBuilder {
 public:
  void add(std::uint64_t index) { add(index, 1); }
  /// `length` contiguous elements.
  void add(std::uint64_t index, std::uint64_t length) {
    reserve(1);
    runs_[count_] = {index, size_};
    count_ += std::size_t(count_ == 0 || index != next_);
    next_ = index + length;
    size_ += length;
  }
  /// Adds `count` elements: index_of(i) for i from 0 on.
  template <class IndexOf>
  void add_each(std::size_t count, IndexOf index_of) {
    if (count == 0) return;
    add(index_of(0));
    reserve(count);
    ListRun* end = runs_.get() + count_;
    std::uint64_t next = next_, size = size_;
    for (std::size_t i = 1; i != count; ++i) {  // without branches: where runs begin is hard to predict
      const std::uint64_t index = index_of(i);
      *end = {index, size++};
      end += std::ptrdiff_t(index != next);
      next = index + 1;
    }
    count_ = std::size_t(end - runs_.get());
    next_ = next;
    size_ = size;
  }
  void clear() { count_ = size_ = 0; }
  std::uint64_t size() const { return size_; }
  std::span<const ListRun> runs() const { return {runs_.get(), count_}; }

 private:
  void reserve(std::size_t more) {
    if (count_ + more <= room_) return;
    const std::size_t room = std::max(count_ + more, 2 * room_);
    std::unique_ptr<ListRun[]> larger(new ListRun[room]);  // the content stays unset until it is needed
    std::copy_n(runs_.get(), count_, larger.get());
    runs_ = std::move(larger);
    room_ = room;
  }

  std::unique_ptr<ListRun[]> runs_;
  std::size_t count_ = 0, room_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t next_ = 0;  // the index behind the last one
};

/// The elements of one partner, in the order in which they travel. An index may appear several times.
class IndexList {
 public:
  IndexList() = default;
  explicit IndexList(std::span<const std::uint64_t> indices);
  explicit IndexList(const ListBuilder& elements) { assign(elements); }
  /// Other elements, in the memory of this list where it suffices.
  void assign(const ListBuilder& elements);

  std::size_t size() const { return size_; }
  /// One more than the largest index; 0 for an empty list.
  std::uint64_t extent() const { return extent_; }
  ListForm form() const { return form_; }
  /// The mean length of its contiguous pieces.
  std::size_t mean_run() const;
  std::uint64_t operator[](std::size_t i) const;
  std::vector<std::uint64_t> indices() const;
  /// For people, as "4096 elements, 64 runs".
  std::string description() const;

  /// Copies elements first ... first + count - 1 of the list from `field` to `to`, one after the other.
  void pack(std::size_t first, std::size_t count, const FieldView& field, std::byte* to) const;
  /// The reverse: overwrites the elements.
  void unpack(std::size_t first, std::size_t count, const std::byte* from, const FieldView& field) const;
  /// Calls combine(element, arrived) for each of these elements. Both addresses are aligned as the field and as `from`.
  template <class Combine>
  void combine(std::size_t first, std::size_t count, const std::byte* from, const FieldView& field,
               Combine combine) const {
    each_run(first, count, [&](std::uint64_t index, std::size_t length) {
      for (std::size_t i = 0; i != length; ++i, from += field.bytes)
        combine(field.data + (index + i) * field.stride, from);
    });
  }
  /// pack() of all elements; with Caches::bypass, to a buffer that a remote core reads.
  void pack_all(const FieldView& field, std::byte* to, Caches caches) const;
  /// Copies the elements `from` of one array to the elements `to` of another; the lists have the same size, and the
  /// elements the same bytes.
  static void copy(const IndexList& from, const FieldView& source, const IndexList& to, const FieldView& target,
                   Caches caches);

  /// Appends the list to a message, as short as its form allows.
  void encode(std::vector<std::uint64_t>& to) const;
  /// assign() for a list that encode() has written. Removes it from the front of `numbers`. FormatError if there is no
  /// valid one.
  void decode(std::span<const std::uint64_t>& numbers);
  /// The same for a message with nothing behind the list.
  void decode_whole(std::span<const std::uint64_t> numbers);

  bool operator==(const IndexList&) const = default;

  /// Calls f(index, length) for maximal pieces of contiguous elements, in the order of the list.
  template <class F>
  void each_run(std::size_t first, std::size_t count, F f) const;

 private:
  struct Box {
    std::uint64_t first = 0, row = 0;    // index of the first element; contiguous elements of a row
    std::uint64_t rows = 0, planes = 0;  // rows of a plane
    std::uint64_t row_step = 0, plane_step = 0;
    bool operator==(const Box&) const = default;
    /// Whether rows follow one another without overlap.
    bool is_forward() const;
  };

  void clear();
  bool find_box(std::span<const ListRun> runs);

  std::size_t size_ = 0;
  std::uint64_t extent_ = 0;
  ListForm form_ = ListForm::contiguous;
  Box box_;                            // also contiguous: one row
  std::vector<ListRun> runs_;          // of runs
  std::vector<std::uint32_t> narrow_;  // of gather, if all indices fit
  std::vector<std::uint64_t> wide_;    // of gather otherwise
};

template <class F>
void IndexList::each_run(std::size_t first, std::size_t count, F f) const {
  const std::size_t end = first + count;
  switch (form_) {
    case ListForm::contiguous:
    case ListForm::box:
      while (first != end) {
        const std::uint64_t row = first / box_.row, in_row = first % box_.row;
        const std::uint64_t plane = row / box_.rows, in_plane = row % box_.rows;
        const std::size_t length = std::min<std::size_t>(box_.row - in_row, end - first);
        f(box_.first + plane * box_.plane_step + in_plane * box_.row_step + in_row, length);
        first += length;
      }
      return;
    case ListForm::runs: {
      auto run = std::upper_bound(runs_.begin(), runs_.end(), first,
                                  [](std::size_t at, const ListRun& one) { return at < one.begin; });
      for (--run; first != end; ++run) {
        const std::uint64_t run_end = run + 1 == runs_.end() ? size_ : run[1].begin;
        const std::size_t length = std::min<std::size_t>(run_end, end) - first;
        f(run->index + (first - run->begin), length);
        first += length;
      }
      return;
    }
    case ListForm::gather:
      for (; first != end; ++first) f(narrow_.empty() ? wide_[first] : narrow_[first], 1);
      return;
  }
}

}  // namespace headway::halo
