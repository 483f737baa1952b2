/// The process that starts the others and watches over them: names the one that died and why, ends the others, passes
/// their output on line by line, and never is a PE.
#pragma once

#include <sys/types.h>

#include <functional>
#include <headway/base/settings.hpp>
#include <headway/transport/local/segment.hpp>
#include <string>
#include <vector>

namespace headway::am {

class Supervisor {
 public:
  /// Makes the shared memory for the run. Throws SystemError.
  explicit Supervisor(const Settings& settings);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  /// Starts one process per call of `child`, which must not return: it is called in the new process with its number and
  /// the text that says how to attach. `on_terminal`: that process keeps standard input, output and error; -1: none.
  /// Then watches until all have ended. Returns the exit status of the run. Throws SystemError.
  int run(const std::function<void(std::size_t process, const std::string& attach)>& child, int on_terminal = -1);

 private:
  struct Process;
  struct Signals;

  void start(std::size_t process, const std::function<void(std::size_t, const std::string&)>& child, bool on_terminal,
             const Signals& signals);
  int watch(Signals& signals);
  void note_end(Process& process);
  void explain_end(const Process& process);
  void end_others();
  void check_for_stall();
  std::string pes_of(std::size_t process) const;
  void read_output(Process& process, int stream);
  void write_out(int stream, const char* data, std::size_t bytes);
  void say(const std::string& text);

  Settings settings_;
  local::Segment segment_;
  std::vector<Process> processes_;
  int lifeline_[2] = {-1, -1};
  int status_ = 0;
  bool failed_ = false;
  bool interrupted_ = false;
  std::int64_t ending_since_ = 0;
  std::uint64_t activity_ = 0;
  std::int64_t moved_at_ = 0;
};

}  // namespace headway::am
