// SPDX-License-Identifier: BSD-3-Clause
/// Calls of all PEs that combine their contributions in shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/collective/descriptor.hpp>
#include <headway/collective/host_reductions.hpp>
#include <headway/collective/reduction_cell.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace headway::collective {

/// Belongs to one PE. Call number f uses cell f mod cells_count on every PE, because all PEs make the same calls in
/// the same order; no agreement is needed. If an earlier call still uses the cell, the call and all later ones of its
/// PE wait in that PE's memory (towards HEADWAY_SPILL) until the cell is free. The PE checks the cell when it makes
/// progress and is idle, now and then otherwise, and before its messages are counted.
class SharedReductions final : private am::FrameHandler {
 public:
  /// The call of that number can arrive at its cell, or is over. Runs as a handler.
  using Resume = std::function<void(std::uint32_t number)>;
  /// Collective, before the first message. nullptr, on all PEs, if some pools are not mapped or the settings exclude
  /// it.
  static std::unique_ptr<SharedReductions> make(Pe& pe, Resume resume);
  ~SharedReductions() override;

  /// Whether a call of all PEs uses a cell; the same on all PEs. `element_bytes`: 0 for serialized elements;
  /// `by_type`: any PE can reduce without the operator of the call.
  bool takes(Kind kind, const Call& call, std::size_t element_bytes, bool by_type) const;

  /// The number of a new call.
  std::uint64_t begin();
  /// Whether it may arrive at its cell now.
  bool may_arrive(std::uint64_t reduction) const { return deferred_.empty() && resumed_ == 0 && has_place(reduction); }
  bool next_may_arrive() const { return may_arrive(begun_); }
  /// If not: it will be resumed. `bytes` of memory count as spill.
  void defer(std::uint64_t reduction, std::uint32_t number, std::size_t bytes);
  /// Writes the contribution of this PE, before it arrives.
  void write(std::uint64_t reduction, const Call& call, Bytes bytes);
  /// Returns whether this PE is the last.
  bool arrive(std::uint64_t reduction) { return cell(reduction).arrive(generation_of(reduction)); }

  // --- mismatches

  /// This PE makes a call of all PEs by another path. Returns the call of a PE that has arrived at a cell instead, if
  /// any.
  std::optional<ContributionHeader> pass(const Call& call);
  /// Between write() and arrive(): returns the call of a PE that has used another path instead, if any.
  std::optional<ContributionHeader> passed(std::uint64_t reduction, const Call& call);

  // --- for the last member

  /// The call of a PE that differs; nullopt if all have made the same call.
  std::optional<ContributionHeader> other_than(std::uint64_t reduction, const Call& call) const;
  /// All contributions of `bytes`, combined in the order of PEs, with the brackets of the binomial tree. Valid until
  /// the next call.
  Bytes reduce(std::uint64_t reduction, std::size_t bytes, const Values& values);
  Bytes reduce(std::uint64_t reduction, std::size_t bytes, ReduceBytes op);
  /// All contributions have been read: the cell is free.
  void end(std::uint64_t reduction) { cell(reduction).end(generation_of(reduction)); }

  // --- where there are several hosts

  bool has_hosts() const { return hosts_ != nullptr; }
  /// Instead of end(), by the last member of this host: `bytes` is the reduction of all its contributions.
  void climb(std::uint64_t reduction, const Call& call, Bytes bytes);
  /// Resumes a call when it is over, in `epoch` if that is not done. Counts nothing.
  void wait(std::uint64_t reduction, std::uint32_t number, am::ScopeId epoch, std::uint8_t tag);
  bool is_over(std::uint64_t reduction) const { return hosts_->is_over(reduction); }
  /// The result of a call that is over. From then on this PE may arrive at the next call in that cell, which
  /// overwrites the result.
  Bytes take_result(std::uint64_t reduction, std::size_t bytes);
  void add_missing(std::uint64_t reduction, std::uint32_t root, std::vector<std::uint32_t>& pes) const;
  /// The number of calls by cells of this PE, and the maximum over all PEs.
  std::uint64_t begun() const { return begun_; }
  void set_called_max(std::uint64_t reductions) { called_max_ = reductions; }

  // --- for reports, and for quiescence

  /// `pe` is the number of a PE within this host.
  bool has_called(std::size_t pe, std::uint64_t reduction) const {
    return areas_[pe]->begun.reductions.load(std::memory_order_acquire) > reduction;
  }
  bool all_have_called(std::uint64_t reduction) const;
  /// After the last call of all PEs: the number of contributions to calls that this PE has not made, and the first of
  /// them if it can be read.
  std::uint64_t not_called() const;
  std::optional<ContributionHeader> first_not_called() const;

  /// Calls of this PE that wait for their cells.
  std::size_t deferred() const { return deferred_.size() + resumed_; }

 private:
  struct Deferred {
    std::uint64_t reduction;
    std::uint32_t number;
    std::shared_ptr<std::byte> memory;  // of FrameStore::hold(), which counts it
  };
  static constexpr std::int64_t look_again_ns = 200'000;
  /// Distinguishes epochs of one number; without the phase.
  static constexpr std::uint8_t epoch_tag(std::uint8_t tag) { return tag & ~std::uint8_t(1); }

