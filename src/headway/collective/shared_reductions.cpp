// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <headway/base/format_error.hpp>
#include <headway/collective/shared_reductions.hpp>
#include <headway/rma/pool.hpp>
#include <utility>

namespace headway::collective {
namespace {

// The key of objects that PEs of a process share; those of aggregators have the handler number in the upper bits.
constexpr std::uint64_t shared_key = ~std::uint64_t(0);

}  // namespace

// --- cells

std::unique_ptr<SharedReductions> SharedReductions::make(Pe& pe, Resume resume) {
  if (pe.size() == 1) return nullptr;
  const bool has_hosts = pe.engine().endpoint().host_map().host_firsts.size() > 1;
  return has_hosts ? make_between_hosts(pe, std::move(resume)) : make_here(pe, std::move(resume));
}

std::unique_ptr<SharedReductions> SharedReductions::make_here(Pe& pe, Resume resume) {
  transport::Endpoint& endpoint = pe.engine().endpoint();
  std::vector<CellArea*> areas;
  try {
    for (std::size_t other = 0; other < pe.size(); ++other) {
      if (endpoint.shared_memory().pool(other).empty()) return nullptr;
    }
    const std::uint64_t offset = rma::Pool::of(pe).allocate_everywhere(sizeof(CellArea));
    for (std::size_t other = 0; other < pe.size(); ++other) {
      areas.push_back(reinterpret_cast<CellArea*>(endpoint.shared_memory().pool(other).data() + offset));
    }
  } catch (const std::exception&) {  // no PE can map that much
    return nullptr;
  }
  // All PEs allocate, whatever their settings, which might differ.
  if (pe.engine().collective_strategy() == base::CollectiveStrategy::messages) return nullptr;
  return std::unique_ptr<SharedReductions>(new SharedReductions(pe, 0, std::move(areas), std::move(resume)));
}

/// The hosts have compared their properties when they met, and settings are the same in all processes.
std::unique_ptr<SharedReductions> SharedReductions::make_between_hosts(Pe& pe, Resume resume) {
  transport::Endpoint& endpoint = pe.engine().endpoint();
  if (pe.engine().collective_strategy() != base::CollectiveStrategy::shared || endpoint.services() == nullptr)
    return nullptr;
  const auto firsts = endpoint.host_map().host_firsts;
  Hosts hosts{{firsts.begin(), firsts.end()}, pe.size(), endpoint.host_map().pes_per_process, 0};
  hosts.own = hosts.host_of(pe.id());
  const std::size_t first = hosts.firsts[hosts.own], end = hosts.pes_end(hosts.own);
  rma::Pool& pool = rma::Pool::of(pe);
  const std::uint64_t offset = pool.allocate_everywhere(sizeof(CellArea));
  const std::uint64_t parts_offset = pool.allocate_everywhere(HostReductions::area_bytes(hosts.size()));
  std::vector<CellArea*> areas;
  std::vector<std::byte*> parts;
  for (std::size_t other = first; other < end; ++other) {
    areas.push_back(reinterpret_cast<CellArea*>(endpoint.shared_memory().pool(other).data() + offset));
    parts.push_back(endpoint.shared_memory().pool(other).data() + parts_offset);
  }
  const auto make = [&] { return std::make_shared<HostReductions>(hosts, *endpoint.services(), areas, parts); };
  transport::SharedByProcess* const shared = endpoint.shared_memory().shared_by_process();
  std::unique_ptr<SharedReductions> reductions(new SharedReductions(pe, first, areas, std::move(resume)));
  reductions->hosts_ = shared != nullptr ? shared->find_or_make<HostReductions>(shared_key, make) : make();
  return reductions;
}

SharedReductions::SharedReductions(Pe& pe, std::size_t first_pe, std::vector<CellArea*> areas, Resume resume)
    : engine_(&pe.engine()),
      first_pe_(first_pe),
      own_(pe.id() - first_pe),
      areas_(std::move(areas)),
      resume_(std::move(resume)),
      handler_(engine_->add_handler(*this)) {}

SharedReductions::~SharedReductions() { engine_->remove_handler(handler_); }

bool SharedReductions::takes(Kind kind, const Call& call, std::size_t element_bytes, bool by_type) const {
  if (kind != Kind::reduce && kind != Kind::allreduce && kind != Kind::barrier) return false;
  // Hosts reduce in any order, in threads without the operator of the call.
  if (has_hosts() && ((call.what & 1) != 0 || !by_type)) return false;
  // With two PEs only the root needs the other contribution: no tree delays a member, and a message costs less than a
  // cell.
  if (kind == Kind::reduce && areas_.size() == 2 && engine_->collective_strategy() == base::CollectiveStrategy::best)
    return false;
  return element_bytes != 0 && call.count <= cell_bytes_max / element_bytes;
}

/// Counts as one message, created and handled on this PE: waves before and after a call then differ in their counts.
std::uint64_t SharedReductions::begin() {
  engine_->count_created(1);
  engine_->count_handled(1);
  areas_[own_]->begun.reductions.store(begun_ + 1, std::memory_order_release);
  return begun_++;
}

void SharedReductions::write(std::uint64_t reduction, const Call& call, Bytes bytes) {
  CellSlot& slot = areas_[own_]->slots[reduction % cells_count];
  slot.count = call.count;
  slot.number = call.number;
  slot.what = call.what;
  slot.root = call.root;
  if (!bytes.empty()) std::memcpy(content(own_, reduction, bytes.size()), bytes.data(), bytes.size());
}

std::optional<ContributionHeader> SharedReductions::pass(const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (areas_.size() == 1) return std::nullopt;
  CellHead& next = head(begun_);
  const auto tell = [&] {
    next.passed_pe.store(engine_->id(), relaxed);
    next.passed_what_and_root.store(std::uint64_t(call.what) << 32 | call.root, relaxed);
    next.passed_count.store(call.count, relaxed);
  };
  const std::uint64_t own = mark(begun_, call.number);
  CellCrossing crossing(next.arrived_call, next.passed_call);
  // With two PEs most calls send a message that finds the other, and a mark, which both write, would cost as much.
  if (areas_.size() == 2 ? !crossing.look(own) : !crossing.pass(own, tell)) return std::nullopt;
  return header_of(next.arrived_pe.load(relaxed) - first_pe_, begun_);
}

std::optional<ContributionHeader> SharedReductions::passed(std::uint64_t reduction, const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (areas_.size() == 1) return std::nullopt;
  CellHead& here = head(reduction);
  const auto tell = [&] { here.arrived_pe.store(engine_->id(), relaxed); };
  if (!CellCrossing(here.arrived_call, here.passed_call).arrive(mark(reduction, call.number), tell))
    return std::nullopt;
  const std::uint64_t what_and_root = here.passed_what_and_root.load(relaxed);
  return ContributionHeader{.team = {},
                            .count = here.passed_count.load(relaxed),
                            .call = std::uint32_t(here.passed_call.load(relaxed)),
                            .what = std::uint32_t(what_and_root >> 32),
                            .root = std::uint32_t(what_and_root),
                            .rank = std::uint32_t(here.passed_pe.load(relaxed)),
                            .segment = 0,
                            .opcode = Opcode::up};
}

ContributionHeader SharedReductions::header_of(std::size_t pe, std::uint64_t reduction) const {
  const CellSlot& slot = areas_[pe]->slots[reduction % cells_count];
  return {{}, slot.count, slot.number, slot.what, slot.root, std::uint32_t(first_pe_ + pe), 0, Opcode::up};
}

std::optional<ContributionHeader> SharedReductions::other_than(std::uint64_t reduction, const Call& call) const {
  for (const CellArea* area : areas_) __builtin_prefetch(&area->slots[reduction % cells_count]);
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    const CellSlot& slot = areas_[pe]->slots[reduction % cells_count];
    if (slot.number != call.number || slot.what != call.what || slot.root != call.root || slot.count != call.count) {
      return header_of(pe, reduction);
    }
  }
  return std::nullopt;
}

