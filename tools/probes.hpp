// SPDX-License-Identifier: BSD-3-Clause
/// Tests of the kernel's permissions. A probe returns why it failed, or an empty string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace headway::tools {

/// An anonymous shared mapping, written by one process and read by another.
std::string probe_shared_memory();

/// A descriptor for a process, which the supervisor waits on.
std::string probe_pidfd();

/// process_vm_readv from one process in its sibling, which is how PEs of a run stand to each other.
std::string probe_cross_memory_attach();

/// Opens a sibling's descriptor through /proc, as processes of a launcher do to map the memory of their host.
std::string probe_descriptor_of_sibling();

double load_average();  // of the last minute
std::uint64_t open_files_limit();

/// The first line of a file, or empty.
std::string first_line(const std::string& path);

}  // namespace headway::tools
