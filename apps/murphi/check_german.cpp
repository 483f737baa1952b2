// SPDX-License-Identifier: BSD-3-Clause
#include "check_model.hpp"
#include "german.hpp"

namespace headway::murphi {

int check_german(Pe& pe, const Arguments& arguments) { return check_model_of<German, 2, 4>(pe, arguments); }

}  // namespace headway::murphi
