// SPDX-License-Identifier: BSD-3-Clause
// What GCC warns of although a header tells it not to: it forgets that where the header comes precompiled.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

void send_small(headway::Pe& pe, std::span<const std::uint64_t> words, std::string_view text) {
  headway::Aggregator<std::uint32_t, std::string_view, std::span<const std::uint64_t>> views(pe);
  views.on([](std::uint32_t, std::string_view, std::span<const std::uint64_t>) {});
  views.send(1, 3, text, words);
  headway::rpc_ff(
      pe, 1, [](std::string_view, const std::vector<std::string>&) {}, text, std::vector<std::string>());
}
