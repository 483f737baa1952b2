// SPDX-License-Identifier: BSD-3-Clause
/// headway.DistArray: a part on each PE, and all elements for all PEs.
#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "bytes.hpp"
#include "run.hpp"

namespace headway::python {
namespace {

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// One for all arrays of the run.
struct Memory final : Resource {
  explicit Memory(Pe& pe) : global(pe) {}
  GlobalMemory global;
};

std::weak_ptr<Slot>& shared_memory() {
  static std::weak_ptr<Slot> memory;
  return memory;
}

class WordArray : public Resource {
 public:
  virtual nb::object read(const Indices& indices) = 0;
  virtual void write(const Indices& indices, const Bytes& values) = 0;
  virtual void add(char kind, const Indices& indices, const Bytes& values) = 0;
  virtual nb::object local() = 0;
  virtual nb::object global_indices() = 0;
};

template <class Word>
class ArrayOf final : public WordArray {
 public:
  ArrayOf(GlobalMemory& memory, std::size_t n, std::size_t block)
      : memory_(&memory), array_(Run::get().pe(), n, block) {
    const std::size_t pes = Run::get().pe().size();
    for (std::size_t p = 0; p < pes; ++p) {
      const std::uint64_t begin = array_.places().find(0).offset;
      parts_.push_back(memory.local(GlobalPtr<Word>(p, begin)));
      all_mapped_ = all_mapped_ && parts_.back() != nullptr;
    }
  }

  nb::object read(const Indices& indices) override {
    const std::size_t count = indices.size();
    Growing values;
    auto* const to = reinterpret_cast<Word*>(values.grow(count * sizeof(Word)));
    {
      const Waiting waiting;
      if (all_mapped_) {
        visit(indices, [to](std::size_t k, Word* at) { to[k] = global::load(at); });
      } else {
        GlobalMemory& memory = *memory_;
        for (std::size_t k = 0; k < count; ++k) memory.get(array_[checked(indices.data()[k])], to + k);
        memory.sync();
      }
    }
    return values.take();
  }

  void write(const Indices& indices, const Bytes& values) override {
    const auto* const from = reinterpret_cast<const Word*>(values.data());
    const std::size_t count = indices.size(), step = values.size() == sizeof(Word) ? 0 : 1;
    const Waiting waiting;
    if (all_mapped_) {
      visit(indices, [from, step](std::size_t k, Word* at) { global::save(at, from[k * step]); });
      return;
    }
    GlobalMemory& memory = *memory_;
    for (std::size_t k = 0; k < count; ++k) memory.put(array_[checked(indices.data()[k])], from[k * step]);
    memory.sync();
  }

  void add(char kind, const Indices& indices, const Bytes& values) override {
    with_type(kind, sizeof(Word), [&]<class T>(T) {
      if constexpr (sizeof(T) == sizeof(Word) && sizeof(T) >= 4)
        add_as<T>(indices, values);
      else
        throw UsageError("add_at() is for elements of 4 and 8 bytes, this array has elements of " +
                         std::to_string(sizeof(Word)));
    });
  }

  nb::object local() override {
    const auto local = array_.local();
    return nb::cast(Array(reinterpret_cast<std::uint8_t*>(local.data()), {local.size_bytes()}),
                    nb::rv_policy::reference);
  }

  nb::object global_indices() override {
    std::vector<std::int64_t> indices(array_.local().size());
    for (std::size_t j = 0; j < indices.size(); ++j)
      indices[j] = std::int64_t(array_.layout().global(Run::get().pe().id(), j));
    return to_array(std::move(indices));
  }

 private:
  /// Calls f(k, address of element indices[k]) for all k. Addresses are found, and their lines fetched, a block ahead:
  /// the misses of a block are in flight together.
  template <class F>
  void visit(const Indices& indices, F f) const {
    constexpr std::size_t block_max = 64;
    Word* at[2][block_max];
    const std::int64_t* const index = indices.data();
    const std::size_t count = indices.size(), block = array_.layout().block(), pes = parts_.size();
    const double per_block = 1 / double(block), per_pe = 1 / double(pes);
    Word* const* const parts = parts_.data();
    const auto find = [&](std::size_t first, std::size_t n, Word** to) {
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = checked(index[first + k]);
        Word* place;
        if (block == 1) {
          const std::size_t row = quotient(i, pes, per_pe);
          place = parts[i - row * pes] + row;
        } else {
          const std::size_t owner = quotient(i, block, per_block);
          place = parts[owner] + (i - owner * block);
        }
        __builtin_prefetch(place);
        to[k] = place;
      }
    };
    std::size_t ready = std::min(block_max, count);
    find(0, ready, at[0]);
    for (std::size_t first = 0, turn = 0; first < count; turn ^= 1) {
      const std::size_t next = std::min(block_max, count - first - ready);
      find(first + ready, next, at[turn ^ 1]);
      for (std::size_t k = 0; k < ready; ++k) f(first + k, at[turn][k]);
      first += ready;
      ready = next;
    }
  }
  /// i / divisor, for i below 2^53: a multiplication takes a fifth of the time of a division.
  static std::size_t quotient(std::size_t i, std::size_t divisor, double reciprocal) {
    const auto guess = std::size_t(std::int64_t(double(std::int64_t(i)) * reciprocal));
    return guess - std::size_t(guess * divisor > i) + std::size_t((guess + 1) * divisor <= i);
  }

