// SPDX-License-Identifier: BSD-3-Clause
// Python's parser reads the drawing as XML, with a dot for each sample and a line for each segment.
#include "probe_plot.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "run_command.hpp"

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

/// A file of this test that goes with it.
class ScratchFile {
 public:
  ScratchFile() : path_(fs::temp_directory_path() / fmt::format("headway-plot-test-{}.svg", ::getpid())) {}
  ~ScratchFile() { fs::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Prints the numbers of circles, of lines and of texts; every coordinate must lie in the drawing.
constexpr const char* reader = R"(
import sys, xml.etree.ElementTree as tree
svg = '{http://www.w3.org/2000/svg}'
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == svg + 'svg', root.tag
width, height = float(root.get('width')), float(root.get('height'))
points = [(float(c.get('cx')), float(c.get('cy'))) for c in root.iter(svg + 'circle')]
for line in root.iter(svg + 'polyline'):
    points += [tuple(map(float, p.split(','))) for p in line.get('points').split()]
assert all(0 <= x <= width and 0 <= y <= height for x, y in points), points
kinds = [line.get('class') for line in root.iter(svg + 'polyline')]
texts = [text.text for text in root.iter(svg + 'text')]
print(len(list(root.iter(svg + 'circle'))), kinds.count('line'), kinds.count('way'), '|'.join(texts))
)";

/// The reader's output for a file, or a failure.
std::string read(const std::string& path) {
  const ChildResult result = run_child({"python3", "-c", reader, path}, {}, std::chrono::seconds(60));
  EXPECT_EQ(result.status, 0) << result.errors;
  return result.output;
}

bool has_python() { return run_child({"python3", "-c", "import xml.etree"}, {}, std::chrono::seconds(60)).status == 0; }

/// Samples on a line: 1 us and 2 ns a byte.
std::vector<bench::ProbeLaunch> launches_of_line(std::size_t count) {
  std::vector<bench::ProbeLaunch> launches(count);
  for (bench::ProbeLaunch& launch : launches) {
    for (std::size_t bytes = 1; bytes <= 4096; bytes *= 2) {
      const double one_ns = 5000 + 2 * double(bytes - 1), interval_ns = 1000 + 2 * double(bytes - 1);
      launch.samples.push_back({bytes, 11, one_ns, one_ns + 10 * interval_ns, 2e4, one_ns + 10 * 2.1e4, 50});
    }
    for (const bool aggregated : {false, true}) launch.costs.push_back({8, aggregated, 10, 20});
  }
  return launches;
}

TEST(ProbePlot, a_drawing_is_xml_with_a_dot_for_each_sample_and_a_line_for_each_segment) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const std::vector<bench::ProbeLaunch> launches = launches_of_line(3);
  const bench::ProbeResult result = bench::evaluate(launches);
  const std::vector<PlottedPair> pairs = {{"a < b & \"c\" > d", launches, &result}, {"second", launches, &result}};
  const ScratchFile file;
  std::ofstream(file.path()) << plot_of(pairs);
  const std::string seen = read(file.path());
  EXPECT_TRUE(seen.starts_with(fmt::format("{} {} 2 ", 2 * 3 * 13, 2 * result.segments.size()))) << seen;
  for (const char* text : {"a < b & \"c\" > d", "|second|", "|1 us|", "|10 us|", "|4K|", "bytes of a message"})
    EXPECT_NE(seen.find(text), std::string::npos) << text << " in " << seen;
}

TEST(ProbePlot, samples_without_a_positive_time_are_left_out) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  std::vector<bench::ProbeLaunch> launches = launches_of_line(1);
  const bench::ProbeResult result = bench::evaluate(launches);
  launches[0].samples[2].burst_ns = launches[0].samples[2].one_ns - 1;
  const ScratchFile file;
  const std::vector<PlottedPair> pairs = {{"one", launches, &result}};
  std::ofstream(file.path()) << plot_of(pairs);
  EXPECT_TRUE(read(file.path()).starts_with(fmt::format("12 {} 1 ", result.segments.size())));
  std::ofstream(file.path()) << plot_of({});
  EXPECT_TRUE(read(file.path()).starts_with("0 0 0 "));
}

TEST(ProbePlot, the_command_draws_the_pairs_that_it_measures) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const ScratchFile file;
  const ChildResult result =
      headway({"probe", "--transport", "local", "--pair", "thread,process", "--launches", "1", "--points", "4",
               "--bytes-max", "256", "--messages", "4", "--repeats", "1", "--plot", file.path()});
  ASSERT_EQ(result.status, 0) << result.errors;
  const std::string seen = read(file.path());
  for (const char* text : {"local, threads of one process", "local, processes of one host", "|256|"})
    EXPECT_NE(seen.find(text), std::string::npos) << text << " in " << seen;
  const ChildResult refused = headway({"probe", "--calibrate", "--plot", file.path()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("--plot"), std::string::npos) << refused.errors;
}

}  // namespace
}  // namespace headway::tools
