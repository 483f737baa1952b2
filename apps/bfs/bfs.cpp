// SPDX-License-Identifier: BSD-3-Clause
/// Breadth-first search of Graph500 on an array of elements, each of which has a block of vertices: level by level, a
/// message for each edge that leaves the level, to vertices that this PE has not sent to before.
#include <algorithm>
#include <bit>
#include <graph/search.hpp>
#include <headway/headway.hpp>
#include <support/application.hpp>
#include <utility>
#include <vector>

namespace headway::bfs {
namespace {

using graph::nobody;

struct Arguments : graph::SearchArguments {
  bool every_edge = false;  // is a message
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Graph500's breadth-first search on Headway's objects; validated.", "headway-bfs");
  graph::add_search_options(app, arguments);
  app.add_flag("--every-edge", "a message for each edge, also to vertices that the PE has sent to before",
               arguments.every_edge);
  return app.parse(argc, argv);
}

/// A block of vertices: their edges, and the state of the search (reached vertices, parents, levels).
class Part : public Element<Part, Index<1>> {
 public:
  Part() = default;
  explicit Part(const graph::Layout& layout) : layout_(layout) {}

  // --- building

  /// An edge, at one of its ends; the other is given by its label.
  void add_edge(std::uint32_t vertex, std::uint32_t other) { edges_.add(vertex, other); }
  void build() { edges_.build(layout_.vertices()); }
  bool leads_elsewhere(std::uint32_t vertex) const {
    return std::ranges::any_of(edges_.of(vertex), [&](std::uint32_t other) { return other != first() + vertex; });
  }

  // --- searching

  void reset() {
    const std::size_t vertices = layout_.vertices();
    reached_.assign((vertices + 63) / 64, 0);
    searched_.assign((vertices + 63) / 64, 0);
    parents_.assign(vertices, nobody);
    levels_.assign(vertices, nobody);
    depth_ = 0;
    frontier_.clear();
  }
  /// Along an edge from `parent`, which is at the depth that is being searched.
  void visit(std::uint32_t vertex, std::uint32_t parent) {
    std::uint64_t& reached = reached_[vertex / 64];
    const std::uint64_t bit = std::uint64_t(1) << vertex % 64;
    if ((reached & bit) != 0) return;
    reached |= bit;
    parents_[vertex] = parent;
  }
  /// Call after all messages of a level are handled. Makes the reached vertices the next frontier; returns their
  /// number.
  std::size_t advance() {
    frontier_.clear();  // in their order: so their edges are read through memory once
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      for (std::uint64_t bits = reached_[i] & ~searched_[i]; bits != 0; bits &= bits - 1) {
        frontier_.push_back(std::uint32_t(i * 64 + std::size_t(std::countr_zero(bits))));
        levels_[frontier_.back()] = depth_;
      }
    }
    searched_ = reached_;
    ++depth_;
    return frontier_.size();
  }
  /// Sends along all edges of the level that `passes(vertex)`. Returns how many edges the level has.
  template <class Passes>
  std::uint64_t search(Passes passes) {
    Collection<Part>& parts = all();
    const graph::Layout layout = layout_;
    const std::uint32_t first = this->first();
    std::uint64_t edges = 0;
    for (const std::uint32_t vertex : frontier_) {
      const std::span<const std::uint32_t> others = std::as_const(edges_).of(vertex);
      edges += others.size();
      for (const std::uint32_t other : others) {
        if (passes(other)) parts[layout.part(other)].send<&Part::visit>(layout.within(other), first + vertex);
      }
    }
    return edges;
  }

  // --- validating, as the specification says (section 8)