  /// A call that this PE waits for.
  struct Waiting {
    std::uint64_t reduction;
    std::uint32_t number;
    am::ScopeId epoch;
    std::uint8_t tag;  // of the epoch when it was called
  };

  template <class Combine>
  Bytes reduce_by(std::uint64_t reduction, std::size_t bytes, Combine combine);

  SharedReductions(Pe& pe, std::size_t first_pe, std::vector<CellArea*> areas, Resume resume);
  static std::unique_ptr<SharedReductions> make_here(Pe& pe, Resume resume);
  static std::unique_ptr<SharedReductions> make_between_hosts(Pe& pe, Resume resume);

  static std::uint64_t generation_of(std::uint64_t reduction) { return reduction / cells_count; }
  static std::uint64_t mark(std::uint64_t reduction, std::uint32_t number) {
    return CellCrossing::mark(generation_of(reduction), number);
  }
  CellHead& head(std::uint64_t reduction) const {
    return areas_[reduction % cells_count % areas_.size()]->heads[reduction % cells_count];
  }
  ReductionCell cell(std::uint64_t reduction) const {
    return {head(reduction).arrived, head(reduction).generation, areas_.size()};
  }
  bool is_free(std::uint64_t reduction) const { return cell(reduction).is_free(generation_of(reduction)); }
  /// Free, and this PE has consumed the result of the last call there.
  bool has_place(std::uint64_t reduction) const { return is_free(reduction) && !waits_in_[reduction % cells_count]; }
  std::byte* content(std::size_t pe, std::uint64_t reduction, std::size_t bytes) const {
    CellArea& area = *areas_[pe];
    return bytes <= CellSlot::bytes_max ? area.slots[reduction % cells_count].content
                                        : area.contents[reduction % cells_count];
  }
  ContributionHeader header_of(std::size_t pe, std::uint64_t reduction) const;

  /// Resumes calls with a free cell, and calls that are over, at the next progress. Returns whether there are any.
  bool resume_free();
  bool resume_over();
  bool none_waits() const { return deferred_.empty() && waiting_.empty(); }
  void begin_to_look();

  // am::FrameHandler: a waiting call is an open buffer; flushing it checks the cell
  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override;
  bool flush_open(am::FlushReason) override { return resume_free(); }
  bool flush_idle(am::IdleFlush) override { return resume_free(); }
  bool flush_scope(am::ScopeId, am::FlushReason) override { return resume_free(); }
  std::int64_t due() const override { return none_waits() ? am::never : looked_ns_ + look_again_ns; }
  bool flush_due(std::int64_t now) override;
  std::uint16_t signature() const override { return 0; }
  std::string description() const override { return "contributions in shared memory"; }
  bool ready() const override { return true; }

  am::Engine* engine_;
  std::size_t first_pe_, own_;             // first PE of this host, and this PE's number within the host
  std::vector<CellArea*> areas_;           // by PE of this host
  std::shared_ptr<HostReductions> hosts_;  // nullptr: one host
  Resume resume_;
  std::uint32_t handler_;
  std::uint64_t begun_ = 0;
  std::deque<Deferred> deferred_;
  std::size_t resumed_ = 0;  // taken from deferred_, not resumed yet
  std::int64_t looked_ns_ = 0;
  std::vector<Waiting> waiting_;
  std::array<bool, cells_count> waits_in_{};  // until this PE has consumed the result
  std::uint64_t ends_seen_ = 0;
  std::uint64_t called_max_ = 0;
  std::vector<std::byte> scratch_;
};

/// A call that uses a cell. The last member to arrive reduces, and sends the result to members that wait for it; the
/// others are done on arrival.
class CellDescriptor final : public Descriptor {
 public:
  CellDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, std::size_t bytes, am::ScopeId scope,
                 std::uint8_t tag, SharedReductions& reductions);

  void start(Carrier& carrier) override;
  void resume(Carrier& carrier) override;
  void take(Carrier& carrier, const ContributionHeader& header, Bytes content) override;
  bool meets() const override { return true; }
  bool is_done() const override { return state_ == State::done; }
  void complete() override { values_->complete(has_result_); }
  void add_missing(std::vector<std::uint32_t>& ranks) const override;
  /// Once all have called it, it ends without any further call.
  bool holds_back(am::ScopeId epoch) const override {
    return !reductions_->has_hosts() && epoch == scope_ && reductions_->all_have_called(reduction_);
  }
  std::uint64_t reduction_in(am::ScopeId epoch) const override;

 private:
  enum class State : std::uint8_t { before, waiting, done };

  void arrive(Carrier& carrier);
  void climb(Carrier& carrier, bool is_last);
  void take_result();
  Part all() const { return {0, std::size_t(call_.count)}; }

  std::unique_ptr<Values> values_;
  SharedReductions* reductions_;
  std::uint64_t reduction_;
  std::size_t bytes_;
  am::ScopeId scope_;
  std::uint8_t tag_;
  bool for_all_, has_result_;
  State state_ = State::before;
};

}  // namespace headway::collective
