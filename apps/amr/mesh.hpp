// SPDX-License-Identifier: BSD-3-Clause
/// One PE's part of the mesh: a piece of the Morton curve, its neighbours, and copies of those of other PEs (ghosts).
///
/// `Pes` is the communication. All of its functions but id(), size() and now() are collective:
///
///     id(), size(), now()           this PE, the number of PEs, seconds
///     minimum(double), sum(count)   of all PEs
///     all_gather(value)             the values of all PEs, by number
///     swap(lists)                   sends lists[pe] to each PE in it; returns the lists that came, by sender
///     Pes::Ghosts(pes, owned, ids, first_ids, states, targets)
///                                   ids[i] is the global id of element owned + i of both arrays; its owner is the PE
///                                   p with first_ids[p] <= id < first_ids[p + 1].
///       begin(), end()              fills the ghosts of `states`
///       exchange_targets()          fills those of `targets`
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "flow.hpp"
#include "key.hpp"

namespace headway::amr {

/// Elements by PE.
template <class T>
using Lists = std::map<std::size_t, std::vector<T>>;

/// Of one PE, in seconds.
struct Times {
  double difference = 0, time_step = 0, push = 0, neighbours = 0, setup = 0, refinement = 0, balance = 0;
};
template <class Pes, class F>
void add_time(Pes& pes, double& seconds, F f) {
  const double begin = pes.now();
  f();
  seconds += pes.now() - begin;
}

struct Cell {
  Square square;
  State state;
  bool operator==(const Cell&) const = default;
};

template <class Pes>
class Mesh {
 public:
  /// Collective. Cells of one level, in equal shares.
  Mesh(Pes& pes, unsigned level) : pes_(pes), level_min_(level) {
    const std::uint64_t cells = std::uint64_t(1) << 2 * level, end = cells * (pes.id() + 1) / pes.size();
    for (std::uint64_t i = cells * pes.id() / pes.size(); i != end; ++i)
      squares_.push_back({i << 2 * (depth - level), level});
    set_initial_states();
    connect();
  }

  Pes& pes() const { return pes_; }
  unsigned level_min() const { return level_min_; }
  /// The number of own cells; indices below it are theirs, larger ones are those of ghosts.
  std::size_t owned() const { return owned_; }
  std::uint64_t cells() const { return first_ids_.back(); }
  std::uint64_t ghosts() const { return squares_.size() - owned_; }
  const Square& square(std::size_t i) const { return squares_[i]; }
  const State& state(std::size_t i) const { return states_[i]; }
  const Neighbours& neighbours(std::size_t i) const { return neighbours_[i]; }
  /// For each child of the cell's parent, the cell at the child's first point.
  const std::array<std::uint32_t, 4>& family(std::size_t i) const { return families_[i]; }
  /// The levels that cells will have after refinement.
  std::vector<std::uint8_t>& targets() { return targets_; }
  const Times& times() const { return times_; }
  Times& times() { return times_; }

  void set_initial_states() {
    states_.resize(squares_.size());
    std::ranges::transform(squares_, states_.begin(), initial_state);
  }
  void exchange() {
    ghosts_->begin();
    ghosts_->end();
  }
  void exchange_targets() { ghosts_->exchange_targets(); }

  /// Collective: one time step. Cells without ghosts beside them are computed while ghosts are under way.
  void advance(double time) {
    const auto compute = [&](const std::vector<std::uint32_t>& cells) {
      for (const std::uint32_t i : cells)
        next_[i] = advanced(states_[i], states_, neighbours_[i], time / squares_[i].length());
    };
    add_time(pes_, times_.push, [&] { ghosts_->begin(); });
    add_time(pes_, times_.difference, [&] { compute(inner_); });
    add_time(pes_, times_.push, [&] { ghosts_->end(); });
    add_time(pes_, times_.difference, [&] {
      compute(rim_);
      std::ranges::copy(next_, states_.begin());
    });
  }
  /// Collective: the longest time step that is stable everywhere.
  double stable_time() {
    double time = std::numeric_limits<double>::infinity();
    add_time(pes_, times_.time_step, [&] {
      for (std::size_t i = 0; i != owned_; ++i)
        time = std::min(time, amr::stable_time(states_[i], squares_[i].length()));
      time = pes_.minimum(time);
    });
    return time;
  }

  /// Collective. Replaces the own cells, shares them equally again, and finds neighbours. `squares` continue the curve
  /// where those of the PE before end.
  void replace(std::vector<Square> squares, std::vector<State> states) {
    squares_ = std::move(squares);
    states_ = std::move(states);
    add_time(pes_, times_.balance, [&] { share_equally(); });
    connect();
  }