  /// At `parent`: whether it is one level above.
  void check_parent(std::uint32_t parent, std::uint32_t level) { errors_ += levels_[parent] + 1 != level; }
  /// At one end of an edge: the other is at `level`, or was not reached.
  void check_edge(std::uint32_t vertex, std::uint32_t level) {
    const std::uint32_t mine = levels_[vertex];
    if (mine == nobody || level == nobody)
      errors_ += mine != level;
    else
      errors_ += mine + 1 < level || level + 1 < mine;
  }
  void check(std::uint32_t root) {
    Collection<Part>& parts = all();
    const graph::Layout layout = layout_;
    for (std::uint32_t vertex = 0; vertex < layout.vertices(); ++vertex) {
      const std::uint32_t parent = parents_[vertex], level = levels_[vertex];
      errors_ += (parent == nobody) != (level == nobody);
      const std::span edges = edges_.of(vertex);
      if (first() + vertex == root) {
        errors_ += parent != root || level != 0;
      } else if (parent != nobody) {  // levels that go down by one each lead to the root: there is no cycle
        errors_ += level == 0 || std::ranges::find(edges, parent) == edges.end();
        parts[layout.part(parent)].send<&Part::check_parent>(layout.within(parent), level);
      }
      for (const std::uint32_t other : edges) {
        parts[layout.part(other)].send<&Part::check_edge>(layout.within(other), level);
      }
    }
  }
  /// Makes one more vertex its own parent, which it cannot be.
  bool spoil() {
    for (std::uint32_t vertex = 0; vertex + 1 < parents_.size(); ++vertex) {
      if (parents_[vertex] == nobody || parents_[vertex] == first() + vertex || levels_[vertex] < 2) continue;
      parents_[vertex] = first() + vertex;
      return true;
    }
    return false;
  }

  std::uint32_t first() const { return layout_.first(index()[0]); }
  std::uint64_t errors() const { return errors_; }
  template <class F>
  void for_each_reached(F f) const {
    for (std::uint32_t vertex = 0; vertex < levels_.size(); ++vertex) {
      if (levels_[vertex] != nobody) f(first() + vertex, levels_[vertex], edges_.degree(vertex));
    }
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(layout_, edges_, reached_, searched_, parents_, levels_, depth_, frontier_, errors_);
  }

  static constexpr auto aggregation = entries(entry<&Part::add_edge>{}, entry<&Part::visit>{},
                                              entry<&Part::check_parent>{}, entry<&Part::check_edge>{});

 private:
  graph::Layout layout_;
  graph::Edges<std::uint32_t> edges_;
  // Bits: most edges lead to a vertex that has been reached, and these stay in caches. `searched_` has the vertices
  // that the search reached before this level.
  std::vector<std::uint64_t> reached_, searched_;
  std::vector<std::uint32_t> parents_, levels_;
  std::uint32_t depth_ = 0;
  std::vector<std::uint32_t> frontier_;
  std::uint64_t errors_ = 0;
};

/// Of all searches.
struct Found {
  std::uint64_t visited = 0, edges = 0, messages = 0, levels = 0, checksum = 0, errors = 0;
};

class Search {
 public:
  Search(Pe& pe, const Arguments& arguments) : pe_(pe), arguments_(arguments), parts_(pe, arguments) {
    Array<Part>& array = parts_.array();
    const graph::Layout layout = parts_.layout();
    const auto building = phase(pe, "build");
    parts_.build([&](std::uint64_t, std::uint32_t vertex, std::uint32_t other) {
      array[layout.part(vertex)].send<&Part::add_edge>(layout.within(vertex), other);
    });
  }

  graph::Parts<Part>& parts() { return parts_; }

  /// Returns the seconds that it took.
  double search(std::uint32_t root, Found& found) {
    const auto searching = phase(pe_, "search");
    Array<Part>& array = parts_.array();
    const graph::Layout layout = parts_.layout();
    array.for_each_local([](Part& part) { part.reset(); });
    sieve_.reset();
    pe_.quiesce();
    const std::int64_t begin = pe_.engine().now();
    if (Part* const part = array.find_local(layout.part(root))) part->visit(layout.within(root), root);
    for (std::uint64_t depth = 0;; ++depth) {
      const auto level = phase(pe_, "level");
      pe_.quiesce();
      std::uint64_t reached = 0;
      array.for_each_local([&](Part& part) { reached += part.advance(); });
      if (allreduce(pe_, reached, std::plus<>()) == 0) break;
      parts_.balance_at(depth);
      array.for_each_local([&](Part& part) {
        if (arguments_.every_edge)
          found.edges += part.search([](std::uint32_t) { return true; });
        else
          found.edges += part.search([&](std::uint32_t vertex) { return sieve_.insert(vertex); });
      });
      if (pe_.id() == 0) ++found.levels;
    }
    return bench::max_over_pes(pe_, double(pe_.engine().now() - begin) * 1e-9);
  }

