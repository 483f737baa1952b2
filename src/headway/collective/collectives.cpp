// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/collective/collectives.hpp>
#include <headway/collective/reduce.hpp>
#include <utility>

namespace headway::collective {
namespace {

const std::size_t extension = am::register_extension(&Collectives::make);

/// A permutation of 64 bits in which each bit of the input changes every bit of the output: MurmurHash3's fmix64().
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccd;
  bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53;
  return bits ^ bits >> 33;
}

/// Two independent chains. The first element of each is the length, so that no list begins as another one ends.
TeamNumber number_of(const std::vector<std::uint32_t>& pes) {
  std::uint64_t low = mix(pes.size() + 0x9e3779b97f4a7c15), high = mix(pes.size() + 0xd1b54a32d192ed03);
  for (const std::uint32_t pe : pes) {
    low = mix(low ^ pe);
    high = mix(high + (pe + 1) * 0x9e3779b97f4a7c15);
  }
  return {low, std::uint32_t(high >> 32) | 1, 0};
}

}  // namespace

struct Collectives::Mail {
  Aggregator<ContributionHeader, Bytes> contributions;
};

Collectives& Collectives::of(Pe& pe) { return static_cast<Collectives&>(pe.engine().extension(extension)); }

Collectives::Collectives(Pe& pe)
    : pe_(&pe),
      world_(std::make_shared<TeamState>(TeamState{&pe, {}, std::uint32_t(pe.id()), std::uint32_t(pe.size()), {}})),
      mail_(new Mail{Aggregator<ContributionHeader, Bytes>(pe, {.flush_when_idle = true, .name = "collectives"})}) {
  mail_->contributions.on(
      [this](PeId source, const ContributionHeader& header, Bytes content) { take(source, header, content); });
}

Collectives::~Collectives() = default;

void Collectives::begin() {
  reductions_ = SharedReductions::make(*pe_, [this](std::uint32_t number) { resume(number); });
}

void Collectives::end() noexcept {
  mail_.reset();
  reductions_.reset();
  early_.clear();
  descriptors_.clear();
  spare_.clear();
  last_ended_.reset();
}

// --- calls

void Collectives::make_room() {
  am::Engine& engine = pe_->engine();
  const auto has_room = [&] {
    const am::FrameStore& store = engine.store();
    if (store.spilling() && !store.queued()) engine.flush_all(am::FlushReason::full);  // open buffers in spilled memory
    return !store.spilling();
  };
  if (!engine.may_block()) return;
  if (engine.store().spilling()) engine.wait_until(has_room, report::Phase::collective);
  if (reductions_ && reductions_->deferred() > cells_count) {
    int rounds = engine.idle() == am::Idle::spin ? 64 : 6;
    engine.wait_until([&] { return reductions_->deferred() <= cells_count || rounds-- == 0; },
                      report::Phase::collective);
  }
}

Call Collectives::next_call(const TeamRef& team, std::uint32_t what, std::uint64_t count, std::size_t per_segment,
                            std::size_t root, bool same_count) {
  if (root >= team.size()) {
    throw UsageError(fmt::format("root {} of a collective of a team of {}, allowed are ranks 0 to {}", root,
                                 base::counted(team.size(), "PE"), team.size() - 1));
  }
  TeamState& state = *team.state();
  state.last = {what, count, std::uint32_t(root)};
  return {team.state(), count, per_segment, state.calls++, what, std::uint32_t(root), same_count};
}

template <class Start>
void Collectives::begin_call(const Call& call, Start start) {
  am::Engine& engine = pe_->engine();
  const std::uint32_t what = call.what, root = call.root;  // the call may be gone when it throws
  const std::uint64_t count = call.count;
  try {
    const DeferHandlers no_handlers(*pe_);  // sends do not wait, so no handler runs in between
    start();
  } catch (const am::RunFailed&) {
    throw;
  } catch (const transport::InvalidFrame& error) {  // in the contribution of another host
    engine.fail(report::FailureKind::failed, error.what());
  } catch (const std::exception& error) {  // the caller must not catch it, because other members wait for lost messages
    engine.fail(
        report::FailureKind::failed,
        fmt::format("{} on PE {} threw: {}", Operation::describe(what, count, root), pe_->id().value, error.what()));
  }
  if (!engine.in_handler()) post_if_due();
}

void Collectives::start(std::unique_ptr<Descriptor> descriptor) {
  begin_call(descriptor->call(), [&] { enter(std::move(descriptor)); });
}

std::uint32_t Collectives::only_gives_to(const Call& call, bool ordered, std::size_t element_bytes,
                                         bool by_type) const {
  const TeamState& team = *call.team;
  if (team.rank == call.root || call.count > call.per_segment || !early_.empty()) return nobody;
  if (reductions_ && call.team == world_ && reductions_->takes(Kind::reduce, call, element_bytes, by_type))
    return nobody;
  return parent_of_leaf(team.rank, team.size, top_of_tree(call, ordered));
}

