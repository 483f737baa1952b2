// SPDX-License-Identifier: BSD-3-Clause
#include "watch_output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <headway/base/clock.hpp>
#include <iterator>
#include <string_view>

#include "watch_table.hpp"

namespace headway::tools {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile std::sig_atomic_t end_asked = 0;
void ask_for_end(int) { end_asked = 1; }

// Control sequences of terminals (ECMA-48, xterm).
constexpr std::string_view enter = "\033[?1049h\033[?25l";  // the alternate screen, without a cursor
constexpr std::string_view leave = "\033[?25h\033[?1049l";
constexpr std::string_view to_top = "\033[H", clear_line = "\033[K", clear_below = "\033[J";

bool put(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

WindowSize window_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

std::string joined(const std::vector<std::string>& lines, std::string_view end) {
  std::string text;
  for (const std::string& line : lines) text.append(line).append(end);
  return text;
}

}  // namespace

Wait::Wait(bool keys) : keys_(keys && tcgetattr(STDIN_FILENO, &terminal_) == 0) {
  end_asked = 0;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    struct sigaction action {};
    action.sa_handler = signals[i] == SIGPIPE ? SIG_IGN : ask_for_end;
    sigaction(signals[i], &action, &actions_[i]);
    sigaddset(&blocked, signals[i]);
  }
  sigprocmask(SIG_BLOCK, &blocked, &before_);
  if (keys_) {
    termios single_keys = terminal_;
    single_keys.c_lflag &= ~tcflag_t(ICANON | ECHO);
    single_keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped watch would leave the terminal as it is
    tcsetattr(STDIN_FILENO, TCSANOW, &single_keys);
  }
}

Wait::~Wait() {
  if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_);
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &actions_[i], nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Wait::until(std::int64_t until_ns, std::vector<pollfd>& descriptors) {
  if (keys_) descriptors.push_back({STDIN_FILENO, POLLIN, 0});
  const std::int64_t left = std::max<std::int64_t>(until_ns - base::monotonic_ns(), 0);
  const timespec time{left / 1'000'000'000, left % 1'000'000'000};
  const int ready = ppoll(descriptors.data(), descriptors.size(), &time, &before_);
  if (ready < 0) {  // by a signal
    for (pollfd& one : descriptors) one.revents = 0;
  }
  if (keys_) {
    char key = 0;
    const short events = descriptors.back().revents;
    descriptors.pop_back();
    if (events != 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) return false;
  }
  return end_asked == 0;
}

WatchOutput::WatchOutput(Form form) : form_(form) {
  if (form_ == Form::terminal) put(enter);
}

WatchOutput::~WatchOutput() {
  if (form_ != Form::terminal) return;
  put(leave);
  if (any_) put(joined(draw(last_, window_size()), "\n"));  // the last view stays in the scrollback
  std::fputs(joined(notes_, "\n").c_str(), stderr);
}

bool WatchOutput::show(const View& view) {
  any_ = true;
  if (form_ == Form::json) return put(to_json(view).dump() + "\n");
  if (form_ == Form::tables) return put(joined(draw(view, {}), "\n") + "\n");
  last_ = view;
  std::string text(to_top);
  const WindowSize window = window_size();
  const std::vector<std::string> lines = draw(view, window, notes_);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text.append(i == 0 ? "" : "\r\n").append(lines[i]);
    if (lines[i].size() < window.columns) text += clear_line;  // in the last column it would clear that
  }
  return put(text.append(clear_below));
}

void WatchOutput::note(const std::string& text) {
  if (form_ == Form::terminal)
    notes_.push_back(text);
  else
    std::fputs((text + "\n").c_str(), stderr);
}

}  // namespace headway::tools
