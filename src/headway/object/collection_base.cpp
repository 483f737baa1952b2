// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/collective/allreduce.hpp>
#include <headway/object/collection_base.hpp>
#include <headway/transport/observer.hpp>

namespace headway::object {
namespace {

struct EndTransit {
  void operator()(CollectionBase* there, std::uint32_t broadcasts, std::span<const std::uint32_t> inserted) const {
    there->end_transit(broadcasts, inserted);
  }
};
struct ReportNeeded {
  void operator()(CollectionBase* there, std::uint32_t round, std::uint32_t first) const {
    there->report_needed(round, first);
  }
};
struct DropHistory {
  void operator()(CollectionBase* there, std::uint32_t first) const { there->drop_history(first); }
};

AggregatorOptions with_name(AggregatorOptions options, std::string_view name) {
  if (options.name.empty()) options.name = name;
  return options;
}

}  // namespace

CollectionBase::CollectionBase(Pe& pe, const CollectionOptions& options, const Form& form)
    : size_known_(form.dense),
      complete_(!form.dense),
      transit_(std::uint32_t(pe.id())),
      pe_(&pe),
      form_(form),
      size_(form.dense ? form.size : 0),
      measures_(options.measure_load),
      load_clock_(pe.engine(), options.measure_load),
      calls_(pe, with_name(options.aggregation, options.name)),
      reductions_(calls_,
                  [this](std::uint64_t stream) {
                    return stream <= of_broadcasts ? elements_.size() : section_size_here(stream << 1 >> 1);
                  }),
      base_(pe, this) {}

CollectionBase::~CollectionBase() = default;

// --- moving

void CollectionBase::request_move(ElementBase& element, std::uint32_t target) {
  ElementState& state = element.state_;
  if (state.target == no_target) apply_move_later(element);
  state.target = target;
  state.number = no_number;
}

bool CollectionBase::must_stay(const ElementState& state) {
  if (state.coroutines != 0) return true;
  if (move_pauses_ == 0) return false;
  moves_delayed_ = true;
  return true;
}

void CollectionBase::apply_delayed_moves() {
  if (!std::exchange(moves_delayed_, false)) return;
  for (const ElementBase* const element : elements_) {
    if (element->state_.target != no_target) apply_move_later(*element);
  }
}

void CollectionBase::add(ElementBase& element) {
  element.state_.position = std::uint32_t(elements_.size());
  element.state_.broadcasts = broadcasts_;
  elements_.push_back(&element);
}

void CollectionBase::remove(ElementBase& element) {
  const std::uint32_t position = element.state_.position;
  elements_[position] = elements_.back();
  elements_[position]->state_.position = position;
  elements_.pop_back();
}

MoveHeader CollectionBase::begin_move(ElementBase& element, std::uint32_t version, std::size_t bytes) {
  const ElementState& state = element.state_;
  if (state.rare) {
    for (const StepCounter& counter : state.rare->counters) {
      for (const DelayedMessage& message : counter.delayed) calls_.count_waiting(message.scope, -1);
    }
  }
  transit_.depart(state.broadcasts);
  ++departed_;
  departed_bytes_ += bytes;
  return {version, state.broadcasts, state.reductions, state.load_s};
}

void CollectionBase::mark_move(std::size_t target, std::size_t bytes) {
  transport::mark(pe().engine().endpoint(), {model::trace::Mark::element, model::trace::MarkEnd::instant, target, bytes,
                                             std::uint32_t(departed_)});
}

void CollectionBase::end_move(ElementBase& element, const MoveHeader& header) {
  ElementState& state = element.state_;
  state.broadcasts = header.broadcasts;
  state.reductions = header.reductions;
  state.load_s = header.load_s;
  if (!state.rare) return;
  for (const StepCounter& counter : state.rare->counters) {
    for (const DelayedMessage& message : counter.delayed) calls_.count_waiting(message.scope, 1);
  }
}

void CollectionBase::release_all(ElementBase& element) {
  const ElementState& state = element.state_;
  for (std::size_t number = 0; state.rare && number < state.rare->counters.size(); ++number) {
    release_messages(element, number);
  }
}

void CollectionBase::end_insertion(ElementBase& element, const InsertHeader& header, Transit::Cause& cause) {
  element.state_.broadcasts = header.broadcasts;
  element.state_.reductions = not_counted;
  catch_up(element, cause);
  tell_arrival(header.broadcasts, header.account, cause);
}

bool CollectionBase::catch_up(ElementBase& element, Transit::Cause& cause) {
  ElementState& state = element.state_;
  while (state.broadcasts < broadcasts_) {
    if (state.target == erase_target && !apply_move(element)) return false;
    const std::size_t behind = broadcasts_ - state.broadcasts;
    cause.set(++state.broadcasts);
    history_[history_.size() - behind](element);
  }
  return true;
}

void CollectionBase::tell_arrival(std::uint32_t broadcasts, std::uint32_t account, const Transit::Cause& cause) {
  if (account == pe_->id()) return transit_.arrived(broadcasts, cause.inserted());
  calls_.rpc_ff(account, EndTransit(), base_, broadcasts, cause.inserted());
}

// --- counts

void CollectionBase::require_size() const {
  if (!size_known_) throw_size_unknown();
}

void CollectionBase::require_elements() const {
  require_size();
  if (size_ == 0) throw_nothing_to_reduce();
}

void CollectionBase::count_elements() {
  struct Count {
    std::uint64_t elements;
    std::uint32_t contributed;
  };
  Count count{elements_.size(), contributed_};
  for (const ElementBase* const element : elements_) {
    const std::uint32_t reductions = element->state_.reductions;
    if (reductions != not_counted) count.contributed = std::max(count.contributed, reductions);
  }
  count = allreduce(*pe_, count, [](const Count& a, const Count& b) {
    return Count{a.elements + b.elements, std::max(a.contributed, b.contributed)};
  });
  size_ = count.elements;
  size_known_ = true;
  contributed_ = count.contributed;
  for (ElementBase* const element : elements_) {
    if (element->state_.reductions == not_counted) element->state_.reductions = contributed_;
  }
  barrier(*pe_);
}

std::uint32_t CollectionBase::next_reduction(ElementBase& element) {
  require_size();
  if (!form_.dense && element.state_.reductions == not_counted) throw_not_counted();
  return element.state_.reductions++;
}

std::uint32_t CollectionBase::next_section_reduction(ElementBase& element, std::uint64_t section) {
  auto& rare = element.state_.rare;
  if (!rare) rare = std::make_unique<RareState>();
  return rare->contributions[section]++;
}

// --- steps

void CollectionBase::make_counters(ElementState& state) const {
  if (!state.rare) state.rare = std::make_unique<RareState>();
  state.rare->counters.resize(form_.counters);
}

std::byte* CollectionBase::delay_message(StepCounter& counter, std::size_t method, std::int64_t step,
                                         std::size_t bytes) {
  DelayedMessage message{std::uint32_t(method), calls_.set_aside(), step, std::uint64_t(bytes), {}};
  message.words.resize((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  counter.delayed.push_back(std::move(message));
  return reinterpret_cast<std::byte*>(counter.delayed.back().words.data());
}

void CollectionBase::release_messages(ElementBase& element, std::size_t number) {
  StepCounter& counter = element.state_.rare->counters[number];
  const auto ready = std::stable_partition(counter.delayed.begin(), counter.delayed.end(),
                                           [&](const DelayedMessage& message) { return message.step != counter.step; });
  if (number >= form_.triggers && !counter.open) return;  // no coroutine waits yet
  for (auto message = ready; message != counter.delayed.end(); ++message) {
    const am::ScopeId scope = message->scope;
    calls_.take_up(scope, delivery_of(element, std::move(*message)));
  }
  counter.delayed.erase(ready, counter.delayed.end());
}

void CollectionBase::open_trigger_step(StepCounter& counter, std::uint64_t expected) {
  counter.expected = expected;
  if (expected == 0) throw_nothing_expected(counter.step);
  counter.open = true;
}

std::optional<Promise<>> CollectionBase::end_step(StepCounter& counter) {
  counter.handled = 0;
  counter.open = false;
  ++counter.step;
  return std::exchange(counter.waiter, std::nullopt);
}

Future<> CollectionBase::await_messages(ElementBase& element, std::size_t number, std::int64_t step,
                                        std::uint64_t count) {
  StepCounter& mine = counter(element, number);
  if (mine.open) throw_waits_already(mine.step);
  if (step < mine.step) throw_late_step(step, mine.step);
  Promise<> done(*pe_);
  Future<> future = done.future();
  mine.step = step;
  if (count == 0) {
    ++mine.step;
    done.set();
    return future;
  }
  mine.expected = count;
  mine.handled = 0;
  mine.open = true;
  mine.waiter.emplace(std::move(done));
  release_messages(element, number);
  return future;
}

// --- broadcasts

void CollectionBase::set_complete() {
  complete_ = true;
  run_kept_broadcast();
}

void CollectionBase::keep_broadcast(std::uint32_t number, std::function<void()> run) {
  kept_broadcasts_[number] = {calls_.set_aside(), std::move(run)};
}

void CollectionBase::run_kept_broadcast() {
  const auto next = kept_broadcasts_.find(broadcasts_);
  if (next == kept_broadcasts_.end()) return;
  calls_.take_up(next->second.scope, std::move(next->second.run));
  kept_broadcasts_.erase(next);
}

void CollectionBase::report_needed_if_due() {
  if (broadcasts_ % history_interval == 0) report_needed(broadcasts_ / history_interval, transit_.needed(broadcasts_));
}

void CollectionBase::report_needed(std::uint32_t round, std::uint32_t first) {
  const std::size_t me = pe_->id();
  std::size_t children = 0;
  for_each_child([&](std::size_t) { ++children; });
  const auto at = history_rounds_.try_emplace(round, HistoryRound{children + 1, first}).first;
  at->second.first = std::min(at->second.first, first);
  if (--at->second.missing != 0) return;
  const std::uint32_t needed = at->second.first;
  history_rounds_.erase(at);
  if (me == 0) return drop_history(needed);
  calls_.rpc_ff(me & (me - 1), ReportNeeded(), base_, round, needed);
}

void CollectionBase::drop_history(std::uint32_t first) {
  for_each_child([&](std::size_t pe) { calls_.rpc_ff(pe, DropHistory(), base_, first); });
  while (history_.size() > broadcasts_ - first) history_.pop_front();
}

}  // namespace headway::object