Bytes SharedReductions::reduce(std::uint64_t reduction, std::size_t bytes, const Values& values) {
  return reduce_by(reduction, bytes, [&](std::byte* running, const std::byte* other) {
    values.reduce_bytes({running, bytes}, {other, bytes});
  });
}

Bytes SharedReductions::reduce(std::uint64_t reduction, std::size_t bytes, ReduceBytes op) {
  return reduce_by(reduction, bytes, [&](std::byte* running, const std::byte* other) { op(running, other, bytes); });
}

template <class Combine>
Bytes SharedReductions::reduce_by(std::uint64_t reduction, std::size_t bytes, Combine combine) {
  if (bytes == 0) return {};
  scratch_.resize(bytes * std::bit_width(areas_.size() - 1));  // for each level of the tree that has children
  const auto given = [&](std::size_t pe) -> const std::byte* { return content(pe, reduction, bytes); };
  return {reduce_subtree(0, areas_.size(), bytes, given, combine, scratch_.data()), bytes};
}

bool SharedReductions::all_have_called(std::uint64_t reduction) const {
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (!has_called(pe, reduction)) return false;
  }
  return true;
}

std::uint64_t SharedReductions::not_called() const {
  if (has_hosts()) return called_max_ > begun_ ? called_max_ - begun_ : 0;
  std::uint64_t contributions = 0;
  for (const CellArea* area : areas_) {
    const std::uint64_t begun = area->begun.reductions.load(std::memory_order_acquire);
    if (begun > begun_) contributions += begun - begun_;
  }
  return contributions;
}

