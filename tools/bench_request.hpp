// SPDX-License-Identifier: BSD-3-Clause
/// What `headway bench` was asked for: its options, checked one by one and against each other.
#pragma once

#include <chrono>
#include <headway/base/settings.hpp>
#include <record/command_line.hpp>
#include <string>
#include <vector>

#include "benchmarks.hpp"

namespace headway::tools {

/// The options as given; a list holds texts that were checked.
struct Request {
  std::string bench;
  bool list = false;
  std::vector<std::string> modes;                      // topologies and limits; empty: the benchmark's
  std::vector<std::string> ways;                       // empty: all that the benchmark has
  std::vector<std::string> memories;                   // empty: all that the benchmark has
  std::vector<std::string> buffer_kinds = {"reused"};  // of zerocopy, as is the next
  bool touch = false;
  std::vector<std::string> measures = {"cpu", "latency"};  // of reduce, as are calls, skews_us and reduce_options
  std::vector<std::string> calls = {"reduce", "allreduce", "barrier"};
  std::vector<std::string> elements;               // empty: the benchmark's
  std::vector<std::string> cases = {"row"};        // of halo, as are the next four
  std::vector<std::string> fields, element_bytes;  // empty: the case's
  std::string plan;                                // a file, instead of cases
  std::vector<std::string> halo_options;           // that its program and its peers get
  std::vector<std::string> skews_us = {"1000", "0"};
  std::vector<std::string> reduce_options;  // that its program and its peers get
  std::vector<std::string> log2s = {"20"};
  std::vector<std::string> sizes;    // empty: the benchmark's
  std::vector<std::string> buffers;  // empty: derived
  std::vector<std::string> peers;    // as given; expand_peers() makes cases of them
  std::vector<std::string> peer_buffers = {"4K", "16K", "64K", "256K"};
  std::vector<std::string> passed_on;  // options that every Headway program gets
  std::vector<std::string> balances;   // of applications on elements; empty: their own
  std::string updates_per_word;        // empty: by table size
  std::string messages;                // empty: by message size
  std::string type;                    // empty: fixed where the size is
  bool osu = false;
  double threshold = 0, cutoff = 0;  // 0: derived
  std::size_t repeats = 5;
  std::chrono::seconds limit = std::chrono::minutes(10);
  std::string json;  // a file, "-", or empty

  /// An option that not all benchmarks take.
  struct OwnOption {
    std::string name;
    bool Benchmark::*of;
  };
  std::vector<OwnOption> own_options;
  /// An option of work_options() with its value, as unchecked text.
  struct GivenOption {
    std::string name, text;
  };
  std::vector<GivenOption> work_options;
};

/// What all cases of one comparison do.
struct Work {
  std::string title;
  std::string log2, updates_per_word;        // of a table, where there is one
  std::string updates_per_word_direct = {};  // in the mode direct; empty: there is no table
  std::string bytes;                         // of a message
  std::string buffers = {};                  // one of zerocopy's buffer_kinds
  bool of_cpu = false;                       // processor time is measured, not time
  std::vector<std::string> arguments;        // of each program, Headway's and peers'
};

/// Adds the options of the command, stored to `request`.
void add_options(bench::CommandLine& app, Request& request);

/// Checks the given options against the benchmark, which must be known, and the settings; adds the benchmark's own
/// sizes. Throws SettingError.
void complete(Request& request, const base::Settings& settings);

}  // namespace headway::tools
