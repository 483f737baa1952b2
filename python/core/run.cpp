// SPDX-License-Identifier: BSD-3-Clause
#include "run.hpp"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <headway/am/engine.hpp>
#include <headway/launch/attach.hpp>

namespace headway::python {

volatile std::sig_atomic_t inside_library = 0;

namespace {

void (*python_interrupt)(int) = nullptr;

/// Python's handler only notes the signal, and looks at the note between its own instructions.
void interrupt(int signal) {
  if (inside_library != 0) {
    std::signal(signal, SIG_DFL);
    static_cast<void>(std::raise(signal));
  } else if (python_interrupt != nullptr) {
    python_interrupt(signal);
  }
}

void watch_interrupts() {
  struct sigaction now = {};
  if (::sigaction(SIGINT, nullptr, &now) != 0) return;
  if (now.sa_handler == SIG_IGN || now.sa_handler == SIG_DFL || now.sa_handler == &interrupt) return;
  python_interrupt = now.sa_handler;
  now.sa_handler = &interrupt;
  ::sigaction(SIGINT, &now, nullptr);
}

std::string with_pe(const char* text) {
  return Run::get().is_open() ? "PE " + std::to_string(Run::get().pe().id()) + ": " + text : text;
}

}  // namespace

Run& Run::get() {
  static Run& one = *new Run;  // what Python still holds at exit uses it
  return one;
}

Pe& Run::pe() {
  if (pe_ == nullptr) throw UsageError("there is no run: call headway.init() before, and nothing after finish()");
  return *pe_;
}

void Run::open() {
  const Waiting waiting;
  pe_ = &attach();
}

int Run::close(int status) {
  pe();
  {
    const Waiting waiting;
    if (status == 0) pe_->quiesce();
  }
  for (auto* const slots : {&resources_, &kept_}) {
    for (; !slots->empty(); slots->pop_back()) slots->back()->resource.reset();  // the last made first
  }
  const Waiting waiting;
  pe_ = nullptr;
  return detach(status);
}

std::uint64_t Run::quiesce() {
  std::uint64_t handled;
  {
    const Waiting waiting;
    handled = pe().quiesce();
  }
  destroy_unused();
  return handled;
}

void Run::destroy_unused() {
  std::erase_if(resources_, [](const auto& slot) { return slot.use_count() == 1; });
}

void add_run(nb::module_& module) {
  const nb::exception<std::runtime_error> base(module, "HeadwayError", PyExc_Exception);
  static nb::object usage = nb::exception<UsageError>(module, "UsageError", base.ptr());
  static nb::object setting = nb::exception<SettingError>(module, "SettingError", base.ptr());
  static nb::object system = nb::exception<SystemError>(module, "SystemError", base.ptr());
  static nb::object failure = base;
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const UsageError& e) {
      PyErr_SetString(usage.ptr(), with_pe(e.what()).c_str());
    } catch (const SettingError& e) {
      PyErr_SetString(setting.ptr(), with_pe(e.what()).c_str());
    } catch (const SystemError& e) {
      PyErr_SetString(system.ptr(), with_pe(e.what()).c_str());
    } catch (const nb::python_error&) {
      throw;
    } catch (const nb::builtin_exception&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::runtime_error& e) {
      PyErr_SetString(failure.ptr(), with_pe(e.what()).c_str());
    }
  });

  module.def("init", [] {
    Run::get().open();
    watch_interrupts();
  });
  module.def("is_open", [] { return Run::get().is_open(); });
  module.def("finish", [](int status) { return Run::get().close(status); });
  module.def("fail", [](const std::string& reason) { abandon(reason); });
  module.def("id", [] { return std::size_t(Run::get().pe().id()); });
  module.def("size", [] { return Run::get().pe().size(); });
  module.def("quiesce", [] { return Run::get().quiesce(); });
  module.def("barrier", [] {
    Pe& pe = Run::get().pe();
    const Waiting waiting;
    barrier(pe);
  });
  module.def("progress", [] {
    Pe& pe = Run::get().pe();
    const Waiting waiting;
    return pe.progress();
  });
  module.def("settle", [] {
    Pe& pe = Run::get().pe();
    const Waiting waiting;
    settle(pe);
  });
}

}  // namespace headway::python
