// SPDX-License-Identifier: BSD-3-Clause
/// Handlers without messages.
#pragma once

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <utility>

namespace headway::testing {

/// Runs f() as a handler of this PE at its next progress.
template <class F>
void later(Pe& pe, F f) {
  pe.engine().run_later(pe.engine().scope(), std::move(f));
}

/// The same, and the progress.
template <class F>
void in_handler(Pe& pe, F f) {
  bool ran = false;
  later(pe, [&] {
    f();
    ran = true;
  });
  while (pe.progress() || !ran) {
  }
}

}  // namespace headway::testing
