// SPDX-License-Identifier: BSD-3-Clause
#include "make_of.hpp"

namespace values {

std::unique_ptr<Made> make_small(const headway::Team& team, const Call& call) {
  switch (call.type) {
    case Type::i8: return make_of<std::int8_t>(team, call);
    case Type::i16: return make_of<std::int16_t>(team, call);
    case Type::u8: return make_of<std::uint8_t>(team, call);
    case Type::u16: return make_of<std::uint16_t>(team, call);
    default: throw std::logic_error("it is of another file");
  }
}

std::unique_ptr<Made> make(const headway::Team& team, const Call& call) {
  switch (call.type) {
    case Type::i8:
    case Type::i16:
    case Type::u8:
    case Type::u16: return make_small(team, call);
    case Type::i32:
    case Type::i64:
    case Type::u32:
    case Type::u64: return make_wide(team, call);
    default: return make_real(team, call);
  }
}

}  // namespace values