std::optional<ContributionHeader> SharedReductions::first_not_called() const {
  if (!is_free(begun_)) return std::nullopt;
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (has_called(pe, begun_)) return header_of(pe, begun_);
  }
  if (HostReductions::Said said; has_hosts() && hosts_->first_early(begun_, said)) {
    return ContributionHeader{{}, said.count, said.number, said.what, said.root, said.pe, 0, Opcode::up};
  }
  return std::nullopt;
}

// --- calls that wait for their cell

void SharedReductions::defer(std::uint64_t reduction, std::uint32_t number, std::size_t bytes) {
  begin_to_look();
  deferred_.push_back({reduction, number, engine_->store().hold(engine_->id(), sizeof(CellDescriptor) + bytes)});
}

void SharedReductions::begin_to_look() {
  if (!none_waits()) return;
  engine_->count_open_buffers(1);
  looked_ns_ = engine_->now();
}

bool SharedReductions::resume_free() {
  if (engine_->scopes().quiescence_may_end() || none_waits()) return false;
  bool any = !waiting_.empty() && resume_over();
  for (; !deferred_.empty() && has_place(deferred_.front().reduction); any = true) {
    // It counts as a message of the root scope to this PE, so quiescence waits for it. The epoch of the call is held
    // back by its descriptor.
    engine_->count_created(1, am::root_scope);
    engine_->run_later(am::root_scope, [this, number = deferred_.front().number] {
      --resumed_;
      engine_->count_handled(1);
      resume_(number);
    });
    ++resumed_;
    deferred_.pop_front();
  }
  if (none_waits()) engine_->count_open_buffers(-1);
  return any;
}

bool SharedReductions::flush_due(std::int64_t now) {
  if (now < due()) return false;
  looked_ns_ = now;
  return resume_free();
}

SharedReductions::Result SharedReductions::handle(const transport::Arrival&, std::uint32_t&) {
  throw FormatError("a frame arrived for contributions in shared memory, expected none");
}

// --- between hosts

void SharedReductions::climb(std::uint64_t reduction, const Call& call, Bytes bytes) {
  hosts_->arrive({reduction, call.count, call.number, call.what, call.root, std::uint32_t(engine_->id())}, bytes);
}

void SharedReductions::wait(std::uint64_t reduction, std::uint32_t number, am::ScopeId epoch, std::uint8_t tag) {
  begin_to_look();
  if (waiting_.empty()) ends_seen_ = hosts_->ends() - 1;  // the call may be over already
  waiting_.push_back({reduction, number, epoch, epoch_tag(tag)});
  waits_in_[reduction % cells_count] = true;
}

Bytes SharedReductions::take_result(std::uint64_t reduction, std::size_t bytes) {
  waits_in_[reduction % cells_count] = false;
  return hosts_->result(reduction, bytes);
}

/// Resumes calls that are over. Each resumption counts as a message of the call's epoch. If that epoch is done already,
/// because some member has called outside it, the resumption counts as a message of the root scope.
bool SharedReductions::resume_over() {
  const std::uint64_t ends = hosts_->ends();
  if (ends == ends_seen_) return false;
  ends_seen_ = ends;
  const am::Scopes& scopes = engine_->scopes();
  const auto goes_on = [&](const Waiting& one) {
    if (!hosts_->is_over(one.reduction)) return false;
    const bool is_there = one.epoch != am::root_scope && epoch_tag(scopes.tag(one.epoch)) == one.tag;
    if (is_there && scopes.awaits_verdict(one.epoch)) {  // other PEs may have the verdict, and the epoch be done
      ends_seen_ = ends - 1;
      return false;
    }
    const am::ScopeId scope = is_there ? one.epoch : am::root_scope;
    engine_->count_created(1, scope);
    engine_->run_later(scope, [this, number = one.number] {
      engine_->count_handled(1);
      resume_(number);
    });
    return true;
  };
  return std::erase_if(waiting_, goes_on) != 0;
}

