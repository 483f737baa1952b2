// SPDX-License-Identifier: BSD-3-Clause
#include "check_model.hpp"
#include "directory.hpp"

namespace headway::murphi {

int check_directory(Pe& pe, const Arguments& arguments) { return check_model_of<Directory, 2, 4>(pe, arguments); }

}  // namespace headway::murphi
