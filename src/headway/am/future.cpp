// SPDX-License-Identifier: BSD-3-Clause
#include <headway/am/future.hpp>
#include <string>

namespace headway::am {

void throw_promise_used(const char* what) { throw UsageError(std::string("a promise is used twice: ") + what); }

}  // namespace headway::am
