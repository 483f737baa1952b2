// SPDX-License-Identifier: BSD-3-Clause
/// Long work on a terminal.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <record/time_left.hpp>
#include <string>

namespace headway::tools {

/// One line on a terminal that names the running case, and estimates the time that is left; nothing in a pipe.
class Progress {
 public:
  explicit Progress(std::size_t steps) : steps_(steps), shown_(::isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const std::string& what) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const std::string left = bench::time_left(double(step_), double(steps_), elapsed.count());
    ++step_;
    show(fmt::format("[{}/{}] {}{}", step_, steps_, what, left));
  }
  void clear() { show(""); }

 private:
  void show(const std::string& text) {
    if (shown_) std::cerr << "\r\033[K" << text << std::flush;
  }
  std::size_t steps_, step_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace headway::tools
