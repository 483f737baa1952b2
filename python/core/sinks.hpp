// SPDX-License-Identifier: BSD-3-Clause
/// Handlers: those of the library, and functions of Python.
#pragma once

#include <memory>
#include <string>

#include "bytes.hpp"
#include "channel.hpp"

namespace headway::python {

/// Calls `function` with an array of bytes, (items, stride), which it must not keep.
std::unique_ptr<Sink> make_python_sink(nb::object function);

/// Keeps all items. take() gives them away.
class AppendSink final : public Sink {
 public:
  explicit AppendSink(std::size_t bytes) : bytes_(bytes) {}
  void take(const std::byte* items, std::size_t count, std::size_t stride) override;
  nb::object take_all() { return kept_.take(); }

 private:
  std::size_t bytes_;
  Growing kept_;
};

/// Items are an index of 8 bytes and a value. `operation`: put, add, min, max, xor. `target` stays alive with the sink.
std::unique_ptr<Sink> make_update_sink(const std::string& operation, char kind, std::size_t value_bytes,
                                       WritableBytes target);

}  // namespace headway::python
