/// Which build of which program a process runs, so that differing ones can be refused at start.
#pragma once

#include <string>

namespace headway::launch {

/// The path of the running program.
std::string program_path();

/// The linker's build id of the running program in hex; a hash of its file if it has none.
std::string build_identity();

}  // namespace headway::launch
