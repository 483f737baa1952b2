// SPDX-License-Identifier: BSD-3-Clause
/// headway._core: the library for the Python package, which checks all arguments before.
#include "run.hpp"

NB_MODULE(_core, module) {
  headway::python::add_run(module);
  headway::python::add_channels(module);
  headway::python::add_collectives(module);
  headway::python::add_rows(module);
  headway::python::add_arrays(module);
  headway::python::add_halo(module);
}