void Collectives::give(const Call& call, std::uint32_t rank, Bytes bytes) {
  begin_call(call, [&] {
    look_for_others(call);
    carry(call.team->pe_of(rank), header_of(call, Opcode::up, 0), bytes);
  });
}

bool Collectives::give_in_cell(const Call& call, std::size_t element_bytes, ReduceBytes reduce, Bytes bytes) {
  const TeamState& team = *call.team;
  if (!reductions_ || call.team != world_ || team.rank == call.root || reduce == nullptr || !early_.empty() ||
      reductions_->has_hosts() || !reductions_->takes(Kind::reduce, call, element_bytes, true) ||
      !reductions_->next_may_arrive()) {
    return false;
  }
  begin_call(call, [&] {
    const std::uint64_t number = reductions_->begin();
    reductions_->write(number, call, bytes);
    if (const auto other = reductions_->passed(number, call)) differ(call, other->rank, *other);
    if (!reductions_->arrive(number)) return;
    if (const auto other = reductions_->other_than(number, call)) differ(call, other->rank, *other);
    const Bytes result = reductions_->reduce(number, bytes.size(), reduce);
    reductions_->end(number);
    carry(team.pe_of(call.root), header_of(call, Opcode::down, 0), result);
    post();
  });
  return true;
}

/// A call that uses no cell finds members that have arrived at a cell instead.
void Collectives::look_for_others(const Call& call) {
  if (!reductions_ || call.team != world_) return;
  if (const auto other = reductions_->pass(call)) differ(call, other->rank, *other);
}

std::unique_ptr<Descriptor> Collectives::make(Call call, Kind kind, std::unique_ptr<Values> values, bool ordered,
                                              std::size_t element_bytes, bool by_type) {
  if (reductions_ && call.team == world_ && reductions_->takes(kind, call, element_bytes, by_type)) {
    const std::size_t bytes = call.count * element_bytes;
    const am::ScopeId scope = pe_->engine().scope();
    return std::make_unique<CellDescriptor>(std::move(call), kind, std::move(values), bytes, scope,
                                            pe_->engine().scopes().tag(scope), *reductions_);
  }
  return std::make_unique<TreeDescriptor>(std::move(call), kind, std::move(values), ordered);
}

void Collectives::enter(std::unique_ptr<Descriptor> descriptor) {
  const Key key{descriptor->call().team->number, descriptor->call().number};
  Descriptor* const added = add(key, std::move(descriptor));
  if (added == nullptr) throw UsageError("two teams have the same number: make one of them of another list");
  Descriptor& started = *added;
  mark_call(started.call(), model::trace::MarkEnd::begin);
  if (!started.meets()) look_for_others(started.call());
  started.start(*this);
  if (!early_.empty()) {
    if (auto arrived = early_.extract(key)) {
      for (const Early& one : arrived.mapped()) give(started, one.source, one.header, {one.memory.get(), one.bytes});
    }
  }
  end_if_done(started);
}

/// Calls of several teams may have the same number.
void Collectives::mark_call(const Call& call, model::trace::MarkEnd end) {
  transport::mark(pe_->engine().endpoint(), {model::trace::Mark::collective, end, pe_->id(), call.count, call.number});
}

Descriptor* Collectives::add(const Key& key, std::unique_ptr<Descriptor> descriptor) {
  last_ended_.reset();
  if (spare_.empty()) {
    const auto [place, is_new] = descriptors_.emplace(key, std::move(descriptor));
    return is_new ? place->second.get() : nullptr;
  }
  spare_.back().key() = key;
  spare_.back().mapped() = std::move(descriptor);
  auto added = descriptors_.insert(std::move(spare_.back()));
  spare_.pop_back();
  return added.inserted ? added.position->second.get() : nullptr;
}

void Collectives::resume(std::uint32_t number) {
  Descriptor& descriptor = *descriptors_.at({world_->number, number});
  descriptor.resume(*this);
  end_if_done(descriptor);
}

void Collectives::post() { post(pe_->engine().now()); }

void Collectives::post(std::int64_t now) {
  mail_->contributions.flush();
  carried_ = false;
  sent_ns_ = now;
}

void Collectives::post_if_due() {
  if (!carried_) return;
  if (!mail_->contributions.has_open()) {  // it was full and has been posted
    carried_ = false;
  } else if (const std::int64_t now = pe_->engine().now(); now - sent_ns_ >= together_ns) {
    post(now);
  }
}

bool Collectives::holds_back(am::ScopeId epoch) const {
  const auto holds = [epoch](const auto& entry) { return entry.second->holds_back(epoch); };
  return reductions_ && std::ranges::any_of(descriptors_, holds);
}

