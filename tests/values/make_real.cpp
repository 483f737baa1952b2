// SPDX-License-Identifier: BSD-3-Clause
#include "make_of.hpp"

namespace values {

std::unique_ptr<Made> make_real(const headway::Team& team, const Call& call) {
  switch (call.type) {
    case Type::f32: return make_of<float>(team, call);
    case Type::f64: return make_of<double>(team, call);
    case Type::matrix: return make_of<Matrix>(team, call);
    default: throw std::logic_error("it is of another file");
  }
}

}  // namespace values
