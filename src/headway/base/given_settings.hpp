/// The settings that somebody has given this process, as text: for processes that compare theirs.
#pragma once

#include <string>
#include <vector>

namespace headway {

/// "HEADWAY_PES=4", ..., sorted; without those that say where files are, and those by which launchers speak.
std::vector<std::string> given_settings();

}  // namespace headway
