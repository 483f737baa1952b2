// SPDX-License-Identifier: BSD-3-Clause
#include "channel.hpp"

namespace headway::python {

ChannelMaker large_channel(std::size_t bytes) {
  if (bytes <= 32) return make_fixed<32>;
  if (bytes <= 40) return make_fixed<40>;
  if (bytes <= 48) return make_fixed<48>;
  if (bytes <= 64) return make_fixed<64>;
  if (bytes <= 96) return make_fixed<96>;
  if (bytes <= 128) return make_fixed<128>;
  if (bytes <= 256) return make_fixed<256>;
  if (bytes <= 1024) return make_fixed<1024>;
  return nullptr;
}

}  // namespace headway::python