  /// Collective. Counts on this PE: gaps on the curve, pairs of neighbours with levels that differ by more than one,
  /// ghosts that differ from their owners' cells, heights that are not positive.
  std::uint64_t count_errors() {
    exchange();
    std::uint64_t errors = 0;
    Key at = first_keys_[pes_.id()];
    for (std::size_t i = 0; i != owned_; ++i) {
      errors += squares_[i].key != std::exchange(at, squares_[i].end()) || !(states_[i].height > 0);
      for (const std::uint32_t other : neighbours_[i]) {
        if (other == wall) continue;
        errors += squares_[i].level + 1 < squares_[other].level || squares_[other].level + 1 < squares_[i].level;
      }
    }
    errors += at != first_keys_[pes_.id() + 1];
    std::vector<Key> keys;
    for (std::size_t i = owned_; i != squares_.size(); ++i) keys.push_back(squares_[i].key);
    const std::vector<Cell> owners = ask<Cell>(keys, [&](std::size_t i) { return Cell{squares_[i], states_[i]}; });
    for (std::size_t i = owned_; i != squares_.size(); ++i)
      errors += Cell{squares_[i], states_[i]} != owners[i - owned_];
    return errors;
  }
  /// Raises the first own cell, to test the checks.
  void spoil() {
    if (owned_ != 0) states_[0].height += 1e-9;
  }
  /// Of this PE's cells: sums over all PEs are the same for the same mesh and states.
  std::uint64_t hash() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != owned_; ++i) {
      std::uint64_t mixed = Random(squares_[i].key << 8 | squares_[i].level).next();
      for (const double value : {states_[i].height, states_[i].x, states_[i].y})
        mixed = Random(mixed ^ std::bit_cast<std::uint64_t>(value)).next();
      sum += mixed;
    }
    return sum;
  }
  /// Collective: the volume of all water.
  Volume volume() {
    Volume own;
    for (std::size_t i = 0; i != owned_; ++i) own.add(states_[i].height, squares_[i].level);
    return {pes_.sum(own.high), pes_.sum(own.low)};
  }

 private:
  struct Found {
    std::uint64_t id;
    Square square;
  };
  struct Range {
    Key first;
    std::uint64_t cells;
  };

  std::size_t owner(Key key) const {
    return std::size_t(std::ranges::upper_bound(first_keys_, key) - first_keys_.begin()) - 1;
  }
  /// The own cell that contains a point.
  std::uint32_t index_of(Key key) const {
    const std::size_t bucket = (key - squares_.front().key) >> bucket_shift_;
    const auto begin = squares_.begin() + starts_[bucket], end = squares_.begin() + starts_[bucket + 1] + 1;
    return std::uint32_t(std::ranges::upper_bound(begin, end, key, {}, &Square::key) - squares_.begin() - 1);
  }

  /// Collective. For each key, answer(index) of the own cell there, on its owner.
  template <class Answer, class F>
  std::vector<Answer> ask(const std::vector<Key>& keys, F answer) {
    Lists<Key> asked;
    for (const Key key : keys) asked[owner(key)].push_back(key);
    Lists<Answer> answers;
    for (const auto& [pe, list] : pes_.swap(asked))
      for (const Key key : list) answers[pe].push_back(answer(index_of(key)));
    const Lists<Answer> came = pes_.swap(answers);
    std::map<std::size_t, std::size_t> taken;
    std::vector<Answer> all;
    for (const Key key : keys) {
      const std::size_t pe = owner(key);
      all.push_back(came.at(pe)[taken[pe]++]);
    }
    return all;
  }

  /// Each PE gets as many cells as every other, or one more or less.
  void share_equally() {
    share_ranges();
    const std::uint64_t first = first_ids_[pes_.id()], size = pes_.size();
    Lists<Cell> lists;
    for (std::size_t i = 0; i != owned_;) {
      const std::size_t pe = (first + i) * size / cells();
      const std::size_t end = std::min(owned_, ((pe + 1) * cells() + size - 1) / size - first);
      for (std::vector<Cell>& list = lists[pe]; i != end; ++i) list.push_back({squares_[i], states_[i]});
    }
    squares_.clear();
    states_.clear();
    for (const auto& [pe, list] : pes_.swap(lists)) {
      for (const Cell& cell : list) {
        squares_.push_back(cell.square);
        states_.push_back(cell.state);
      }
    }
  }

  /// Tells all PEs where this PE's piece of the curve begins. A PE without cells begins where the next one does.
  void share_ranges() {
    owned_ = squares_.size();
    const std::vector<Range> ranges = pes_.all_gather(Range{squares_.empty() ? 0 : squares_.front().key, owned_});
    first_keys_.assign(pes_.size() + 1, key_end);
    first_ids_.assign(pes_.size() + 1, 0);
    for (std::size_t pe = pes_.size(); pe-- != 0;)
      first_keys_[pe] = ranges[pe].cells == 0 ? first_keys_[pe + 1] : ranges[pe].first;
    for (std::size_t pe = 0; pe != pes_.size(); ++pe) first_ids_[pe + 1] = first_ids_[pe] + ranges[pe].cells;
  }

  /// For index_of(): the cells at equal distances on the curve.
  void index_cells() {
    starts_.clear();
    if (squares_.empty()) return;
    const Key first = squares_.front().key, last = squares_.back().end() - 1;
    bucket_shift_ = 0;
    while ((last - first) >> bucket_shift_ > owned_) ++bucket_shift_;
    std::uint32_t i = 0;
    for (Key at = first; at <= last; at += Key(1) << bucket_shift_) {
      while (i + 1 != owned_ && squares_[i + 1].key <= at) ++i;
      starts_.push_back(i);
    }
    starts_.push_back(std::uint32_t(owned_ - 1));
  }

  void connect() {
    std::vector<std::uint64_t> ids;
    add_time(pes_, times_.neighbours, [&] {
      share_ranges();
      index_cells();
      ids = find_neighbours();
    });
    add_time(pes_, times_.setup, [&] {
      ghosts_.reset();
      states_.resize(squares_.size());
      targets_.resize(squares_.size());
      next_.resize(owned_);
      ghosts_.emplace(pes_, owned_, ids, first_ids_, states_, targets_);
    });
  }

  /// Returns the ids of ghosts, in order; they begin at index owned_.
  std::vector<std::uint64_t> find_neighbours() {
    neighbours_.resize(owned_);
    families_.resize(owned_);
    std::vector<Key> keys;               // of cells of other PEs
    std::vector<std::uint32_t*> places;  // for their indices
    const Key begin = first_keys_[pes_.id()], end = first_keys_[pes_.id() + 1];
    const auto look_up = [&](Key key, std::uint32_t& place) {
      if (key >= begin && key < end) {
        place = index_of(key);
      } else {
        keys.push_back(key);
        places.push_back(&place);
      }
    };
    inner_.clear();
    rim_.clear();
    for (std::size_t i = 0; i != owned_; ++i) {
      const std::size_t before = keys.size();
      for (const Face face : {west, east, south, north}) {
        for (const std::uint32_t half : {0u, 1u}) {
          const auto [is_wall, key] = squares_[i].beside(face, half);
          std::uint32_t& place = neighbours_[i][2 * face + half];
          if (is_wall)
            place = wall;
          else
            look_up(key, place);
        }
      }
      (keys.size() == before ? inner_ : rim_).push_back(std::uint32_t(i));
      if (squares_[i].level == level_min_) continue;
      for (std::size_t child = 0; child != 4; ++child)
        look_up(squares_[i].parent().child(child).key, families_[i][child]);
    }

    const std::vector<Found> found = ask<Found>(keys, [&](std::size_t i) {
      return Found{first_ids_[pes_.id()] + i, squares_[i]};
    });
    std::map<std::uint64_t, Square> ghosts;
    for (const Found& one : found) ghosts.emplace(one.id, one.square);
    std::vector<std::uint64_t> ids;
    for (const auto& [id, square] : ghosts) {
      ids.push_back(id);
      squares_.push_back(square);
    }
    for (std::size_t k = 0; k != places.size(); ++k)
      *places[k] = std::uint32_t(owned_ + (std::ranges::lower_bound(ids, found[k].id) - ids.begin()));
    return ids;
  }

  Pes& pes_;
  unsigned level_min_;
  std::size_t owned_ = 0;
  std::vector<Square> squares_;  // own cells, then ghosts, as the next two
  std::vector<State> states_;
  std::vector<std::uint8_t> targets_;
  std::vector<State> next_;  // of own cells, as the next two
  std::vector<Neighbours> neighbours_;
  std::vector<std::array<std::uint32_t, 4>> families_;
  std::vector<std::uint32_t> inner_, rim_;  // own cells without and with ghosts beside them
  std::vector<Key> first_keys_;             // of each PE, and key_end
  std::vector<std::uint64_t> first_ids_;    // of each PE, and the number of cells
  std::vector<std::uint32_t> starts_;       // of buckets of 2^bucket_shift_ keys
  unsigned bucket_shift_ = 0;
  std::optional<typename Pes::Ghosts> ghosts_;
  Times times_;
};

}  // namespace headway::amr
