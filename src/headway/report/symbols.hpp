// SPDX-License-Identifier: BSD-3-Clause
/// Translates addresses in running processes to functions and source lines.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headway::report {

/// Names the frames of stacks by addr2line if it is installed, else as file+offset. Never waits: call start(), then
/// done() until it returns true.
class Symbols {
 public:
  Symbols() = default;
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  /// Ends running addr2line processes.
  ~Symbols();

  /// Adds the stack of a living process, innermost frame first. Addresses are return addresses, which lie behind
  /// their calls; only the first may be exact. Returns the stack's number.
  std::size_t add(pid_t process, const std::vector<std::uint64_t>& addresses, bool first_is_exact);

  void start(std::int64_t now, std::int64_t timeout_ns);
  /// True when all addresses are named, or the timeout has passed.
  bool done(std::int64_t now);

  /// The frames of the program in a stack, at most `frames_max`. The frames of the library if there are none and the
  /// PE was interrupted in the library.
  std::vector<std::string> text(std::size_t stack, std::size_t frames_max) const;

 private:
  struct Mapping {
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::string file;
  };
  struct Frame {
    std::string file;           // empty: in no file
    std::uint64_t address = 0;  // address in the file
  };
  struct Stack {
    std::vector<Frame> frames;
    bool first_is_exact = false;
  };
  struct Addr2line {
    pid_t pid = -1;
    int output = -1;
    std::string file;
  };
  using Names = std::vector<std::string>;  // names of an address: several if calls are inlined, innermost first

  const std::vector<Mapping>& mappings_of(pid_t process);
  Frame frame_at(pid_t process, std::uint64_t address);
  void start_addr2line(const std::string& file, const std::map<std::uint64_t, Names>& addresses);
  void read_names(Addr2line& tool);

  std::map<pid_t, std::vector<Mapping>> mappings_;
  std::vector<Stack> stacks_;
  std::map<std::string, std::map<std::uint64_t, Names>> names_;  // by file and address
  std::vector<Addr2line> running_;
  std::int64_t until_ = 0;
};

}  // namespace headway::report
