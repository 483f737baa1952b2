// SPDX-License-Identifier: BSD-3-Clause
/// The command line of the programs that send numbered messages.
#pragma once

#include <cstdint>
#include <headway/aggregate/options.hpp>
#include <headway/am/pe.hpp>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::bench {

struct Arguments {
  std::string bench;  // the program is headway-BENCH
  std::size_t bytes = 8;
  std::uint64_t messages = 0;
  std::uint64_t window = 100;  // messages of a PE that are acknowledged together
  std::string type;            // one of message_types
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for a line on standard output
  bool pairs = false;
  bool one_by_one = false;  // send() for each message instead of send_range()
};

/// A program's description, and its defaults.
struct About {
  const char* bench;
  const char* help;
  std::size_t bytes;          // the size of a message where --bytes says nothing
  bool pairs;                 // it needs an even number of PEs, else at least two
  bool ranges = false;        // it sends ranges, where not told to send one by one
  bool acknowledged = false;  // its messages are acknowledged
  const char* messages_help;  // which PEs send --messages
};

/// Reads the command line into `arguments`. Returns the status to end with, or nothing where the program goes on.
std::optional<int> parse(int argc, char** argv, const About& about, Arguments& arguments);

/// Whether the program can run on so many PEs; else PE 0 says so in one line.
bool are_enough(Pe& pe, const Arguments& arguments);

/// A timed pass.
struct Pass {
  double seconds;                                   // of the slowest PE
  std::vector<AggregatorStatistics> before, after;  // of this PE's aggregators
  AggregatorOptions options;                        // that these settled on
  std::uint64_t messages, errors;                   // of this PE
  Json further;                                     // fields of the record that are the pattern's own
};

/// Collective. Reports; the status to end with.
int conclude(Pe& pe, const Arguments& arguments, const Pass& pass);

}  // namespace headway::bench
