// SPDX-License-Identifier: BSD-3-Clause
/// Collectives on arrays. Each call returns a Pending at once.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "bytes.hpp"
#include "pending.hpp"
#include "run.hpp"

namespace headway::python {
namespace {

struct Smaller {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return std::min(a, b);
  }
};
struct Larger {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return std::max(a, b);
  }
};

template <class T, class Operation>
PendingHandle start_allreduce(const Bytes& values, Operation operation) {
  Pe& pe = Run::get().pe();
  const std::span<const T> span(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T));
  const auto start = [&] {
    const Waiting waiting;
    return allreduce_async(pe, span, operation);
  };
  return make_pending(start(), [](std::vector<T>&& result) { return to_array(std::move(result)); });
}

PendingHandle start_allreduce(const std::string& operation, char kind, std::size_t bytes, const Bytes& values) {
  // Bits do not depend on the width of their words.
  if (operation == "and") return start_allreduce<std::uint8_t>(values, std::bit_and<>());
  if (operation == "or") return start_allreduce<std::uint8_t>(values, std::bit_or<>());
  if (operation == "xor") return start_allreduce<std::uint8_t>(values, std::bit_xor<>());
  return with_type(kind, bytes, [&]<class T>(T) -> PendingHandle {
    if constexpr (sizeof(T) >= 4) {
      if (operation == "sum") return start_allreduce<T>(values, std::plus<>());
      if (operation == "min") return start_allreduce<T>(values, Smaller());
      if (operation == "max") return start_allreduce<T>(values, Larger());
    }
    throw SettingError("the operation '" + operation + "' is not allowed for values of " + std::to_string(bytes) +
                       " bytes; allowed are sum, min, max (4 and 8 bytes), and, or, xor");
  });
}

PendingHandle start_broadcast(const Bytes& values, std::size_t root) {
  Pe& pe = Run::get().pe();
  const auto start = [&] {
    const Waiting waiting;
    return broadcast_async(pe, span_of(values), root);
  };
  return make_pending(start(), [](std::vector<std::uint8_t>&& result) { return to_array(std::move(result)); });
}

nb::object to_list(std::vector<std::vector<std::uint8_t>>&& blocks) {
  nb::list list;
  for (auto& block : blocks) list.append(to_array(std::move(block)));
  return list;
}

PendingHandle start_all_gather(const Bytes& values) {
  Pe& pe = Run::get().pe();
  const auto start = [&] {
    const Waiting waiting;
    return all_gather_async(pe, span_of(values));
  };
  return make_pending(start(), to_list);
}

PendingHandle start_all_to_all(const std::vector<Bytes>& blocks) {
  Pe& pe = Run::get().pe();
  std::vector<std::vector<std::uint8_t>> copies;
  for (const Bytes& block : blocks) copies.emplace_back(block.data(), block.data() + block.size());
  const auto start = [&] {
    const Waiting waiting;
    return all_to_all_async(pe, copies);
  };
  return make_pending(start(), to_list);
}

PendingHandle start_barrier() {
  Pe& pe = Run::get().pe();
  const auto start = [&] {
    const Waiting waiting;
    return barrier_async(pe);
  };
  return make_pending(start());
}

}  // namespace

void add_collectives(nb::module_& module) {
  nb::class_<PendingHandle>(module, "Pending")
      .def("ready", [](PendingHandle& handle) { return handle->ready(); })
      .def("take", [](PendingHandle& handle) { return handle->take(); });
  module.def("allreduce", [](const std::string& operation, char kind, std::size_t bytes, const Bytes& values) {
    return start_allreduce(operation, kind, bytes, values);
  });
  module.def("broadcast", &start_broadcast);
  module.def("all_gather", &start_all_gather);
  module.def("all_to_all", &start_all_to_all);
  module.def("barrier_async", &start_barrier);
}

}  // namespace headway::python
