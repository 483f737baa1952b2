// SPDX-License-Identifier: BSD-3-Clause
/// This process as a PE of a run, as the Python package sees it.
#pragma once

#include <nanobind/nanobind.h>

#include <csignal>
#include <cstddef>
#include <headway/headway.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headway::python {

namespace nb = nanobind;

/// Something that was made with the Pe, and that ends before the run. A Python object may live longer, so it holds a
/// shared_ptr, and the run another one.
struct Resource {
  virtual ~Resource() = default;
};

/// The run. All calls come from the thread that has called init().
class Run {
 public:
  static Run& get();

  /// UsageError before init() and after finish().
  Pe& pe();
  bool is_open() const { return pe_ != nullptr; }
  void open();
  /// Collective. Returns the status of the run.
  int close(int status);
  /// Collective. Waits for all messages, and destroys what Python no longer uses.
  std::uint64_t quiesce();

  template <class T>
  std::shared_ptr<T> keep(std::shared_ptr<T> resource) {
    resources_.push_back(resource);
    return resource;
  }

  /// Also where Python no longer uses it: for what all PEs destroy in the same order.
  void keep_until_end(std::shared_ptr<Resource> resource) { kept_.push_back(std::move(resource)); }
  void free(const std::shared_ptr<Resource>& resource) { std::erase(kept_, resource); }

 private:
  void destroy_unused();

  Pe* pe_ = nullptr;
  std::vector<std::shared_ptr<Resource>> resources_, kept_;
};

/// Whether the library waits or works: then SIGINT ends the process, because Python could not.
extern volatile std::sig_atomic_t inside_library;

/// Without Python's lock, for calls that may wait.
class Waiting {
 public:
  Waiting() : before_(inside_library) { inside_library = 1; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { inside_library = before_; }

 private:
  nb::gil_scoped_release released_;
  std::sig_atomic_t before_;
};

/// With Python's lock, in a handler.
class InHandler {
 public:
  InHandler() : before_(inside_library) { inside_library = 0; }
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;
  ~InHandler() { inside_library = before_; }

 private:
  nb::gil_scoped_acquire acquired_;
  std::sig_atomic_t before_;
};

void add_run(nb::module_& module);
void add_channels(nb::module_& module);
void add_collectives(nb::module_& module);
void add_rows(nb::module_& module);
void add_arrays(nb::module_& module);
void add_halo(nb::module_& module);

}  // namespace headway::python
