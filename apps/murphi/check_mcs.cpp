// SPDX-License-Identifier: BSD-3-Clause
#include "check_model.hpp"
#include "mcs.hpp"

namespace headway::murphi {
namespace {

template <std::size_t processes>
using WithCompareAndSwap = Mcs<processes, true>;
template <std::size_t processes>
using WithSwapAlone = Mcs<processes, false>;

}  // namespace

int check_mcs(Pe& pe, const Arguments& arguments) {
  if (arguments.model == "mcs") return check_model_of<WithCompareAndSwap, 2, 4>(pe, arguments);
  return check_model_of<WithSwapAlone, 2, 3>(pe, arguments);
}

}  // namespace headway::murphi
