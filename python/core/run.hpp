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

/// Something that was made with the Pe, and that ends before the run.
struct Resource {
  virtual ~Resource() = default;
};

/// The place of a resource. Python objects may live longer than the run, which empties it.
struct Slot {
  std::unique_ptr<Resource> resource;
};

/// A resource as a Python object holds it.
template <class T>
class Handle {
 public:
  explicit Handle(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
  /// UsageError after the end of the run.
  T* operator->() const;
  const std::shared_ptr<Slot>& slot() const { return slot_; }

 private:
  std::shared_ptr<Slot> slot_;
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

  /// Destroyed at a quiescence after Python has dropped it.
  template <class T>
  Handle<T> keep(std::unique_ptr<T> resource) {
    resources_.push_back(std::make_shared<Slot>(std::move(resource)));
    return Handle<T>(resources_.back());
  }
  /// Destroyed by free() or at the end: for what all PEs destroy in the same order.
  template <class T>
  Handle<T> keep_until_end(std::unique_ptr<T> resource) {
    kept_.push_back(std::make_shared<Slot>(std::move(resource)));
    return Handle<T>(kept_.back());
  }
  void free(const std::shared_ptr<Slot>& slot) {
    slot->resource.reset();
    std::erase(kept_, slot);
  }

 private:
  void destroy_unused();

  Pe* pe_ = nullptr;
  std::vector<std::shared_ptr<Slot>> resources_, kept_;
};

template <class T>
T* Handle<T>::operator->() const {
  Run::get().pe();
  if (!slot_->resource) throw UsageError("this object belongs to a run that has ended, or it was freed");
  return static_cast<T*>(slot_->resource.get());
}

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
