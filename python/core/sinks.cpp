// SPDX-License-Identifier: BSD-3-Clause
#include "sinks.hpp"

#include <algorithm>
#include <type_traits>

#include "run.hpp"

namespace headway::python {
namespace {

class PythonSink final : public Sink {
 public:
  explicit PythonSink(nb::object function) : function_(std::move(function)) {}
  PythonSink(const PythonSink&) = delete;
  PythonSink& operator=(const PythonSink&) = delete;
  ~PythonSink() override {
    const nb::gil_scoped_acquire acquired;
    function_.reset();
  }

  void take(const std::byte* items, std::size_t count, std::size_t stride) override {
    const InHandler in_handler;
    using Raw = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<2>>;
    nb::object raw = nb::cast(Raw(items, {count, stride}), nb::rv_policy::reference);
    function_(raw);
    if (Py_REFCNT(raw.ptr()) > 1) {
      throw UsageError(
          "a handler has kept its batch, or a view of it, whose memory is used again when it returns: keep a copy, "
          "batch.copy()");
    }
  }

 private:
  nb::object function_;
};

struct Put {
  template <class T>
  static void apply(T& at, T value) {
    at = value;
  }
};
struct Add {
  template <class T>
  static void apply(T& at, T value) {
    at = T(at + value);
  }
};
struct Min {
  template <class T>
  static void apply(T& at, T value) {
    at = std::min(at, value);
  }
};
struct Max {
  template <class T>
  static void apply(T& at, T value) {
    at = std::max(at, value);
  }
};
struct Xor {
  template <class T>
  static void apply(T& at, T value) {
    if constexpr (std::is_integral_v<T>) at = T(at ^ value);  // make_update_sink() refuses others
  }
};

[[noreturn]] void refuse_index(std::int64_t index, std::size_t size) {
  throw UsageError("an item with index " + std::to_string(index) + " has arrived; the array of this PE allows 0 to " +
                   std::to_string(std::int64_t(size) - 1));
}

/// The target's memory belongs to an array that `owner` keeps alive.
template <class T, class Operation>
class UpdateSink final : public Sink {
 public:
  explicit UpdateSink(WritableBytes owner)
      : owner_(std::move(owner)), target_(reinterpret_cast<T*>(owner_.data())), size_(owner_.size() / sizeof(T)) {}

  void take(const std::byte* items, std::size_t count, std::size_t stride) override {
    T* const target = target_;
    const std::size_t size = size_;
    for (; count > 0; --count, items += stride) {
      std::int64_t index;
      T value;
      std::memcpy(&index, items, sizeof index);
      std::memcpy(&value, items + sizeof index, sizeof value);
      if (std::size_t(index) >= size) [[unlikely]]
        refuse_index(index, size);
      Operation::apply(target[index], value);
    }
  }

 private:
  WritableBytes owner_;
  T* target_;
  std::size_t size_;
};

class PutSink final : public Sink {
 public:
  PutSink(WritableBytes owner, std::size_t bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  void take(const std::byte* items, std::size_t count, std::size_t stride) override {
    const std::size_t size = owner_.size() / bytes_;
    for (; count > 0; --count, items += stride) {
      std::int64_t index;
      std::memcpy(&index, items, sizeof index);
      if (std::size_t(index) >= size) [[unlikely]]
        refuse_index(index, size);
      std::memcpy(owner_.data() + std::size_t(index) * bytes_, items + sizeof index, bytes_);
    }
  }

 private:
  WritableBytes owner_;
  std::size_t bytes_;
};

template <class Operation>
std::unique_ptr<Sink> make_numeric(char kind, std::size_t bytes, WritableBytes target) {
  return with_type(kind, bytes, [&]<class T>(T) -> std::unique_ptr<Sink> {
    return std::make_unique<UpdateSink<T, Operation>>(std::move(target));
  });
}

}  // namespace

std::unique_ptr<Sink> make_python_sink(nb::object function) {
  return std::make_unique<PythonSink>(std::move(function));
}

void AppendSink::take(const std::byte* items, std::size_t count, std::size_t stride) {
  std::byte* to = kept_.grow(count * bytes_);
  if (stride == bytes_) {
    std::memcpy(to, items, count * bytes_);
    return;
  }
  for (; count > 0; --count, items += stride, to += bytes_) std::memcpy(to, items, bytes_);
}

std::unique_ptr<Sink> make_update_sink(const std::string& operation, char kind, std::size_t bytes,
                                       WritableBytes target) {
  if (operation == "put") {
    switch (bytes) {
      case 1: return std::make_unique<UpdateSink<std::uint8_t, Put>>(std::move(target));
      case 2: return std::make_unique<UpdateSink<std::uint16_t, Put>>(std::move(target));
      case 4: return std::make_unique<UpdateSink<std::uint32_t, Put>>(std::move(target));
      case 8: return std::make_unique<UpdateSink<std::uint64_t, Put>>(std::move(target));
      default: return std::make_unique<PutSink>(std::move(target), bytes);
    }
  }
  if (operation == "add") return make_numeric<Add>(kind, bytes, std::move(target));
  if (operation == "min") return make_numeric<Min>(kind, bytes, std::move(target));
  if (operation == "max") return make_numeric<Max>(kind, bytes, std::move(target));
  if (operation == "xor") return make_numeric<Xor>(kind == 'f' ? '-' : 'u', bytes, std::move(target));
  throw SettingError("the operation '" + operation + "' is unknown; allowed are put, add, min, max, xor");
}

}  // namespace headway::python