void SharedReductions::add_missing(std::uint64_t reduction, std::uint32_t root, std::vector<std::uint32_t>& pes) const {
  const std::size_t before = pes.size();
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (!has_called(pe, reduction)) pes.push_back(std::uint32_t(first_pe_ + pe));
  }
  if (has_hosts() && pes.size() == before) hosts_->add_missing(reduction, root, pes);
}

// --- a call

CellDescriptor::CellDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, std::size_t bytes,
                               am::ScopeId scope, std::uint8_t tag, SharedReductions& reductions)
    : Descriptor(std::move(call)),
      values_(std::move(values)),
      reductions_(&reductions),
      reduction_(reductions.begin()),
      bytes_(bytes),
      scope_(scope),
      tag_(tag),
      for_all_(kind != Kind::reduce),
      has_result_(for_all_ || call_.team->rank == call_.root) {}

void CellDescriptor::start(Carrier& carrier) {
  if (reductions_->may_arrive(reduction_)) return arrive(carrier);
  reductions_->defer(reduction_, call_.number, bytes_);
}

void CellDescriptor::arrive(Carrier& carrier) {
  reductions_->write(reduction_, call_, bytes_ == 0 ? Bytes() : values_->encoded(all()));
  if (const auto other = reductions_->passed(reduction_, call_)) carrier.differ(call_, other->rank, *other);
  const bool is_last = reductions_->arrive(reduction_);
  if (reductions_->has_hosts()) return climb(carrier, is_last);
  state_ = has_result_ && !is_last ? State::waiting : State::done;
  if (!is_last) return;
  if (const auto other = reductions_->other_than(reduction_, call_)) carrier.differ(call_, other->rank, *other);
  const Bytes result = reductions_->reduce(reduction_, bytes_, *values_);
  reductions_->end(reduction_);
  const TeamState& team = *call_.team;
  if (for_all_) {
    for (std::uint32_t i = 1; i < team.size; ++i) send(carrier, (team.rank + i) % team.size, Opcode::down, 0, result);
  } else if (!has_result_) {
    send(carrier, call_.root, Opcode::down, 0, result);
  }
  if (has_result_ && bytes_ != 0) values_->replace(all(), result);
  carrier.post();
}

/// The last member sends to the host above, or ends the call. The others wait if they need the result.
void CellDescriptor::climb(Carrier& carrier, bool is_last) {
  if (is_last) {
    if (const auto other = reductions_->other_than(reduction_, call_)) carrier.differ(call_, other->rank, *other);
    reductions_->climb(reduction_, call_, reductions_->reduce(reduction_, bytes_, *values_));
  }
  state_ = has_result_ ? State::waiting : State::done;
  if (!has_result_) return;
  if (reductions_->is_over(reduction_)) return take_result();
  reductions_->wait(reduction_, call_.number, scope_, tag_);
}

void CellDescriptor::take_result() {
  const Bytes result = reductions_->take_result(reduction_, bytes_);
  if (bytes_ != 0) values_->replace(all(), result);
  state_ = State::done;
}

void CellDescriptor::resume(Carrier& carrier) {
  if (state_ == State::before) return arrive(carrier);
  take_result();
}

std::uint64_t CellDescriptor::reduction_in(am::ScopeId epoch) const {
  return epoch == am::root_scope || epoch == scope_ ? reduction_ : no_reduction;
}

void CellDescriptor::take(Carrier&, const ContributionHeader& header, Bytes content) {
  require(header.opcode == Opcode::down && state_ == State::waiting && content.size() == bytes_,
          "a message of a collective arrived that is not the awaited result, or has another length");
  if (bytes_ != 0) values_->replace(all(), content);
  state_ = State::done;
}

void CellDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  reductions_->add_missing(reduction_, call_.root, ranks);
}

}  // namespace headway::collective
