/// Starting a program and keeping what it prints.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headway::tools {

struct ChildResult {
  int status = 0;  // its exit status, or 128 + the signal that ended it
  bool timed_out = false;
  std::string output;  // standard output
  std::string errors;  // standard error
};

struct Variable {
  std::string name, value;
};

/// Starts `command` with `environment` added to this process's and waits for its end; after `limit` it is ended. Ends
/// with this process. Throws SystemError where no process can be made; a program that cannot be executed ends with 127.
ChildResult run_child(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                      std::chrono::seconds limit);

}  // namespace headway::tools
