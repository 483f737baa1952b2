// SPDX-License-Identifier: BSD-3-Clause
#include "check_model.hpp"
#include "peterson.hpp"

namespace headway::murphi {

int check_peterson(Pe& pe, const Arguments& arguments) { return check_model_of<Peterson, 2, 6>(pe, arguments); }

}  // namespace headway::murphi