  /// The number of errors so far is in errors().
  void validate(std::uint32_t root, Found& found) {
    const auto validating = phase(pe_, "validate");
    for (std::uint64_t i = 0; i < arguments_.spoil; ++i) {
      bool spoilt = false;
      parts_.array().for_each_local([&](Part& part) { spoilt = spoilt || part.spoil(); });
    }
    pe_.quiesce();
    parts_.array().for_each_local([&](Part& part) { part.check(root); });
    pe_.quiesce();
    std::uint64_t degrees = 0;
    parts_.array().for_each_local([&](const Part& part) {
      part.for_each_reached([&](std::uint32_t vertex, std::uint32_t level, std::uint64_t degree) {
        ++found.visited;
        degrees += degree;
        found.checksum += graph::digest(vertex, level);
      });
    });
    scanned_ += degrees;
  }
  /// Collective: this PE's part of `found` becomes everybody's.
  Found sum(Found found) {
    found.errors = 0;
    parts_.array().for_each_local([&](const Part& part) { found.errors += part.errors(); });
    found = allreduce(pe_, found, [](const Found& a, const Found& b) {
      return Found{a.visited + b.visited, a.edges + b.edges,       a.messages + b.messages,
                   a.levels + b.levels,   a.checksum + b.checksum, a.errors + b.errors};
    });
    found.errors += found.edges != bench::sum_over_pes(pe_, scanned_);  // each edge of a reached vertex, once
    return found;
  }

  AggregatorStatistics statistics() const { return parts_.array().statistics<&Part::visit>(); }
  const AggregatorOptions& options() const { return parts_.array().options<&Part::visit>(); }

 private:
  Pe& pe_;
  const Arguments& arguments_;
  graph::Parts<Part> parts_;
  graph::Sieve sieve_{arguments_.every_edge ? 0 : arguments_.graph.vertices()};
  std::uint64_t scanned_ = 0;
};

int measure(Pe& pe, const Arguments& given) {
  Arguments arguments = given;
  arguments.graph.seed = base::Settings::from_environment().seed;
  Search search(pe, arguments);
  apps::Progress progress(pe, arguments.common, "bfs: root", arguments.roots);
  Found found;
  double seconds = 0;
  bench::FrameCounts frames;
  std::uint64_t roots = 0;
  for (; roots < arguments.roots; ++roots) {
    progress.at(roots);
    const auto root = search.parts().next_root();
    if (!root) break;
    const AggregatorStatistics before = search.statistics();
    seconds += search.search(*root, found);
    const AggregatorStatistics after = search.statistics();
    frames = bench::joined(frames, bench::growth(before, after));
    found.messages += after.handled - before.handled;
    search.validate(*root, found);
  }
  frames = bench::sum_over_pes(pe, frames);
  found = search.sum(found);
  if (pe.id() == 0) {
    const std::size_t bytes = 2 * sizeof(std::uint32_t);
    bench::Json record = bench::make_record(bench::make_case(pe, "bfs", search.options(), bytes, found.messages),
                                            seconds, found.errors == 0);
    bench::add_frames(record, frames);
    graph::add_search(record, arguments, search.parts(), roots, found.edges, seconds, found.checksum);
    record["every_edge"] = arguments.every_edge;
    record["edges"] = found.edges;  // that were looked at, in both directions
    record["visited"] = found.visited;
    record["levels"] = found.levels;
    record["errors"] = found.errors;
    record["options"] = bench::options_record(search.options());
    bench::report(record, arguments.common.json);
  }
  return found.errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::bfs

int main(int argc, char** argv) {
  using namespace headway::bfs;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
