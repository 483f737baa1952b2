// SPDX-License-Identifier: BSD-3-Clause
/// The library that `headway mpi-report` preloads into everything that it starts. A launcher, a shell or another
/// program without MPI goes on as it is. A program with an MPI starts again, before main(), with the library for that
/// MPI instead.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int find_standard_abi(dl_phdr_info* library, std::size_t /*bytes*/, void* found) {
  if (std::strstr(library->dlpi_name, "libmpi_abi.so") == nullptr) return 0;
  *static_cast<bool*>(found) = true;
  return 1;
}

const char* mpi_here() {
  bool standard = false;
  dl_iterate_phdr(find_standard_abi, &standard);
  if (standard) return "mpi-abi";
  if (dlsym(RTLD_DEFAULT, "MPI_Init") == nullptr) return nullptr;
  return dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr ? "openmpi" : "mpich";
}

/// The value of LD_PRELOAD with `other` in place of `own`.
std::string with_other(const std::string& value, const std::string& own, const std::string& other) {
  const std::size_t at = value.find(own);
  return at == std::string::npos ? other : std::string(value).replace(at, own.size(), other);
}

[[gnu::constructor]] void choose(int /*argc*/, char** argv, char** /*environment*/) {
  const char* const folder = std::getenv("HEADWAY_MPI_REPORT_DIR");
  const char* const value = std::getenv("LD_PRELOAD");
  const char* const mpi = mpi_here();
  Dl_info own{};
  if (folder == nullptr || value == nullptr || mpi == nullptr || dladdr(reinterpret_cast<void*>(choose), &own) == 0)
    return;
  const std::string path = own.dli_fname;
  const std::string other = path.substr(0, path.rfind(".so")) + "-" + mpi + ".so";
  if (::access(other.c_str(), R_OK) != 0) {
    const int marker = ::open((std::string(folder) + "/missing-" + mpi).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (marker >= 0) ::close(marker);
    return;
  }
  ::setenv("LD_PRELOAD", with_other(value, path, other).c_str(), 1);
  ::execv("/proc/self/exe", argv);
  ::setenv("LD_PRELOAD", value, 1);  // it cannot start again: it runs uncounted
}

}  // namespace
