// SPDX-License-Identifier: BSD-3-Clause
/// The commands of `headway`. Each takes its own arguments (argv[0] is the command's name) and returns an exit status.
#pragma once

namespace headway::tools {

int run_command(int argc, char** argv);
int bench_command(int argc, char** argv);
int probe_command(int argc, char** argv);
int tune_command(int argc, char** argv);
int predict_command(int argc, char** argv);
int sensitivity_command(int argc, char** argv);
int slopes_command(int argc, char** argv);
int trace_command(int argc, char** argv);
int report_command(int argc, char** argv);
int mpi_report_command(int argc, char** argv);
int watch_command(int argc, char** argv);
int platform_command(int argc, char** argv);
int doctor_command(int argc, char** argv);
int info_command(int argc, char** argv);
int cxxflags_command(int argc, char** argv);
int ldflags_command(int argc, char** argv);

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* arguments;
  const char* help;
};

}  // namespace headway::tools
