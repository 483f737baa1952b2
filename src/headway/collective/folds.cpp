#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <headway/base/format_error.hpp>
#include <headway/collective/folds.hpp>
#include <headway/rma/pool.hpp>
#include <utility>

namespace headway::collective {

// --- cells

std::unique_ptr<Folds> Folds::make(Pe& pe, Resume resume) {
  Endpoint& endpoint = pe.engine().endpoint();
  if (pe.size() == 1) return nullptr;
  std::vector<FoldArea*> areas;
  try {
    for (std::size_t other = 0; other < pe.size(); ++other) {
      if (endpoint.pool(other).empty()) return nullptr;
    }
    const std::uint64_t offset = rma::Pool::of(pe).allocate_everywhere(sizeof(FoldArea));
    for (std::size_t other = 0; other < pe.size(); ++other) {
      areas.push_back(reinterpret_cast<FoldArea*>(endpoint.pool(other).data() + offset));
    }
  } catch (const std::exception&) {  // as little may be mapped on all of them
    return nullptr;
  }
  // What all PEs allocate they allocate whatever the settings say, which might differ.
  if (pe.engine().collective_way() == CollectiveWay::messages) return nullptr;
  return std::unique_ptr<Folds>(new Folds(pe, std::move(areas), std::move(resume)));
}

Folds::Folds(Pe& pe, std::vector<FoldArea*> areas, Resume resume)
    : engine_(&pe.engine()),
      areas_(std::move(areas)),
      resume_(std::move(resume)),
      handler_(engine_->add_handler(*this)) {}

Folds::~Folds() { engine_->remove_handler(handler_); }

bool Folds::takes(Kind kind, std::uint64_t count, std::size_t element_bytes) const {
  if (kind != Kind::reduce && kind != Kind::allreduce && kind != Kind::barrier) return false;
  // Of two the root alone needs anything of the other: no tree holds anybody up, and one message is less than a cell.
  if (kind == Kind::reduce && areas_.size() == 2 && engine_->collective_way() == CollectiveWay::best) return false;
  return element_bytes != 0 && count <= fold_bytes_max / element_bytes;
}

/// It counts as a message to this PE: two waves of counts that agree have no call between them.
std::uint64_t Folds::begin() {
  engine_->count_created(1);
  engine_->count_handled(1);
  areas_[engine_->id()]->begun.folds.store(begun_ + 1, std::memory_order_release);
  return begun_++;
}

void Folds::write(std::uint64_t fold, const Call& call, Bytes bytes) {
  FoldSlot& slot = areas_[engine_->id()]->slots[fold % fold_cells];
  slot.count = call.count;
  slot.number = call.number;
  slot.what = call.what;
  slot.root = call.root;
  if (!bytes.empty()) std::memcpy(content(engine_->id(), fold, bytes.size()), bytes.data(), bytes.size());
}

std::optional<Note> Folds::pass(const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
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
  return note_of(next.came_pe.load(relaxed), begun_);
}

std::optional<Note> Folds::passed(std::uint64_t fold, const Call& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  FoldHead& here = head(fold);
  const auto tell = [&] { here.came_pe.store(engine_->id(), relaxed); };
  if (!FoldCrossing(here.came, here.passed).come(mark(fold, call.number), tell)) return std::nullopt;
  const std::uint64_t what_and_root = here.passed_what_and_root.load(relaxed);
  return Note{.team = 0,
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
  return {0, slot.count, slot.number, slot.what, slot.root, std::uint32_t(pe), 0, Word::up};
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
  if (bytes == 0) return {};
  scratch_.resize(bytes * std::bit_width(areas_.size() - 1));  // for each level of the tree that has children
  const auto given = [&](std::size_t pe) -> const std::byte* { return content(pe, fold, bytes); };
  const auto combine = [&](std::byte* running, const std::byte* other) {
    values.fold_bytes({running, bytes}, {other, bytes});
  };
  return {fold_subtree(0, areas_.size(), bytes, given, combine, scratch_.data()), bytes};
}

bool Folds::all_have_called(std::uint64_t fold) const {
  for (std::size_t pe = 0; pe < areas_.size(); ++pe) {
    if (!has_called(pe, fold)) return false;
  }
  return true;
}

std::uint64_t Folds::not_called() const {
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
  return std::nullopt;
}

// --- what waits for its cell

void Folds::defer(std::uint64_t fold, std::uint32_t number, std::size_t bytes) {
  if (deferred_.empty()) {
    engine_->count_open_buffers(1);
    looked_ns_ = engine_->now();
  }
  deferred_.push_back({fold, number, engine_->store().hold(engine_->id(), sizeof(FoldDescriptor) + bytes)});
}

bool Folds::resume_free() {
  if (engine_->scopes().quiescence_ends()) return false;
  bool any = false;
  for (; !deferred_.empty() && is_free(deferred_.front().fold); any = true) {
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
    if (deferred_.empty()) engine_->count_open_buffers(-1);
  }
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

// --- a call

FoldDescriptor::FoldDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, std::size_t bytes,
                               am::ScopeId scope, Folds& folds)
    : Descriptor(std::move(call)),
      values_(std::move(values)),
      folds_(&folds),
      fold_(folds.begin()),
      bytes_(bytes),
      scope_(scope),
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

void FoldDescriptor::take(Carrier&, const Note& note, Bytes content) {
  require(note.word == Word::down && state_ == State::waiting && content.size() == bytes_,
          "a message of a collective comes that cannot be");
  if (bytes_ != 0) values_->replace(all(), content);
  state_ = State::done;
}

void FoldDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  for (std::uint32_t rank = 0; rank < call_.team->size; ++rank) {
    if (!folds_->has_called(rank, fold_)) ranks.push_back(rank);
  }
}

}  // namespace headway::collective
