/// Addresses in running processes as functions and lines of source.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headway::report {

/// Names the frames of stacks by addr2line, where that is installed, else as file+offset. Never waits: start(), then
/// look whether it is done().
class Symbols {
 public:
  Symbols() = default;
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  /// Ends what still runs.
  ~Symbols();

  /// Adds a stack of a process, innermost first, of return addresses (which lie behind their calls) but for an exact
  /// first one. Returns its number. The process lives.
  std::size_t add(pid_t process, const std::vector<std::uint64_t>& addresses, bool first_is_exact);

  void start(std::int64_t now, std::int64_t timeout_ns);
  /// True when all is named, or will not be in time.
  bool done(std::int64_t now);

  /// The program's own frames of a stack, at most `frames_max`; those of the library if there are none and the PE was
  /// interrupted in it.
  std::vector<std::string> text(std::size_t stack, std::size_t frames_max) const;

 private:
  struct Mapping {
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::string file;
  };
  struct Frame {
    std::string file;           // empty: in none
    std::uint64_t address = 0;  // as the file has it
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
  using Names = std::vector<std::string>;  // of an address: several where calls are inlined, innermost first

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
