#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <headway/base/format_error.hpp>
#include <headway/collective/folds.hpp>
#include <headway/rma/pool.hpp>
#include <utility>

namespace headway::collective {
namespace {

// Of what PEs of a process have in common; those of aggregators have their handlers' numbers in the upper bits.
constexpr std::uint64_t shared_key = ~std::uint64_t(0);

}  // namespace

// --- cells

std::unique_ptr<Folds> Folds::make(Pe& pe, Resume resume) {
  if (pe.size() == 1) return nullptr;
  const bool has_hosts = pe.engine().endpoint().host_map().host_firsts.size() > 1;
  return has_hosts ? make_between_hosts(pe, std::move(resume)) : make_here(pe, std::move(resume));
}

std::unique_ptr<Folds> Folds::make_here(Pe& pe, Resume resume) {
  Endpoint& endpoint = pe.engine().endpoint();
  std::vector<FoldArea*> areas;
  try {
    for (std::size_t other = 0; other < pe.size(); ++other) {
      if (endpoint.shared_memory().pool(other).empty()) return nullptr;
    }
    const std::uint64_t offset = rma::Pool::of(pe).allocate_everywhere(sizeof(FoldArea));
    for (std::size_t other = 0; other < pe.size(); ++other) {
      areas.push_back(reinterpret_cast<FoldArea*>(endpoint.shared_memory().pool(other).data() + offset));
    }
  } catch (const std::exception&) {  // as little may be mapped on all of them
    return nullptr;
  }
  // What all PEs allocate they allocate whatever the settings say, which might differ.
  if (pe.engine().collective_strategy() == CollectiveStrategy::messages) return nullptr;
  return std::unique_ptr<Folds>(new Folds(pe, 0, std::move(areas), std::move(resume)));
}

/// What hosts differ in is known from their meeting, and settings are the same in all processes.
std::unique_ptr<Folds> Folds::make_between_hosts(Pe& pe, Resume resume) {
  Endpoint& endpoint = pe.engine().endpoint();
  if (pe.engine().collective_strategy() != CollectiveStrategy::shared || endpoint.services() == nullptr) return nullptr;
  const auto firsts = endpoint.host_map().host_firsts;
  Hosts hosts{{firsts.begin(), firsts.end()}, pe.size(), endpoint.host_map().pes_per_process, 0};
  hosts.own = hosts.host_of(pe.id());
  const std::size_t first = hosts.firsts[hosts.own], end = hosts.pes_end(hosts.own);
  rma::Pool& pool = rma::Pool::of(pe);
  const std::uint64_t offset = pool.allocate_everywhere(sizeof(FoldArea));
  const std::uint64_t parts_offset = pool.allocate_everywhere(HostFolds::area_bytes(hosts.size()));
  std::vector<FoldArea*> areas;
  std::vector<std::byte*> parts;
  for (std::size_t other = first; other < end; ++other) {
    areas.push_back(reinterpret_cast<FoldArea*>(endpoint.shared_memory().pool(other).data() + offset));
    parts.push_back(endpoint.shared_memory().pool(other).data() + parts_offset);
  }
  const auto make = [&] { return std::make_shared<HostFolds>(hosts, *endpoint.services(), areas, parts); };
  SharedByProcess* const shared = endpoint.shared_memory().shared_by_process();
  std::unique_ptr<Folds> folds(new Folds(pe, first, areas, std::move(resume)));
  folds->hosts_ = shared != nullptr ? shared->find_or_make<HostFolds>(shared_key, make) : make();
  return folds;
}

Folds::Folds(Pe& pe, std::size_t first_pe, std::vector<FoldArea*> areas, Resume resume)
    : engine_(&pe.engine()),
      first_pe_(first_pe),
      own_(pe.id() - first_pe),
      areas_(std::move(areas)),
      resume_(std::move(resume)),
      handler_(engine_->add_handler(*this)) {}

Folds::~Folds() { engine_->remove_handler(handler_); }

bool Folds::takes(Kind kind, const Call& call, std::size_t element_bytes, bool by_type) const {
  if (kind != Kind::reduce && kind != Kind::allreduce && kind != Kind::barrier) return false;
  // Hosts fold in whatever order, by who may have nothing of the call.
  if (has_hosts() && ((call.what & 1) != 0 || !by_type)) return false;
  // Of two the root alone needs anything of the other: no tree holds anybody up, and one message is less than a cell.
  if (kind == Kind::reduce && areas_.size() == 2 && engine_->collective_strategy() == CollectiveStrategy::best)
    return false;
  return element_bytes != 0 && call.count <= fold_bytes_max / element_bytes;
}

/// It counts as a message to this PE: two waves of counts that agree have no call between them.
std::uint64_t Folds::begin() {
  engine_->count_created(1);
  engine_->count_handled(1);
  areas_[own_]->begun.folds.store(begun_ + 1, std::memory_order_release);
  return begun_++;
}

void Folds::write(std::uint64_t fold, const Call& call, Bytes bytes) {
  FoldSlot& slot = areas_[own_]->slots[fold % fold_cells];
  slot.count = call.count;
  slot.number = call.number;
  slot.what = call.what;
  slot.root = call.root;
  if (!bytes.empty()) std::memcpy(content(own_, fold, bytes.size()), bytes.data(), bytes.size());
}

std::optional<Note> Folds::pass(const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (areas_.size() == 1) return std::nullopt;
  FoldHead& next = head(begun_);
  const auto tell = [&] {
    next.passed_pe.store(engine_->id(), relaxed);
    next.passed_what_and_root.store(std::uint64_t(call.what) << 32 | call.root, relaxed);
    next.passed_count.store(call.count, relaxed);
  };
  const std::uint64_t own = mark(begun_, call.number);
  FoldCrossing crossing(next.came, next.passed);
  // Of two most calls send a message that finds the other, and a mark, written by each, would cost as much as that.
  if (areas_.size() == 2 ? !crossing.look(own) : !crossing.pass(own, tell)) return std::nullopt;
  return note_of(next.came_pe.load(relaxed) - first_pe_, begun_);
}

std::optional<Note> Folds::passed(std::uint64_t fold, const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (areas_.size() == 1) return std::nullopt;
  FoldHead& here = head(fold);
  const auto tell = [&] { here.came_pe.store(engine_->id(), relaxed); };
  if (!FoldCrossing(here.came, here.passed).come(mark(fold, call.number), tell)) return std::nullopt;
  const std::uint64_t what_and_root = here.passed_what_and_root.load(relaxed);
  return Note{.team = {},
              .count = here.passed_count.load(relaxed),
              .call = std::uint32_t(here.passed.load(relaxed)),
              .what = std::uint32_t(what_and_root >> 32),
              .root = std::uint32_t(what_and_root),
              .rank = std::uint32_t(here.passed_pe.load(relaxed)),
              .segment = 0,
              .word = Word::up};
}

Note Folds::note_of(std::size_t pe, std::uint64_t fold) const {
  const FoldSlot& slot = areas_[pe]->slots[fold % fold_cells];
  return {{}, slot.count, slot.number, slot.what, slot.root, std::uint32_t(first_pe_ + pe), 0, Word::up};
}

std::optional<Note> Folds::other_than(std::uint64_t fold, const Call& call) const {
  for (const FoldArea* area : areas_) __builtin_prefetch(&area->slots[fold % fold_cells]);
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    const FoldSlot& slot = areas_[pe]->slots[fold % fold_cells];
    if (slot.number != call.number || slot.what != call.what || slot.root != call.root || slot.count != call.count) {
      return note_of(pe, fold);
    }
  }
  return std::nullopt;
}