am::Calls Collectives::calls(am::ScopeId epoch) const {
  if (!reductions_ || !reductions_->has_hosts()) return {};
  am::Calls calls{reductions_->begun(), reductions_->begun(), no_reduction};
  for (const auto& [key, descriptor] : descriptors_) {
    calls.unfinished_min = std::min(calls.unfinished_min, descriptor->reduction_in(epoch));
  }
  return calls;
}

void Collectives::set_calls_made(std::uint64_t called_max) {
  if (reductions_ && reductions_->has_hosts()) reductions_->set_called_max(called_max);
}

void Collectives::carry(std::size_t pe, const ContributionHeader& header, Bytes bytes) {
  mail_->contributions.send(pe, header, bytes);
  carried_ = true;
}

void Collectives::take(std::size_t source, const ContributionHeader& header, Bytes content) {
  const Key key{header.team, header.call};
  if (const auto found = descriptors_.find(key); found != descriptors_.end()) {
    Descriptor& descriptor = *found->second;
    give(descriptor, source, header, content);
    post_if_due();  // before the waiting code resumes and computes
    return end_if_done(descriptor);
  }
  if (const auto team = team_of(header.team); team && std::int32_t(header.call - team->calls) < 0) {
    fail_late(*team, source, header);
  }
  Early early{source, header, content.size(), pe_->engine().store().hold(source, sizeof(Early) + content.size())};
  if (!content.empty()) std::memcpy(early.memory.get(), content.data(), content.size());
  early_[key].push_back(std::move(early));
}

void Collectives::give(Descriptor& descriptor, std::size_t source, const ContributionHeader& header, Bytes content) {
  const Call& call = descriptor.call();
  if (header.what != call.what || header.root != call.root || (call.same_count && header.count != call.count)) {
    fail_mismatch(call.number, call.team->name(), source, header,
                  Operation::describe(call.what, call.count, call.root));
  }
  if (header.rank >= call.team->size || call.team->pe_of(header.rank) != source) {
    throw FormatError("a message of a collective has a rank that is not its sender's");
  }
  descriptor.take(*this, header, content);
}

void Collectives::end_if_done(Descriptor& descriptor) {
  if (!descriptor.is_done()) return;
  mark_call(descriptor.call(), model::trace::MarkEnd::end);
  auto node = descriptors_.extract({descriptor.call().team->number, descriptor.call().number});
  std::unique_ptr<Descriptor> ended = std::move(node.mapped());
  if (spare_.size() < spare_max) spare_.push_back(std::move(node));
  descriptor.complete();  // resumes the waiting code, which may call other collectives
  if (descriptor.is_small()) last_ended_ = std::move(ended);
}

void Collectives::fail_mismatch(std::uint32_t number, const std::string& team, std::size_t source,
                                const ContributionHeader& header, const std::string& here) {
  pe_->engine().fail(
      report::FailureKind::failed,
      fmt::format("as collective number {} of {}, PE {} has called {}, and PE {} {}: the members of a team call the "
                  "same ones in the same order",
                  number, team, pe_->id().value, here, source,
                  Operation::describe(header.what, header.count, header.root)));
}

/// If one of them is a later call, the other PE has called a collective with the earlier number that did not arrive
/// here.
void Collectives::differ(const Call& here, std::size_t pe, const ContributionHeader& there) {
  const std::string mine =
      here.number == there.call ? Operation::describe(here.what, here.count, here.root) : "another one";
  fail_mismatch(std::min(here.number, there.call), here.team->name(), pe, there, mine);
}

/// nullptr if this PE has no team of that number.
std::shared_ptr<const TeamState> Collectives::team_of(const TeamNumber& number) const {
  if (number == world_->number) return world_;
  const auto found = teams_->find(number);
  return found == teams_->end() ? nullptr : found->second.lock();
}

/// This PE has finished a call of that number, which must have been another one.
void Collectives::fail_late(const TeamState& team, std::size_t source, const ContributionHeader& header) {
  const TeamState::Last& last = team.last;
  fail_mismatch(header.call, team.name(), source, header,
                header.call + 1 == team.calls ? Operation::describe(last.what, last.count, last.root) : "another one");
}

// --- at the end of a run

std::size_t Collectives::early() const {
  std::size_t messages = 0;
  for (const auto& [key, arrived] : early_) messages += arrived.size();
  return messages;
}

/// The PEs that hold up the calls in flight, while this PE waits for any future.
void Collectives::add_waits_for(std::vector<std::uint32_t>& pes) const {
  for (const auto& [key, descriptor] : descriptors_) {
    std::vector<std::uint32_t> missing;
    descriptor->add_missing(missing);
    for (const std::uint32_t rank : missing) pes.push_back(std::uint32_t(descriptor->call().team->pe_of(rank)));
  }
}

