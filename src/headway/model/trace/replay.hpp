// SPDX-License-Identifier: BSD-3-Clause
/// A traced run again, on a network with more overhead, gap, latency or time for a byte.
///
/// Work keeps its length. Each frame costs o on its sender before the post, and o and item_o on its receiver before the
/// handler. It leaves after g and G, while the sender goes on, and is there after L and the network's own time. A PE
/// handles frames in the order of their arrival: in waits, and where it took frames from the network in the traced run.
/// A wait ends when the frames that it needed are handled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/dial_settings.hpp>
#include <headway/model/trace/graph.hpp>
#include <queue>
#include <utility>
#include <vector>

namespace headway::model::trace {

/// The longest path: each of its parts begins when the one before ends. The run time is the sum of all parts,
///   start + work + network + overheads o + items item_o + gaps g + gap_bytes G + latencies L.
/// So the counts are the slopes of the run time.
struct Path {
  double overheads = 0, items = 0, gaps = 0, gap_bytes = 0, latencies = 0;
  double start_ns = 0;              // the first PE of the path begins so long after the first PE of the run
  double network_ns = 0;            // of the traced run: between post and arrival
  std::vector<double> work_ns;      // by PE
  std::vector<std::size_t> frames;  // that the path follows, by sender

  double work() const;
  double dial_ns(const base::DialSettings& dials) const;
  double total_ns(const base::DialSettings& dials) const { return start_ns + work() + network_ns + dial_ns(dials); }
};

class Replay {
 public:
  /// `graph` outlives it.
  explicit Replay(const Graph& graph);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  /// From the begin of the first PE to the end of the last, in ns.
  double run(const base::DialSettings& dials);
  /// The same, with the longest path.
  Path path(const base::DialSettings& dials);
  const Graph& graph() const { return *graph_; }
  /// Waits of the last run that ended without all frames that they needed. 0 unless the trace contradicts itself.
  std::size_t forced() const { return forced_; }

 private:
  struct Step;
  struct Pe;
  struct Turn;

  void prepare(const base::DialSettings& dials);
  void act(std::size_t pe);
  bool advance(Pe& pe, double ns);
  bool begin_work(Pe& pe, const Item& item, bool& is_begun);
  bool go_on_in_main(Pe& pe);
  bool begin_frame(Pe& pe);
  void post(Pe& pe, std::uint32_t frame);
  void handled(Pe& pe, std::uint32_t frame);
  void finish_list(Pe& pe);
  bool begin_group(Pe& pe);
  bool force_one();
  Path walk() const;
  void add_step(Pe& pe, double work_ns, std::uint32_t frame, int kind);

  const Graph* graph_;
  base::DialSettings dials_;
  std::vector<Pe> pes_;
  std::vector<Turn> turns_;  // a heap
  std::uint64_t made_turns_ = 0;
  std::vector<double> arrivals_;  // by frame
  std::vector<std::uint32_t> wait_needs_, group_needs_;
  std::size_t forced_ = 0;
  // Only with a path.
  bool keeps_steps_ = false;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> post_steps_, left_after_;  // by frame
  std::vector<bool> after_before_;                      // by frame: it arrives with the one before
};

}  // namespace headway::model::trace
