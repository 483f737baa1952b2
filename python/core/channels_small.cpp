// SPDX-License-Identifier: BSD-3-Clause
#include "channel.hpp"

namespace headway::python {

ChannelMaker small_channel(std::size_t bytes) {
  if (bytes <= 1) return make_fixed<1>;
  if (bytes <= 2) return make_fixed<2>;
  if (bytes <= 4) return make_fixed<4>;
  if (bytes <= 8) return make_fixed<8>;
  if (bytes <= 12) return make_fixed<12>;
  if (bytes <= 16) return make_fixed<16>;
  if (bytes <= 20) return make_fixed<20>;
  if (bytes <= 24) return make_fixed<24>;
  return nullptr;
}

}  // namespace headway::python
