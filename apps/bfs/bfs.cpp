/// Breadth-first search of Graph500 on an array of elements, each of which has a block of vertices: level by level, a message
/// for each edge that leaves the level, to vertices that this PE has not sent to before.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <graph/search.hpp>
#include <headway/headway.hpp>
#include <limits>
#include <support/application.hpp>
#include <utility>
#include <vector>

namespace headway::bfs {
namespace {

inline constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

struct Arguments {
  graph::KroneckerOptions graph{.scale = 16};
  std::uint64_t roots = 4, parts = 0;  // 0: by the PEs
  bool every_edge = false;             // is a message
  std::uint64_t spoil = 0;             // vertices whose parents are changed after a search, to see the check find them
  apps::Common common;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("Graph500's breadth-first search on Headway's objects; validated.", "headway-bfs");
  const auto count = [&](const char* name, auto& value, std::uint64_t min, std::uint64_t max, const char* help) {
    bench::add_value(
        app, name,
        [&value, name, min, max](const std::string& text) {
          value = std::remove_reference_t<decltype(value)>(bench::parse_count(name, text, min, max));
        },
        "N", help);
  };
  count("--scale", arguments.graph.scale, 1, 30, "2^N vertices [16]");
  count("--edge-factor", arguments.graph.edge_factor, 1, 1024, "edges for each vertex [16]");
  count("--roots", arguments.roots, 1, 1024, "searches, from vertices that have edges [4]");
  count("--parts", arguments.parts, 1, 1 << 20, "elements that share the vertices, a power of two [by the PEs]");
  count("--spoil", arguments.spoil, 0, 1 << 20, "parents that are changed after each search: the check must see it [0]");
  app.add_flag("--every-edge", arguments.every_edge,
               "a message for each edge, also to vertices that the PE has sent to before");
  apps::add_common_options(app, arguments.common);
  return bench::parse_command_line(app, argc, argv);
}

/// A block of vertices: their edges, and what the search has found of them.
class Part : public Element<Part, Index<1>> {
 public:
  Part() = default;
  explicit Part(unsigned log2) : part_log2_(log2) {}

  // --- building

  /// An edge, at one of its ends; the other is given by its label.
  void add_edge(std::uint32_t vertex, std::uint32_t other) { raw_.emplace_back(vertex, other); }
  void build() {
    const std::size_t vertices = std::size_t(1) << part_log2_;
    offsets_.assign(vertices + 1, 0);
    for (const auto& [vertex, other] : raw_) ++offsets_[vertex + 1];
    for (std::size_t i = 0; i < vertices; ++i) offsets_[i + 1] += offsets_[i];
    neighbours_.resize(raw_.size());
    std::vector<std::uint64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const auto& [vertex, other] : raw_) neighbours_[next[vertex]++] = other;
    raw_ = {};
  }
  std::uint64_t degree(std::uint32_t vertex) const { return offsets_[vertex + 1] - offsets_[vertex]; }

  // --- searching

