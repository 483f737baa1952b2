// SPDX-License-Identifier: BSD-3-Clause
/// The events of a traced run: the work of each PE, its frames and its waits, in order. Nothing in it has a time of its
/// own, only lengths of work and of the network's part, so that a replay can compute all times anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/model/trace/reader.hpp>
#include <memory>
#include <string>
#include <vector>

namespace headway::model::trace {

inline constexpr std::uint32_t none = ~std::uint32_t(0);

/// One thing that a PE does, after work of `work_ns`.
struct Item {
  enum class Kind : std::uint32_t {
    work,  // nothing more
    post,  // posts frame `of`
    poll,  // handles the frames that are there, and does not wait for any
    wait,  // `of`: handles frames until all frames are handled that this wait needs
  };
  double work_ns;
  std::uint32_t of;
  Kind kind;
};
static_assert(sizeof(Item) == 16);

struct Frame {
  double network_ns = 0;                  // from the post until the receiver sees it
  double head_ns = 0;                     // the receiver's work before the handler
  std::uint32_t bytes = 0, messages = 0;  // bytes of header, payload and tail
  std::uint32_t before = none;       // the frame that is not overtaken: the last one with its sender, receiver, hops
  std::uint32_t begin = 0, end = 0;  // the handler: side items
  std::uint32_t wait = none;         // that needs it
  std::uint32_t group = none;        // that follows it
  std::uint16_t source = 0, target = 0;
  bool is_posted = false, is_taken = false;
};

/// Frames that a PE posts in a wait, outside of handlers, once it has handled `frames` ones: open buffers, for example.
struct Group {
  std::uint32_t begin = 0, end = 0;  // side items
  std::uint32_t frames = 0;
  std::uint32_t wait = 0;  // it begins in this one at the earliest
};

/// A wait ends when as many frames and groups as `needs` that name it are done.
struct Wait {
  std::uint32_t needs = 0;
  std::uint32_t groups_begin = 0, groups_end = 0;
  bool needs_groups = false;
};

struct Program {
  double begin_ns = 0;  // after the begin of the first PE
  std::vector<Item> items;
};

struct Graph {
  std::vector<Program> programs;  // by PE
  std::vector<Item> side;         // of handlers and groups
  std::vector<Frame> frames;
  std::vector<Group> groups;
  std::vector<Wait> waits;
  double run_ns = 0;     // of the traced run, from the first begin to the last end
  Header header{};       // of PE 0
  std::size_t lost = 0;  // frames that were posted and never taken: after the end
};

/// Takes one PE's trace at a time, so that not all records are in memory at once.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::size_t pes);
  ~GraphBuilder();
  /// Each PE once, in any order. SystemError with one line if the trace contradicts itself or another one.
  void add(const PeTrace& trace);
  Graph finish();

 private:
  class PeBuilder;
  struct State;
  std::unique_ptr<State> state_;
};

/// Of the files in `folder`, one of each PE. SystemError with one line if one is missing, wrong, or of another run.
Graph read_graph(const std::string& folder);

}  // namespace headway::model::trace
