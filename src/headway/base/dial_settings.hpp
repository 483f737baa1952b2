// SPDX-License-Identifier: BSD-3-Clause
/// Delays that a run adds to its transport: HEADWAY_DIAL.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headway::base {

/// Limits of the dials, for messages and tests.
inline constexpr double dial_ns_max = 100e6;
inline constexpr double dial_ns_per_byte_max = 1000;

/// The parameters of LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995) that a run adds, and the cost of an item.
struct DialSettings {
  double overhead_ns = 0;       // o, of the sender and of the receiver, for each frame
  double item_overhead_ns = 0;  // item_o, of the receiver, for each message of a frame
  double gap_ns = 0;            // g, between two frames of one PE
  double latency_ns = 0;        // L
  double gap_per_byte_ns = 0;   // G
  bool random = false;          // each delay is drawn between 0 and twice its value, by `seed`
  std::uint64_t seed = 1;

  /// Reads a list such as "o=5us,L=10us,G=0.5ns,random", without spaces, of names that occur once. Throws SettingError
  /// with `what`, the text and the allowed values.
  static DialSettings parse(std::string_view what, std::string_view text);

  /// HEADWAY_DIAL and HEADWAY_SEED. Empty if HEADWAY_DIAL is not set. Throws SettingError.
  static std::optional<DialSettings> from_environment();
};

}  // namespace headway::base
