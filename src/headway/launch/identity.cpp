// SPDX-License-Identifier: BSD-3-Clause
#include <elf.h>
#include <fmt/format.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <headway/base/bytes.hpp>
#include <headway/launch/identity.hpp>

namespace headway::launch {
namespace {

int find_build_id(dl_phdr_info* info, std::size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* content = name + base::align_up(note.n_namesz, 4);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        std::string& hex = *static_cast<std::string*>(result);
        for (unsigned b = 0; b < note.n_descsz; ++b) hex += fmt::format("{:02x}", std::uint8_t(content[b]));
        return 1;
      }
      at = content + base::align_up(note.n_descsz, 4);
    }
  }
  return 1;  // the first object is the program itself: stop
}

}  // namespace

std::string program_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, std::size_t(length)) : std::string("this program");
}

std::string build_identity() {
  std::string identity;
  dl_iterate_phdr(find_build_id, &identity);
  if (!identity.empty()) return identity;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c; file.get(c);) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace headway::launch