  void reset() {
    const std::size_t vertices = std::size_t(1) << part_log2_;
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
  /// When all messages of a level have been handled: what they reached is searched next. Returns how many that is.
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
    const unsigned log2 = part_log2_;
    const std::uint32_t mask = (std::uint32_t(1) << log2) - 1, first = this->first();
    std::uint64_t edges = 0;
    for (const std::uint32_t vertex : frontier_) {
      const std::uint32_t* edge = neighbours_.data() + offsets_[vertex];
      const std::uint32_t* const end = neighbours_.data() + offsets_[vertex + 1];
      edges += std::uint64_t(end - edge);
      for (; edge != end; ++edge) {
        if (passes(*edge)) parts[std::int32_t(*edge >> log2)].send<&Part::visit>(*edge & mask, first + vertex);
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
    const std::uint32_t mask = (std::uint32_t(1) << part_log2_) - 1;
    for (std::uint32_t vertex = 0; vertex <= mask; ++vertex) {
      const std::uint32_t parent = parents_[vertex], level = levels_[vertex];
      errors_ += (parent == nobody) != (level == nobody);
      const std::span edges(neighbours_.data() + offsets_[vertex], degree(vertex));
      if (first() + vertex == root) {
        errors_ += parent != root || level != 0;
      } else if (parent != nobody) {  // levels that go down by one each lead to the root: there is no cycle
        errors_ += level == 0 || std::ranges::find(edges, parent) == edges.end();
        parts[std::int32_t(parent >> part_log2_)].send<&Part::check_parent>(parent & mask, level);
      }
      for (const std::uint32_t other : edges) {
        parts[std::int32_t(other >> part_log2_)].send<&Part::check_edge>(other & mask, level);
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

  std::uint32_t first() const { return std::uint32_t(index()[0]) << part_log2_; }
  std::uint64_t errors() const { return errors_; }
  template <class F>
  void for_each_reached(F f) const {
    for (std::uint32_t vertex = 0; vertex < levels_.size(); ++vertex) {
      if (levels_[vertex] != nobody) f(first() + vertex, levels_[vertex], degree(vertex));
    }
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(part_log2_, offsets_, neighbours_, reached_, searched_, parents_, levels_, depth_, frontier_, errors_);
  }

  static constexpr auto aggregation =
      entries(entry<&Part::add_edge>{}, entry<&Part::visit>{}, entry<&Part::check_parent>{}, entry<&Part::check_edge>{});

 private:
  unsigned part_log2_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> raw_;  // until it is built
  std::vector<std::uint64_t> offsets_;                        // of each vertex's neighbours
  std::vector<std::uint32_t> neighbours_;
  // Bits: most edges lead to a vertex that has been reached, and these stay in caches. Searched is what was before this level.
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
  Search(Pe& pe, const Arguments& arguments)
      : pe_(pe),
        arguments_(arguments),
        parts_log2_(log2_of_parts(pe, arguments)),
        parts_(pe, {std::int32_t(1) << parts_log2_},
               {.override_all = arguments.common.aggregation,
                .measure_load = arguments.common.balance != "none" && arguments.common.balance != "rotate",
                .name = "parts"},
               arguments.graph.scale - parts_log2_) {}

  void build() {
    const std::uint64_t edges = arguments_.graph.edges(), pes = pe_.size();
    const std::uint64_t begin = edges * pe_.id() / pes, end = edges * (pe_.id() + 1) / pes;
    const unsigned log2 = part_log2();
    const std::uint32_t mask = (std::uint32_t(1) << log2) - 1;
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto [from, to] = graph::edge(arguments_.graph, i);
      parts_[std::int32_t(from >> log2)].send<&Part::add_edge>(from & mask, to);
      parts_[std::int32_t(to >> log2)].send<&Part::add_edge>(to & mask, from);
    }
    pe_.quiesce();
    parts_.for_each_local([](Part& part) { part.build(); });
    pe_.quiesce();
  }

  /// The next vertex that has an edge, of those drawn by the seed; the same on every PE.
  std::uint32_t next_root() {
    for (;;) {
      const std::uint32_t vertex = graph::draw_root(draws_, arguments_.graph);
      std::uint64_t degree = 0;
      if (pe_.id() == 0) {
        const auto part = std::int32_t(vertex >> part_log2());
        degree = parts_[part].rpc<&Part::degree>(vertex & ((std::uint32_t(1) << part_log2()) - 1)).get();
      }
      if (broadcast(pe_, degree, 0).get() != 0) return vertex;
    }
  }

  /// Returns the seconds that it took.
  double search(std::uint32_t root, Found& found) {
    parts_.for_each_local([](Part& part) { part.reset(); });
    sieve_.reset();
    pe_.quiesce();
    const std::int64_t begin = pe_.engine().now();
    if (pe_.id() == 0) {
      parts_[std::int32_t(root >> part_log2())].send<&Part::visit>(root & ((std::uint32_t(1) << part_log2()) - 1), root);
    }
    for (std::uint64_t depth = 0;; ++depth) {
      pe_.quiesce();
      std::uint64_t reached = 0;
      parts_.for_each_local([&](Part& part) { reached += part.advance(); });
      if (allreduce(pe_, reached, std::plus<>()) == 0) break;
      if (arguments_.common.balance != "none" && depth % arguments_.common.balance_every == 0) {
        moved_ += balance(parts_, parse_balance(arguments_.common.balance)).moved;
      }
      parts_.for_each_local([&](Part& part) {
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
    for (std::uint64_t i = 0; i < arguments_.spoil; ++i) {
      bool spoilt = false;
      parts_.for_each_local([&](Part& part) { spoilt = spoilt || part.spoil(); });
    }
    pe_.quiesce();
    parts_.for_each_local([&](Part& part) { part.check(root); });
    pe_.quiesce();
    std::uint64_t degrees = 0;
    parts_.for_each_local([&](const Part& part) {
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
    parts_.for_each_local([&](const Part& part) { found.errors += part.errors(); });
    found = allreduce(pe_, found, [](const Found& a, const Found& b) {
      return Found{a.visited + b.visited,   a.edges + b.edges,       a.messages + b.messages,
                   a.levels + b.levels, a.checksum + b.checksum, a.errors + b.errors};
    });
    found.errors += found.edges != bench::sum_over_pes(pe_, scanned_);  // each edge of what was reached, once
    return found;
  }

  AggregatorStatistics statistics() const { return parts_.statistics<&Part::visit>(); }
  const AggregatorOptions& options() const { return parts_.options<&Part::visit>(); }
  std::uint64_t moved() const { return moved_; }
  std::size_t parts() const { return std::size_t(1) << parts_log2_; }

 private:
  static unsigned log2_of_parts(Pe& pe, const Arguments& arguments) {
    const std::uint64_t vertices = arguments.graph.vertices();
    // Two for each PE, of which each is found by one multiplication; where PEs are no power of two more, so that all have
    // about as many.
    const std::uint64_t wanted = std::has_single_bit(pe.size()) ? 2 * pe.size() : std::bit_ceil(4 * pe.size());
    const std::uint64_t parts = arguments.parts != 0 ? arguments.parts : std::min<std::uint64_t>(wanted, vertices);
    if (!std::has_single_bit(parts) || parts > vertices) {
      throw SettingError(fmt::format("--parts: '{}' is not allowed; allowed is a power of two up to the vertices, {}",
                                     parts, vertices));
    }
    return unsigned(std::countr_zero(parts));
  }
  unsigned part_log2() const { return arguments_.graph.scale - parts_log2_; }

  Pe& pe_;
  const Arguments& arguments_;
  unsigned parts_log2_;
  Array<Part> parts_;
  graph::Sieve sieve_{arguments_.every_edge ? 0 : arguments_.graph.vertices()};
  Random draws_ = graph::root_draws(arguments_.graph);
  std::uint64_t moved_ = 0, scanned_ = 0;
};

int measure(Pe& pe, const Arguments& given) {
  Arguments arguments = given;
  arguments.graph.seed = Settings::from_environment().seed;
  Search search(pe, arguments);
  search.build();
  apps::Progress progress(pe, arguments.common, "bfs: root", arguments.roots);
  Found found;
  double seconds = 0;
  bench::FrameCounts frames;
  for (std::uint64_t i = 0; i < arguments.roots; ++i) {
    progress.at(i);
    const std::uint32_t root = search.next_root();
    const AggregatorStatistics before = search.statistics();
    seconds += search.search(root, found);
    const AggregatorStatistics after = search.statistics();
    frames = bench::joined(frames, bench::growth(before, after));
    found.messages += after.handled - before.handled;
    search.validate(root, found);
  }
  frames = bench::sum_over_pes(pe, frames);
  found = search.sum(found);
  if (pe.id() == 0) {
    const std::size_t bytes = 2 * sizeof(std::uint32_t);
    bench::Json record = bench::make_record(bench::make_case(pe, "bfs", search.options(), bytes, found.messages), seconds,
                                            found.errors == 0);
    bench::add_frames(record, frames);
    record["scale"] = arguments.graph.scale;
    record["edge_factor"] = arguments.graph.edge_factor;
    record["roots"] = arguments.roots;
    record["parts"] = search.parts();
    record["every_edge"] = arguments.every_edge;
    record["edges"] = found.edges;  // that were looked at, in both directions
    record["visited"] = found.visited;
    record["levels"] = found.levels;
    record["checksum"] = fmt::format("{:016x}", found.checksum);
    record["teps"] = seconds > 0 ? double(found.edges) / 2 / seconds : 0;
    record["errors"] = found.errors;
    record["balance"] = arguments.common.balance;
    record["moved"] = search.moved();
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