std::string Collectives::unfinished() const {
  const std::uint64_t in_cells = reductions_ ? reductions_->not_called() : 0, not_called = early() + in_cells;
  if (descriptors_.empty() && not_called == 0) return {};
  std::string text;
  if (!descriptors_.empty()) {
    const auto oldest = std::ranges::min_element(
        descriptors_, {}, [](const auto& entry) { return std::pair(entry.first.call, entry.first.team); });
    const Descriptor& one = *oldest->second;
    const Call& call = one.call();
    std::vector<std::uint32_t> missing;
    one.add_missing(missing);
    text = fmt::format("{} on PE {} {} at the end of the run for contributions that never arrive: {}, number {} of {}",
                       base::counted(descriptors_.size(), "collective"), pe_->id().value,
                       base::by_number(descriptors_.size(), "waits", "wait"),
                       Operation::describe(call.what, call.count, call.root), call.number, call.team->name());
    constexpr std::size_t listed_max = 8;
    for (std::size_t i = 0; i < std::min(missing.size(), listed_max); ++i) {
      text += fmt::format("{}{}", i == 0 ? ", for PE " : ", ", call.team->pe_of(missing[i]));
    }
    if (missing.size() > listed_max) text += " and " + base::counted(missing.size() - listed_max, "other");
    if (descriptors_.size() > 1) text += ", and others";
  }
  if (not_called != 0) {
    text += fmt::format("{}{} on PE {} {} that it has not called", text.empty() ? "" : "; ",
                        base::counted(not_called, "contribution"), pe_->id().value,
                        base::by_number(not_called, "is for a collective", "are for collectives"));
    std::optional<ContributionHeader> one = in_cells != 0 ? reductions_->first_not_called() : std::nullopt;
    if (!early_.empty()) one = early_.begin()->second.front().header;
    if (one) {
      text += fmt::format(": {}, number {}, from PE {}", Operation::describe(one->what, one->count, one->root),
                          one->call, one->rank);
    }
  }
  return text;
}

// --- teams

std::shared_ptr<TeamState> Collectives::make_team(const std::vector<std::size_t>& pes) {
  const std::size_t world = pe_->size();
  const auto remove = [teams = teams_](TeamState* state) {
    teams->erase(state->number);
    delete state;
  };
  std::shared_ptr<TeamState> state(new TeamState{pe_, {}, nobody, std::uint32_t(pes.size()), {}}, remove);
  std::vector<bool> is_there(world);
  for (const std::size_t pe : pes) {
    if (pe >= world)
      throw UsageError(fmt::format("the list of a team of PE {} has PE {}, allowed are PEs 0 to {}", pe_->id().value,
                                   pe, world - 1));
    if (is_there[pe]) throw UsageError(fmt::format("PE {} is twice in the list of a team", pe));
    is_there[pe] = true;
    if (pe == pe_->id()) state->rank = std::uint32_t(state->pes.size());
    state->pes.push_back(std::uint32_t(pe));
  }
  if (state->rank == nobody) {
    throw UsageError(fmt::format("PE {} makes a team of {} without itself: only members make a team", pe_->id().value,
                                 base::counted(state->pes.size(), "PE")));
  }
  state->number = number_of(state->pes);
  state->number.made_before = lists_[state->pes]++;
  (*teams_)[state->number] = state;
  return state;
}

std::string TeamState::name() const {
  if (pes.empty()) return "all PEs";
  constexpr std::size_t listed_max = 8;
  std::string text = "the team of PEs";
  for (std::size_t i = 0; i < std::min(pes.size(), listed_max); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", pes[i]);
  if (pes.size() > listed_max) text += " and " + base::counted(pes.size() - listed_max, "other");
  return text;
}

}  // namespace headway::collective

namespace headway {

Team::Team(Pe& pe) : state_(collective::Collectives::of(pe).world()) {}
Team::Team(Pe& pe, const std::vector<std::size_t>& pes) : state_(collective::Collectives::of(pe).make_team(pes)) {}

PeId Team::pe(std::size_t rank) const {
  if (rank >= size()) {
    throw UsageError(fmt::format("rank {} of a team of {}, allowed are ranks 0 to {}", rank,
                                 base::counted(size(), "PE"), size() - 1));
  }
  return state_->pe_of(rank);
}

Future<> barrier_async(TeamRef team) {
  return collective::start_tree_in_place<collective::Kind::barrier, std::byte>(team, {}, collective::NoOperator(), 0,
                                                                               false);
}

void barrier(TeamRef team) {
  collective::wait_for(team, [&] { return barrier_async(team); });
}

TeamRef::TeamRef(Pe& pe) : state_(&collective::Collectives::of(pe).world()) {}

}  // namespace headway
