// SPDX-License-Identifier: BSD-3-Clause
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/report/symbols.hpp>
#include <iomanip>
#include <sstream>

namespace headway::report {
namespace {

/// Whether addresses in the file equal those in memory: the file is not position-independent.
bool has_fixed_addresses(const std::string& file) {
  Elf64_Ehdr header{};
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  return header.e_type == ET_EXEC;
}

/// "f(int) at /path/file.cpp:3" without unknown parts. Empty if nothing is known.
std::string without_unknown_parts(std::string name) {
  for (const char* unknown : {" at ??:?", " at ??:0", ":?", ":0"}) {
    if (name.ends_with(unknown)) name.resize(name.size() - std::string_view(unknown).size());
  }
  if (const auto more = name.find(" (discriminator"); more != name.npos) name.resize(more);
  return name == "??" ? "" : name;
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(parts, [&](const char* part) { return text.find(part) != text.npos; });
}

/// Whether the frame belongs to the library, or to the standard library between it and the program.
bool is_library_frame(const std::string& name) {
  if (const auto at = name.rfind(" at /"); at != name.npos) {
    return contains_any(
        name.substr(at),
        {"/headway/am/", "/headway/launch/", "/headway/report/", "/headway/collective/", "/headway/aggregate/",
         "/headway/call/", "/headway/transfer/", "/headway/transport/", "/headway/base/", "/include/c++/"});
  }
  return contains_any(
      name.substr(0, name.find('(')),
      {"headway::am::", "headway::launch::", "headway::report::", "headway::collective::", "headway::aggregate::",
       "headway::call::", "headway::transfer::", "headway::local::", "headway::transport::", "headway::base::",
       "headway::Pe::", "headway::run<", "std::_Function_handler", "std::__invoke"});
}

/// The function in which a PE begins.
bool is_outermost(const std::string& name) { return name.find("headway::launch::ProcessPes::run_pe") != name.npos; }

/// The name as the page shows it: file without folders, long types cut.
std::string shown(std::string name) {
  constexpr std::size_t function_bytes_max = 120;
  const auto at = name.rfind(" at /");
  const std::string place = at == name.npos ? "" : " at " + name.substr(name.rfind('/') + 1);
  if (at != name.npos) name.resize(at);
  if (name.starts_with("std::_Function_handler<")) name = "a function object";  // the program's code is inlined into it
  if (name.size() > function_bytes_max) name = name.substr(0, function_bytes_max) + "...";
  return name + place;
}

}  // namespace

Symbols::~Symbols() {
  for (const Addr2line& tool : running_) {
    kill(tool.pid, SIGKILL);
    while (waitpid(tool.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    close(tool.output);
  }
}

const std::vector<Symbols::Mapping>& Symbols::mappings_of(pid_t process) {
  const auto [at, fresh] = mappings_.try_emplace(process);
  if (!fresh) return at->second;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char dash, permissions[8], device[16];
    std::istringstream fields(line);
    std::string inode;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> std::setw(8) >> permissions >> mapping.offset >>
        std::setw(16) >> device >> inode;
    std::getline(fields >> std::ws, mapping.file);
    if (!mapping.file.empty()) at->second.push_back(std::move(mapping));
  }
  return at->second;
}

Symbols::Frame Symbols::frame_at(pid_t process, std::uint64_t address) {
  const std::vector<Mapping>& mappings = mappings_of(process);
  const auto mapping =
      std::ranges::find_if(mappings, [&](const Mapping& m) { return m.begin <= address && address < m.end; });
  if (mapping == mappings.end()) return {"", address};
  if (has_fixed_addresses(mapping->file)) return {mapping->file, address};
  const auto first = std::ranges::find_if(mappings, [&](const Mapping& m) { return m.file == mapping->file; });
  return {mapping->file, address - (first->begin - first->offset)};
}

std::size_t Symbols::add(pid_t process, const std::vector<std::uint64_t>& addresses, bool first_is_exact) {
  std::vector<Frame>& frames = stacks_.emplace_back(Stack{{}, first_is_exact}).frames;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool exact = i == 0 && first_is_exact;
    const Frame frame = frame_at(process, addresses[i] - (exact ? 0 : 1));
    if (!frame.file.empty()) names_[frame.file].try_emplace(frame.address);
    frames.push_back(frame);
  }
  return stacks_.size() - 1;
}

void Symbols::start(std::int64_t now, std::int64_t timeout_ns) {
  until_ = now + timeout_ns;
  for (const auto& [file, addresses] : names_) start_addr2line(file, addresses);
}

void Symbols::start_addr2line(const std::string& file, const std::map<std::uint64_t, Names>& addresses) {
  const int output = memfd_create("headway-names", MFD_CLOEXEC);
  if (output < 0) return;
  std::vector<std::string> words = {"addr2line", "-a", "-f", "-C", "-i", "-p", "-e", file};
  for (const auto& [address, names] : addresses) words.push_back(fmt::format("{:#x}", address));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);  // so that Ctrl-C does not end it
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  if (posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ) == 0) {
    running_.push_back({pid, output, file});
  } else {
    close(output);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

bool Symbols::done(std::int64_t now) {
  std::erase_if(running_, [&](Addr2line& tool) {
    if (now >= until_) kill(tool.pid, SIGKILL);
    if (waitpid(tool.pid, nullptr, now >= until_ ? 0 : WNOHANG) != tool.pid) return false;
    read_names(tool);
    close(tool.output);
    return true;
  });
  return running_.empty();
}

/// Lines "ADDRESS: function at file:line", each followed by " (inlined by) function at file:line" as often as it holds.
void Symbols::read_names(Addr2line& tool) {
  std::string text;
  char buffer[4096];
  lseek(tool.output, 0, SEEK_SET);
  for (ssize_t got; (got = read(tool.output, buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(got));
  std::istringstream lines(text);
  Names* names = nullptr;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view inlined = " (inlined by) ";
    if (line.starts_with(inlined)) {
      if (names != nullptr) names->push_back(without_unknown_parts(line.substr(inlined.size())));
    } else if (const auto colon = line.find(": "); line.starts_with("0x") && colon != line.npos) {
      names = &names_[tool.file][std::stoull(line.substr(2, colon - 2), nullptr, 16)];
      *names = {without_unknown_parts(line.substr(colon + 2))};
    }
  }
}

std::vector<std::string> Symbols::text(std::size_t stack, std::size_t frames_max) const {
  std::vector<std::string> own, all;
  // The process has ended meanwhile.
  if (std::ranges::all_of(stacks_[stack].frames, [](const Frame& frame) { return frame.file.empty(); })) return own;
  for (const Frame& frame : stacks_[stack].frames) {
    Names names;
    if (const auto file = names_.find(frame.file); file != names_.end()) names = file->second.at(frame.address);
    if (names.empty() || names.front().empty()) {
      names = {frame.file.empty()
                   ? fmt::format("{:#x}", frame.address)
                   : fmt::format("{}+{:#x}", std::filesystem::path(frame.file).filename().string(), frame.address)};
    }
    for (const std::string& name : names) {
      all.push_back(shown(name));
      if (!is_library_frame(name)) own.push_back(all.back());
    }
    if (is_outermost(names.back())) break;
  }
  std::vector<std::string>& lines = own.empty() && stacks_[stack].first_is_exact ? all : own;
  if (lines.size() > frames_max) lines.resize(frames_max);
  return lines;
}

}  // namespace headway::report