Bytes Folds::fold(std::uint64_t fold, std::size_t bytes, const Values& values) {
  return fold_by(fold, bytes, [&](std::byte* running, const std::byte* other) {
    values.fold_bytes({running, bytes}, {other, bytes});
  });
}

Bytes Folds::fold(std::uint64_t fold, std::size_t bytes, FoldBytes op) {
  return fold_by(fold, bytes, [&](std::byte* running, const std::byte* other) { op(running, other, bytes); });
}

template <class Combine>
Bytes Folds::fold_by(std::uint64_t fold, std::size_t bytes, Combine combine) {
  if (bytes == 0) return {};
  scratch_.resize(bytes * std::bit_width(areas_.size() - 1));  // for each level of the tree that has children
  const auto given = [&](std::size_t pe) -> const std::byte* { return content(pe, fold, bytes); };
  return {fold_subtree(0, areas_.size(), bytes, given, combine, scratch_.data()), bytes};
}

bool Folds::all_have_called(std::uint64_t fold) const {
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (!has_called(pe, fold)) return false;
  }
  return true;
}

std::uint64_t Folds::not_called() const {
  if (has_hosts()) return called_max_ > begun_ ? called_max_ - begun_ : 0;
  std::uint64_t contributions = 0;
  for (const FoldArea* area : areas_) {
    const std::uint64_t begun = area->begun.folds.load(std::memory_order_acquire);
    if (begun > begun_) contributions += begun - begun_;
  }
  return contributions;
}

