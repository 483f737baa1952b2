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
      : memory_(&memory), array_(Run::get().pe(), n, block) {}

  nb::object read(const Indices& indices) override {
    const std::size_t count = indices.size();
    Growing values;
    auto* const to = reinterpret_cast<Word*>(values.grow(count * sizeof(Word)));
    {
      const Waiting waiting;
      GlobalMemory& memory = *memory_;
      const auto places = array_.places();
      for (std::size_t k = 0; k < count; ++k) memory.get(places[checked(indices.data()[k])], to + k);
      memory.sync();
    }
    return values.take();
  }

  void write(const Indices& indices, const Bytes& values) override {
    const auto* const from = reinterpret_cast<const Word*>(values.data());
    const std::size_t count = indices.size(), step = values.size() == sizeof(Word) ? 0 : 1;
    const Waiting waiting;
    GlobalMemory& memory = *memory_;
    const auto places = array_.places();
    for (std::size_t k = 0; k < count; ++k) memory.put(places[checked(indices.data()[k])], from[k * step]);
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
    return nb::cast(Array(reinterpret_cast<std::uint8_t*>(local.data()), {local.size_bytes()}), nb::rv_policy::reference);
  }

  nb::object global_indices() override {
    std::vector<std::int64_t> indices(array_.local().size());
    for (std::size_t j = 0; j < indices.size(); ++j)
      indices[j] = std::int64_t(array_.layout().global(Run::get().pe().id(), j));
    return to_array(std::move(indices));
  }

 private:
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
    const auto places = array_.places();
    for (std::size_t k = 0; k < count; ++k) {
      const GlobalPtr<Word> place = places[checked(indices.data()[k])];
      const T value = from[k * step];
      if constexpr (std::is_integral_v<T>) {
        memory.add(place, Word(value));
      } else if (Word* const at = memory.local(place)) {
        add_atomically(*at, value);
      } else {  // far away there is no atomic sum of floating-point numbers
        Word before = memory.read(place);
        for (;;) {
          const Word now = memory.compare_exchange(place, before, std::bit_cast<Word>(T(std::bit_cast<T>(before) + value)));
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
      .def("write", [](ArrayHandle& h, const Indices& indices, const Bytes& values) {
        return h->write(indices, values);
      })
      .def("add", [](ArrayHandle& h, char kind, const Indices& indices, const Bytes& values) {
        return h->add(kind, indices, values);
      })
      .def("local", [](ArrayHandle& h) { return h->local(); })
      .def("global_indices", [](ArrayHandle& h) { return h->global_indices(); });
  module.def("make_array", &make_array);
  module.def("free_array", [](ArrayHandle& h) { Run::get().free(h.slot()); });
}

}  // namespace headway::python
