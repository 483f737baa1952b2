// SPDX-License-Identifier: BSD-3-Clause
#include "make_of.hpp"

namespace values {

std::unique_ptr<Made> make_wide(const headway::Team& team, const Call& call) {
  switch (call.type) {
    case Type::i32: return make_of<std::int32_t>(team, call);
    case Type::i64: return make_of<std::int64_t>(team, call);
    case Type::u32: return make_of<std::uint32_t>(team, call);
    case Type::u64: return make_of<std::uint64_t>(team, call);
    default: throw std::logic_error("it is of another file");
  }
}

}  // namespace values