std::optional<Note> Folds::first_not_called() const {
  if (!is_free(begun_)) return std::nullopt;
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (has_called(pe, begun_)) return note_of(pe, begun_);
  }
  if (HostFolds::Said said; has_hosts() && hosts_->first_early(begun_, said)) {
    return Note{{}, said.count, said.number, said.what, said.root, said.pe, 0, Word::up};
  }
  return std::nullopt;
}

// --- what waits for its cell

void Folds::defer(std::uint64_t fold, std::uint32_t number, std::size_t bytes) {
  begin_to_look();
  deferred_.push_back({fold, number, engine_->store().hold(engine_->id(), sizeof(FoldDescriptor) + bytes)});
}

void Folds::begin_to_look() {
  if (!none_waits()) return;
  engine_->count_open_buffers(1);
  looked_ns_ = engine_->now();
}

bool Folds::resume_free() {
  if (engine_->scopes().quiescence_ends() || none_waits()) return false;
  bool any = !waiting_.empty() && resume_over();
  for (; !deferred_.empty() && has_place(deferred_.front().fold); any = true) {
    // It counts as a message to this PE, of the root, for who waits for all to be quiet; an epoch in which it was
    // called is held back by its descriptor.
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

bool Folds::flush_due(std::int64_t now) {
  if (now < due()) return false;
  looked_ns_ = now;
  return resume_free();
}

Folds::Result Folds::handle(const Arrival&, std::uint32_t&) {
  throw FormatError("contributions in shared memory do not come in frames");
}

// --- between hosts

void Folds::climb(std::uint64_t fold, const Call& call, Bytes bytes) {
  hosts_->come({fold, call.count, call.number, call.what, call.root, std::uint32_t(engine_->id())}, bytes);
}

void Folds::wait(std::uint64_t fold, std::uint32_t number, am::ScopeId epoch, std::uint8_t tag) {
  begin_to_look();
  if (waiting_.empty()) ends_seen_ = hosts_->ends() - 1;  // it may be over by now
  waiting_.push_back({fold, number, epoch, epoch_tag(tag)});
  waits_in_[fold % fold_cells] = true;
}

Bytes Folds::take_result(std::uint64_t fold, std::size_t bytes) {
  waits_in_[fold % fold_cells] = false;
  return hosts_->result(fold, bytes);
}

/// As a message of the epoch in which it was called, which cannot be done where all have called it there; where it is
/// done, of the root.
bool Folds::resume_over() {
  const std::uint64_t ends = hosts_->ends();
  if (ends == ends_seen_) return false;
  ends_seen_ = ends;
  const am::Scopes& scopes = engine_->scopes();
  const auto goes_on = [&](const Waiting& one) {
    if (!hosts_->is_over(one.fold)) return false;
    const bool is_there = one.epoch != am::root_scope && epoch_tag(scopes.tag(one.epoch)) == one.tag;
    if (is_there && scopes.awaits_verdict(one.epoch)) {  // others may have it, and the epoch be done
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

void Folds::add_missing(std::uint64_t fold, std::uint32_t root, std::vector<std::uint32_t>& pes) const {
  const std::size_t before = pes.size();
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (!has_called(pe, fold)) pes.push_back(std::uint32_t(first_pe_ + pe));
  }
  if (has_hosts() && pes.size() == before) hosts_->add_missing(fold, root, pes);
}

// --- a call

FoldDescriptor::FoldDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, std::size_t bytes,
                               am::ScopeId scope, std::uint8_t tag, Folds& folds)
    : Descriptor(std::move(call)),
      values_(std::move(values)),
      folds_(&folds),
      fold_(folds.begin()),
      bytes_(bytes),
      scope_(scope),
      tag_(tag),
      for_all_(kind != Kind::reduce),
      has_result_(for_all_ || call_.team->rank == call_.root) {}

void FoldDescriptor::start(Carrier& carrier) {
  if (folds_->may_come(fold_)) return come(carrier);
  folds_->defer(fold_, call_.number, bytes_);
}

void FoldDescriptor::come(Carrier& carrier) {
  folds_->write(fold_, call_, bytes_ == 0 ? Bytes() : values_->encoded(all()));
  if (const auto other = folds_->passed(fold_, call_)) carrier.differ(call_, other->rank, *other);
  const bool is_last = folds_->come(fold_);
  if (folds_->has_hosts()) return climb(carrier, is_last);
  state_ = has_result_ && !is_last ? State::waiting : State::done;
  if (!is_last) return;
  if (const auto other = folds_->other_than(fold_, call_)) carrier.differ(call_, other->rank, *other);
  const Bytes result = folds_->fold(fold_, bytes_, *values_);
  folds_->end(fold_);
  const TeamState& team = *call_.team;
  if (for_all_) {
    for (std::uint32_t i = 1; i < team.size; ++i) send(carrier, (team.rank + i) % team.size, Word::down, 0, result);
  } else if (!has_result_) {
    send(carrier, call_.root, Word::down, 0, result);
  }
  if (has_result_ && bytes_ != 0) values_->replace(all(), result);
  carrier.post();
}

/// Who is last goes on to the host above, or to the end; the others wait for that, if they need what becomes of it.
void FoldDescriptor::climb(Carrier& carrier, bool is_last) {
  if (is_last) {
    if (const auto other = folds_->other_than(fold_, call_)) carrier.differ(call_, other->rank, *other);
    folds_->climb(fold_, call_, folds_->fold(fold_, bytes_, *values_));
  }
  state_ = has_result_ ? State::waiting : State::done;
  if (!has_result_) return;
  if (folds_->is_over(fold_)) return take_result();
  folds_->wait(fold_, call_.number, scope_, tag_);
}

void FoldDescriptor::take_result() {
  const Bytes result = folds_->take_result(fold_, bytes_);
  if (bytes_ != 0) values_->replace(all(), result);
  state_ = State::done;
}

void FoldDescriptor::resume(Carrier& carrier) {
  if (state_ == State::before) return come(carrier);
  take_result();
}

std::uint64_t FoldDescriptor::fold_in(am::ScopeId epoch) const {
  return epoch == am::root_scope || epoch == scope_ ? fold_ : no_fold;
}

void FoldDescriptor::take(Carrier&, const Note& note, Bytes content) {
  require(note.word == Word::down && state_ == State::waiting && content.size() == bytes_,
          "a message of a collective comes that cannot be");
  if (bytes_ != 0) values_->replace(all(), content);
  state_ = State::done;
}

void FoldDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  folds_->add_missing(fold_, call_.root, ranks);
}

}  // namespace headway::collective
