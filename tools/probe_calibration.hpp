// SPDX-License-Identifier: BSD-3-Clause
/// `headway probe --calibrate`: for each dialled value the observed o, g, L and G.
///
/// Source of the matrix: Martin, Vahdat, Culler, Anderson, "Effects of Communication Latency, Overhead, and Bandwidth
/// in a Cluster Architecture", ISCA 1997.
#pragma once

#include <functional>
#include <probe/result.hpp>
#include <string>
#include <vector>

#include "probe_launches.hpp"

namespace headway::tools {

/// One setting: a dial and its value, in ns, of G in ns a byte. Without delays the dial is "none".
struct DialSetting {
  std::string dial = "none";
  double dialled_ns = 0;

  std::string text() const;  // of HEADWAY_DIAL
};

struct CalibratedSetting {
  DialSetting setting;
  bench::ProbeResult result;
};

/// The dials that exist.
const std::vector<std::string>& dial_names();

/// The setting without delays, then each dial with each value above 0. A value of G is for 1000 bytes.
std::vector<DialSetting> settings_of(const std::vector<std::string>& dials, const std::vector<double>& values_ns);

/// All settings in turns, for as many launches as the request says. Calls step() with the name of the next launch.
std::vector<CalibratedSetting> calibrate(const ProbeTarget& target, const ProbeRequest& request,
                                         const std::vector<DialSetting>& settings,
                                         const std::function<void(const std::string&)>& step);

/// The difference between the value that was read back and the dialled one, in ns, of G in ns a byte. o, item_o and L
/// are read above the values without delays. The network's own g and G pass meanwhile, so they are lower bounds. Of o,
/// which is read at the sender and at the receiver, the larger difference.
double error_ns(const CalibratedSetting& setting, const bench::ProbeResult& without);

/// The matrix as a table, in Markdown or for a terminal, and the range in which each dial is read back within 5 %. The
/// setting without delays is first. The last line counts the settings that are read back within 5 % or 200 ns.
std::string matrix_of(const std::vector<CalibratedSetting>& settings, bool markdown);

/// A page with the matrix, and how to read it.
std::string page_of(const ProbeTarget& target, std::size_t launches, const std::vector<CalibratedSetting>& settings);

}  // namespace headway::tools
