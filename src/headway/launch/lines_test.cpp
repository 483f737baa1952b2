// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <headway/launch/lines.hpp>

namespace headway::launch {
namespace {

/// A pipe that is read only on request.
struct Pipe {
  Pipe() {
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::string read_all() const {
    std::string text(1 << 20, '\0');
    const ssize_t got = read(ends[0], text.data(), text.size());
    text.resize(got < 0 ? 0 : std::size_t(got));
    return text;
  }
  int ends[2];
};

TEST(LineOutput, ends_a_line_when_another_process_follows_it) {
  const Pipe pipe;
  LineOutput output(pipe.ends[1]);
  output.put(0, "a whole line\n");
  output.put(1, "one ");
  output.put(1, "half");
  output.put(2, "another\n");
  output.put(3, "no end");
  EXPECT_EQ(pipe.read_all(), "a whole line\none half\nanother\nno end");
}

TEST(LineOutput, never_waits_for_its_reader_and_loses_nothing) {
  const Pipe pipe;
  LineOutput output(pipe.ends[1]);
  std::string sent, got;
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    sent += line;
    output.put(0, line);
  }
  EXPECT_TRUE(output.has_waiting());
  EXPECT_FALSE(output.wants_more());
  for (std::string some; !(some = pipe.read_all()).empty();) {
    got += some;
    output.write_some();
  }
  EXPECT_EQ(got, sent);
  EXPECT_FALSE(output.has_waiting());
  EXPECT_TRUE(output.wants_more());
}

TEST(LineOutput, reports_that_no_process_reads) {
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  LineOutput output(pipe.ends[1]);
  close(pipe.ends[0]);
  EXPECT_EQ(output.error(), 0);
  output.put(0, "to nobody\n");
  EXPECT_EQ(output.error(), EPIPE);
  EXPECT_FALSE(output.has_waiting());
  pipe.ends[0] = dup(pipe.ends[1]);
}

TEST(LineSplitter, forwards_whole_lines_and_keeps_the_remainder) {
  const Pipe pipe;
  LineOutput output(pipe.ends[1]);
  LineSplitter zero, one;
  zero.add(0, "be", output);
  one.add(1, "first\nsec", output);
  zero.add(0, "gin\n\nmid", output);
  EXPECT_EQ(pipe.read_all(), "first\nbegin\n\n");
  one.add(1, "ond\n", output);
  zero.flush(0, output);
  EXPECT_EQ(pipe.read_all(), "second\nmid");
}

TEST(LineSplitter, keeps_memory_bounded_for_a_line_without_end) {
  const Pipe pipe;
  LineOutput output(pipe.ends[1]);
  LineSplitter splitter;
  const std::string piece(64 * 1024, 'x');
  std::size_t pieces = 0;
  while (!output.has_waiting() && pieces < 100) splitter.add(0, piece, output), ++pieces;
  EXPECT_EQ(pieces, LineSplitter::bytes_max / piece.size() + 1);
}

}  // namespace
}  // namespace headway::launch
