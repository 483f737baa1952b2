// SPDX-License-Identifier: BSD-3-Clause
/// The function that most tests of rpc() call, and the PE that they call it on.
#pragma once

#include <cstddef>
#include <headway/call/rpc.hpp>

namespace headway::rpc_test {

inline int twice(int n) { return 2 * n; }

inline std::size_t next_of(Pe& pe) { return (pe.id() + 1) % pe.size(); }

}  // namespace headway::rpc_test