  std::size_t checked(std::int64_t index) const {
    const std::size_t n = array_.size();
    std::size_t i = std::size_t(index);
    if (i >= n) [[unlikely]] {
      i += n;  // from the end
      if (i >= n) refuse(index);
    }
    return i;
  }
  [[noreturn]] void refuse(std::int64_t index) const {
    const auto n = std::int64_t(array_.size());
    throw std::out_of_range("index " + std::to_string(index) + " is outside of the array; allowed are " +
                            std::to_string(-n) + " to " + std::to_string(n - 1));
  }

  template <class T>
  void add_as(const Indices& indices, const Bytes& values) {
    const auto* const from = reinterpret_cast<const T*>(values.data());
    const std::size_t count = indices.size(), step = values.size() == sizeof(T) ? 0 : 1;
    const Waiting waiting;
    GlobalMemory& memory = *memory_;
    if (all_mapped_) {
      visit(indices, [from, step](std::size_t k, Word* at) {
        if constexpr (std::is_integral_v<T>)
          std::atomic_ref(*at).fetch_add(Word(from[k * step]), std::memory_order_relaxed);
        else
          add_atomically(*at, from[k * step]);
      });
      return;
    }
    for (std::size_t k = 0; k < count; ++k) {
      const GlobalPtr<Word> place = array_[checked(indices.data()[k])];
      const T value = from[k * step];
      if constexpr (std::is_integral_v<T>) {
        memory.add(place, Word(value));
      } else if (Word* const at = memory.local(place)) {
        add_atomically(*at, value);
      } else {  // far away there is no atomic sum of floating-point numbers
        Word before = memory.read(place);
        for (;;) {
          const Word now =
              memory.compare_exchange(place, before, std::bit_cast<Word>(T(std::bit_cast<T>(before) + value)));
          if (now == before) break;
          before = now;
        }
      }
    }
    memory.sync();
  }
  template <class T>
  static void add_atomically(Word& word, T value) {
    const std::atomic_ref<Word> at(word);
    Word before = at.load(std::memory_order_relaxed);
    while (!at.compare_exchange_weak(before, std::bit_cast<Word>(T(std::bit_cast<T>(before) + value)),
                                     std::memory_order_relaxed)) {
    }
  }

  GlobalMemory* memory_;
  headway::DistArray<Word> array_;
  std::vector<Word*> parts_;  // of each PE, in this process
  bool all_mapped_ = true;    // else some are reached by messages
};

using ArrayHandle = Handle<WordArray>;

/// Collective.
ArrayHandle make_array(std::size_t n, std::size_t bytes, std::size_t block) {
  Run& run = Run::get();
  std::shared_ptr<Slot> slot = shared_memory().lock();
  if (!slot) shared_memory() = slot = run.keep_until_end(std::make_unique<Memory>(run.pe())).slot();
  GlobalMemory& memory = static_cast<Memory&>(*slot->resource).global;
  std::unique_ptr<WordArray> array;
  if (block == 0) block = std::max<std::size_t>(1, (n + run.pe().size() - 1) / run.pe().size());
  if (bytes == 1) array = std::make_unique<ArrayOf<std::uint8_t>>(memory, n, block);
  if (bytes == 2) array = std::make_unique<ArrayOf<std::uint16_t>>(memory, n, block);
  if (bytes == 4) array = std::make_unique<ArrayOf<std::uint32_t>>(memory, n, block);
  if (bytes == 8) array = std::make_unique<ArrayOf<std::uint64_t>>(memory, n, block);
  if (!array)
    throw SettingError("elements of " + std::to_string(bytes) + " bytes are not allowed; allowed are 1, 2, 4 and 8");
  ArrayHandle made = run.keep_until_end(std::move(array));
  const Waiting waiting;
  barrier(run.pe());
  return made;
}

}  // namespace

void add_arrays(nb::module_& module) {
  nb::class_<ArrayHandle>(module, "Words")
      .def("read", [](ArrayHandle& h, const Indices& indices) { return h->read(indices); })
      .def("write",
           [](ArrayHandle& h, const Indices& indices, const Bytes& values) { return h->write(indices, values); })
      .def("add", [](ArrayHandle& h, char kind, const Indices& indices,
                     const Bytes& values) { return h->add(kind, indices, values); })
      .def("local", [](ArrayHandle& h) { return h->local(); })
      .def("global_indices", [](ArrayHandle& h) { return h->global_indices(); });
  module.def("make_array", &make_array);
  module.def("free_array", [](ArrayHandle& h) { Run::get().free(h.slot()); });
}

}  // namespace headway::python
