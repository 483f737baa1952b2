// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/call/rpc.hpp>
#include <headway/object/balancer.hpp>
#include <utility>

namespace headway::object {
namespace {

const std::size_t extension =
    am::register_extension([](Pe& pe) -> std::unique_ptr<am::Extension> { return std::make_unique<Balancer>(pe); });

struct TakeRequest {
  void operator()(Pe& pe, PeId source, Balancer::RequestId request, std::string_view key) const {
    Balancer::of(pe).take_request(source, request, key);
  }
};
struct BeginTurn {
  void operator()(Pe& pe, Balancer::RequestId request) const { Balancer::of(pe).begin_turn(request); }
};
struct TakeLoads {
  void operator()(Pe& pe, PeId source, std::span<const std::uint64_t> counts, std::span<const double> loads_s) const {
    Balancer::of(pe).take_loads(source, counts, loads_s);
  }
};
struct MoveElements {
  void operator()(Pe& pe, PeId source, std::span<const Move> moves) const { Balancer::of(pe).move(source, moves); }
};
struct TakeCounts {
  void operator()(Pe& pe, const MoveCounts& moved) const { Balancer::of(pe).take_counts(moved); }
};
struct EndTurn {
  void operator()(Pe& pe, PeId source, const BalanceTable& table, const std::string& failure) const {
    Balancer::of(pe).end_turn(source, table, failure);
  }
};
struct TakeTable {
  void operator()(Pe& pe, Balancer::RequestId request, std::uint32_t decider, const BalanceTable& table,
                  const std::string& failure) const {
    Balancer::of(pe).take_table(request, PeId(decider), table, failure);
  }
};

}  // namespace

Pe& require_same_pe(std::initializer_list<Pe*> pes, std::span<const std::uint32_t> numbers) {
  Pe& first = **pes.begin();
  for (Pe* const pe : pes) {
    if (pe != &first) {
      throw UsageError(fmt::format("balancing collections of PE {} and of PE {} in one call: each PE must give its own",
                                   first.id(), pe->id()));
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::ranges::count(numbers, numbers[i]) == 1) continue;
    throw UsageError(fmt::format("balancing {}: collection number {} is given more than once: once is allowed",
                                 base::counted(numbers.size(), "collection"), numbers[i]));
  }
  return first;
}

Balancer& Balancer::of(Pe& pe) { return static_cast<Balancer&>(pe.engine().extension(extension)); }

// --- turns

Future<BalanceTable> Balancer::request(const BalanceStrategy& strategy, std::span<const std::uint32_t> collections,
                                       std::function<void()> start) {
  const RequestId id = next_request_++;
  const std::string key = fmt::format("{}{} {}", strategy.name(),
                                      strategy.known_by_name() ? "" : fmt::format(" of PE {} {}", pe_->id(), id),
                                      fmt::join(collections, " "));
  am::Hold<am::CompletionOf<BalanceTable>> completion(new am::CompletionOf<BalanceTable>(am::Completions::of(*pe_)));
  am::Hold<am::CompletionOf<BalanceTable>> mine(completion.get());
  requests_.emplace(id, Request{strategy, std::move(start), std::move(mine)});
  rpc_ff(*pe_, PeId(0), TakeRequest(), id, std::string_view(key));
  return Future<BalanceTable>(std::move(completion));
}

void Balancer::take_request(PeId source, RequestId request, std::string_view key) {
  for (Turn& turn : turns_) {
    if (turn.key == key) return turn.requesters.push_back({source, request});
  }
  turns_.push_back({std::string(key), {{source, request}}});
  if (turns_.size() == 1) start_turn();
}

void Balancer::start_turn() {
  const Requester& first = turns_.front().requesters.front();
  rpc_ff(*pe_, first.pe, BeginTurn(), first.request);
}

void Balancer::begin_turn(RequestId request) {
  const Request& mine = requests_.at(request);
  strategy_ = mine.strategy;
  begin_ = pe_->engine().now();
  mine.start();
}

void Balancer::end_turn(PeId decider, const BalanceTable& table, const std::string& failure) {
  const Turn turn = std::move(turns_.front());
  turns_.pop_front();
  for (const Requester& requester : turn.requesters) {
    rpc_ff(*pe_, requester.pe, TakeTable(), requester.request, std::uint32_t(decider), table, failure);
  }
  if (!turns_.empty()) start_turn();
}

void Balancer::take_table(RequestId request, PeId decider, const BalanceTable& table, const std::string& failure) {
  const am::Hold<am::CompletionOf<BalanceTable>> completion = std::move(requests_.at(request).completion);
  requests_.erase(request);
  if (failure.empty()) {
    completion->emplace(table);
  } else {
    completion->error = std::make_exception_ptr(RemoteError(decider, failure));
    completion->state = am::Completion::State::failed;
  }
  completion->owner->complete(*completion);
}

// --- one turn

void Balancer::decide_by(const BalanceStrategy& strategy) {
  if (pe_->id() != 0) return;
  strategy_ = strategy;
  begin_ = pe_->engine().now();
  turns_.push_back({});
}

void Balancer::give_loads(PeId decider, Parts parts) {
  parts_ = std::move(parts);
  std::vector<std::uint64_t> counts;
  std::vector<double> loads_s;
  for (const auto& part : parts_) {
    counts.push_back(part->size());
    part->take_loads(loads_s);
  }
  rpc_ff(*pe_, decider, TakeLoads(), std::span<const std::uint64_t>(counts), std::span<const double>(loads_s));
}

void Balancer::take_loads(PeId source, std::span<const std::uint64_t> counts, std::span<const double> loads_s) {
  loads_.resize(pe_->size());
  loads_[source] = {{counts.begin(), counts.end()}, {loads_s.begin(), loads_s.end()}};
  if (++loads_arrived_ == pe_->size()) decide();
}

void Balancer::decide() {
  const std::size_t pes = pe_->size();
  const std::vector<Loads> loads = std::exchange(loads_, {});
  loads_arrived_ = 0;
  table_ = {};
  error_ = nullptr;
  LoadList list;
  std::vector<ElementLoad> before;
  try {
    list = list_of(loads);
    before = list.elements;
    (*strategy_)(list.elements, pes);
  } catch (...) {
    error_ = std::current_exception();
    return finish();
  }
  table_ = table_of(before, list.elements, pes);
  table_.counted = list.counted;
  std::vector<std::vector<Move>> moves(pes);
  std::size_t begin = 0;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    const std::size_t end = begin + loads[pe].loads_s.size();
    for (std::size_t i = begin; i < end; ++i) {
      const PeId to = list.elements[i].pe;
      if (to != pe) moves[pe].push_back({std::uint32_t(i - begin), std::uint32_t(to)});
    }
    begin = end;
  }
  reports_missing_ = std::size_t(std::ranges::count_if(moves, [](const auto& of) { return !of.empty(); }));
  for (std::size_t pe = 0; pe < pes; ++pe) {
    if (!moves[pe].empty()) rpc_ff(*pe_, PeId(pe), MoveElements(), std::span<const Move>(moves[pe]));
  }
  if (reports_missing_ == 0) finish();
}

void Balancer::move(PeId decider, std::span<const Move> moves) {
  MoveCounts moved;
  std::size_t first = 0, part = 0;
  for (const Move& one : moves) {
    while (one.element - first >= parts_.at(part)->size()) first += parts_[part++]->size();
    parts_[part]->move(one.element - first, PeId(one.pe), moved);
  }
  rpc_ff(*pe_, decider, TakeCounts(), moved);
}

void Balancer::take_counts(const MoveCounts& moved) {
  table_.moved += moved.moved;
  table_.moved_bytes += moved.bytes;
  table_.moving += moved.moving;
  table_.missed += moved.missed;
  if (--reports_missing_ == 0) finish();
}

/// In balance() only quiescence waits for the table.
void Balancer::finish() {
  table_.strategy = strategy_->name();
  table_.seconds = double(pe_->engine().now() - begin_) * 1e-9;
  std::string failure;
  if (error_) {
    try {
      std::rethrow_exception(error_);
    } catch (...) {
      failure = call::text_of_failure();
    }
  }
  rpc_ff(*pe_, PeId(0), EndTurn(), table_, failure);
}

void Balancer::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace headway::object
