// SPDX-License-Identifier: BSD-3-Clause
/// The collectives in flight on one PE, and the arrival of contributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/collective/descriptor.hpp>
#include <headway/collective/shared_reductions.hpp>
#include <headway/collective/team.hpp>
#include <headway/transport/observer.hpp>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace headway::collective {

/// Belongs to one PE. Contributions are messages of its own aggregator: contributions of many collectives share
/// frames, and quiescence and epochs count them. A contribution to a call that this PE has not made waits in a queue,
/// which counts towards HEADWAY_SPILL.
///
/// Programs that call no asynchronous collective do not link it, and have one aggregator less.
class Collectives final : public am::Extension, private Carrier {
 public:
  static Collectives& of(Pe& pe);
  static std::unique_ptr<am::Extension> make(Pe& pe) { return std::make_unique<Collectives>(pe); }
  explicit Collectives(Pe& pe);
  ~Collectives() override;

  void begin() override;
  bool holds_back(am::ScopeId epoch) const override;
  am::Calls calls(am::ScopeId epoch) const override;
  void set_calls_made(std::uint64_t called_max) override;
  void add_waits_for(std::vector<std::uint32_t>& pes) const override;
  std::string unfinished() const override;
  void end() noexcept override;

  const std::shared_ptr<TeamState>& world() const { return world_; }
  std::shared_ptr<TeamState> make_team(const std::vector<std::size_t>& pes);

  /// In the main program: waits until the messages that handlers have sent beyond the budget have left, so that calls
  /// in a row fill no memory. Runs handlers meanwhile. If many calls of this PE wait for their cells, it gives other
  /// PEs time to run.
  void make_room();
  /// Numbers the next call of a team. UsageError for a root out of range.
  Call next_call(const TeamRef& team, std::uint32_t what, std::uint64_t count, std::size_t per_segment,
                 std::size_t root, bool same_count = true);
  /// The descriptor of a call along a tree or in a cell. `element_bytes`, `by_type`: as for SharedReductions::takes().
  std::unique_ptr<Descriptor> make(Call call, Kind kind, std::unique_ptr<Values> values, bool ordered,
                                   std::size_t element_bytes, bool by_type);
  /// Consumes early contributions and starts the call, which then continues in handlers. Runs no handlers itself. In
  /// the main program its messages leave at once. Messages of calls that follow one another within 10 us are
  /// collected, and leave with a later call or at the next progress.
  void start(std::unique_ptr<Descriptor> descriptor);

  /// The parent of a PE that contributes to a reduction with one message only: it has no children, and the vector is
  /// one segment. Otherwise the default of TreePlace::parent.
  std::uint32_t only_gives_to(const Call& call, bool ordered, std::size_t element_bytes, bool by_type) const;
  /// start() of that call, without a descriptor.
  void give(const Call& call, std::uint32_t rank, Bytes bytes);
  /// start() of a reduction in a cell on one host, for a member that is not the root: it contributes and has finished,
  /// without a descriptor. Returns false, and changes nothing, if the call uses no cell or must wait for it.
  bool give_in_cell(const Call& call, std::size_t element_bytes, ReduceBytes reduce, Bytes bytes);

  /// Calls in flight on this PE.
  std::size_t size() const { return descriptors_.size(); }
  /// Whether calls of all PEs may use cells.
  bool shares() const { return reductions_ != nullptr; }
  /// Messages that wait for calls that this PE has not made.
  std::size_t early() const;

 private:
  struct Key {
    TeamNumber team;
    std::uint32_t call;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t which = std::uint64_t(key.team.made_before) << 32 | key.call;
      return std::size_t((key.team.list_low ^ which * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd >> 16);
    }
  };
  struct Early {
    std::size_t source;
    ContributionHeader header;
    std::size_t bytes;
    std::shared_ptr<std::byte> memory;  // of FrameStore::hold(), which also counts this record
  };
  using Descriptors = std::unordered_map<Key, std::unique_ptr<Descriptor>, Hash>;
  struct Mail;

  static constexpr std::int64_t together_ns = 10'000;
  static constexpr std::size_t spare_max = 64;

  /// Runs start(). An exception ends the run, because other members wait for its messages.
  template <class Start>
  void begin_call(const Call& call, Start start);
  void enter(std::unique_ptr<Descriptor> descriptor);
  void look_for_others(const Call& call);
  /// nullptr if there is a descriptor with that key.
  Descriptor* add(const Key& key, std::unique_ptr<Descriptor> descriptor);
  void resume(std::uint32_t number);
  void carry(std::size_t pe, const ContributionHeader& header, Bytes bytes) override;
  void post() override;
  void post(std::int64_t now);
  /// The same, unless other messages were posted within together_ns.
  void post_if_due();
  [[noreturn]] void differ(const Call& here, std::size_t pe, const ContributionHeader& there) override;
  void take(std::size_t source, const ContributionHeader& header, Bytes content);
  void give(Descriptor& descriptor, std::size_t source, const ContributionHeader& header, Bytes content);
  void mark_call(const Call& call, model::trace::MarkEnd end);
  void end_if_done(Descriptor& descriptor);
  std::shared_ptr<const TeamState> team_of(const TeamNumber& number) const;
  [[noreturn]] void fail_late(const TeamState& team, std::size_t source, const ContributionHeader& header);
  [[noreturn]] void fail_mismatch(std::uint32_t number, const std::string& team, std::size_t source,
                                  const ContributionHeader& header, const std::string& here);

  Pe* pe_;
  std::shared_ptr<TeamState> world_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> lists_;  // teams made of each list
  using Teams = std::map<TeamNumber, std::weak_ptr<TeamState>>;
  std::shared_ptr<Teams> teams_ = std::make_shared<Teams>();  // existing teams; each removes itself
  std::int64_t sent_ns_ = 0;                                  // time of the last post
  bool carried_ = false;                                      // messages were sent since then
  Descriptors descriptors_;
  std::vector<Descriptors::node_type> spare_;  // nodes of finished calls, for reuse
  std::unique_ptr<Descriptor>
      last_ended_;  // destroyed when the next call starts, because the waiting code must not wait for that
  std::unordered_map<Key, std::vector<Early>, Hash> early_;
  std::unique_ptr<SharedReductions> reductions_;  // nullptr: there are no cells
  std::unique_ptr<Mail> mail_;                    // last: its handler uses the others
};

}  // namespace headway::collective
