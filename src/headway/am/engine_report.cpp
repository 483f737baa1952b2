// SPDX-License-Identifier: BSD-3-Clause
/// The PE's answers: its part of a report, which names messages that cannot be delivered and the PEs that it waits for,
/// and statistics.
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <map>
#include <utility>

namespace headway::am {
namespace {

constexpr std::size_t peers_listed_max = 4;

using MessagesByPeer = std::map<std::uint32_t, std::uint64_t>;
using CountsByHandler = std::map<std::uint32_t, MessagesByPeer>;

void add_once(std::vector<std::uint32_t>& pes, std::size_t pe) {
  if (std::ranges::find(pes, pe) == pes.end()) pes.push_back(std::uint32_t(pe));
}

/// "3 from PE 1, 5 from PE 2"; for more than 4 PEs only the PE with the most messages.
std::string list(const MessagesByPeer& messages, const char* preposition) {
  if (messages.size() > peers_listed_max) {
    const auto most = std::ranges::max_element(messages, {}, [](const auto& entry) { return entry.second; });
    return fmt::format("{} {}, most {} PE {} ({})", preposition, base::counted(messages.size(), "PE"), preposition,
                       most->first, most->second);
  }
  std::string text;
  for (const auto& [peer, count] : messages) {
    text += fmt::format("{}{} {} PE {}", text.empty() ? "" : ", ", count, preposition, peer);
  }
  return text;
}

}  // namespace

// --- undeliverable messages

std::uint64_t Engine::undeliverable_messages(ScopeId scope) const {
  std::uint64_t messages = 0;
  for (const Held& held : early_) messages += held.is_in(scope) ? held.messages() : 0;
  handlers_.for_each([&](std::uint32_t, const Entry& entry) { messages += entry.handler->waiting_messages(scope); });
  if (scope != root_scope) return messages;
  for (const Held& held : later_) {
    if (scopes_.awaits_epoch(held.arrival.header.scope)) messages += held.messages();
  }
  return messages;
}

std::string Engine::undelivered(ScopeId scope) const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> by_handler_and_source;
  for (const Held& held : early_) {
    if (!held.is_in(scope)) continue;
    by_handler_and_source[{held.arrival.header.handler, held.arrival.header.source}] += held.messages();
  }
  std::string text;
  for (const auto& [key, messages] : by_handler_and_source) {
    const auto& [handler, source] = key;
    text += fmt::format("{}{} from PE {} {} undelivered on PE {}: ", text.empty() ? "" : "\n",
                        base::counted(messages, "message"), source, base::by_number(messages, "is", "are"), id());
    const Removed* const removed = find_removed(handler);
    if (!handlers_.was_made(handler)) {
      text += fmt::format("aggregator number {} was never made there; make aggregators on every PE", handler);
    } else if (handlers_.find(handler) != nullptr || (removed != nullptr && !removed->was_ready)) {
      text += fmt::format("{} has no handler there (call on())", describe_handler(handler));
    } else {
      text +=
          fmt::format("{} was destroyed there; quiesce() before destroying an aggregator", describe_handler(handler));
    }
  }
  handlers_.for_each([&](std::uint32_t, const Entry& entry) {
    const std::uint64_t waiting = entry.handler->waiting_messages(scope);
    if (waiting == 0) return;
    text += fmt::format("{}{} {} undelivered on PE {}: {} waits for an object that was never made there",
                        text.empty() ? "" : "\n", base::counted(waiting, "message"),
                        base::by_number(waiting, "is", "are"), id(), entry.handler->description());
  });
  std::map<std::uint32_t, std::uint64_t> awaiting_epoch_by_source;
  for (const Held& held : later_) {
    if (scope == root_scope && scopes_.awaits_epoch(held.arrival.header.scope)) {
      awaiting_epoch_by_source[held.arrival.header.source] += held.messages();
    }
  }
  for (const auto& [source, messages] : awaiting_epoch_by_source) {
    text += fmt::format(
        "{}{} from PE {} {} undelivered on PE {}: {} to an epoch that has not begun there; make epochs on "
        "every PE, in the same order",
        text.empty() ? "" : "\n", base::counted(messages, "message"), source, base::by_number(messages, "is", "are"),
        id(), base::by_number(messages, "it belongs", "they belong"));
  }
  return text;
}

// --- the report

std::string Engine::name_of_handler(std::uint32_t number) const {
  if (!handlers_.was_made(number)) return fmt::format("aggregator number {}, which was not made there", number);
  const std::string text = describe_handler(number);
  return text.substr(0, text.find(" with buffers"));
}

std::vector<std::uint32_t> Engine::waits_for() const {
  std::vector<std::uint32_t> pes;
  const report::Phase phase = board_->phase.load(std::memory_order_relaxed);
  if (!waits(phase)) return pes;
  const std::uint32_t peer = board_->waiting_for.load(std::memory_order_relaxed);
  // Spilled frames are posted before the send continues.
  if (phase == report::Phase::sending && !store_.spilling()) {
    // If the target holds no memory of this PE, other PEs may hold the budget; else the target's inbox is full.
    const bool elsewhere = store_.outstanding_bytes(peer) == 0 && outstanding_bytes() > store_.budget_bytes() / 4;
    add_once(pes, elsewhere ? largest_holder() : peer);
  }
  store_.for_each_queued([&](std::size_t target, const transport::FrameHeader&, bool) { add_once(pes, target); });
  if (phase == report::Phase::quiescing || phase == report::Phase::epoch) scopes_.add_waits_for(pes);
  if (phase == report::Phase::collective || phase == report::Phase::future) {
    for (const auto& extension : extensions_) extension->add_waits_for(pes);
    if (peer != report::no_pe) add_once(pes, peer);
  }
  std::erase(pes, std::uint32_t(id()));
  std::ranges::sort(pes);
  pes.erase(std::unique(pes.begin(), pes.end()), pes.end());
  return pes;
}

std::size_t Engine::largest_holder() const {
  std::size_t most = 0;
  for (std::size_t pe = 0; pe < size(); ++pe) {
    if (store_.outstanding_bytes(pe) > store_.outstanding_bytes(most)) most = pe;
  }
  return most;
}

std::uint64_t Engine::outstanding_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t pe = 0; pe < size(); ++pe) bytes += store_.outstanding_bytes(pe);
  return bytes;
}

void Engine::add_undelivered(std::vector<std::string>& lines) const {
  if (const std::string text = undelivered(root_scope); !text.empty()) {
    for (std::size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      lines.push_back(text.substr(begin, end - begin));
    }
  }
  // `one` is the predicate for one message, `more` for several.
  auto add = [&](const CountsByHandler& counts, const char* one, const char* more, const char* preposition) {
    for (const auto& [handler, messages] : counts) {
      std::uint64_t sum = 0;
      for (const auto& [peer, count] : messages) sum += count;
      lines.push_back(fmt::format("{} of {} {}: {}", base::counted(sum, "message"), name_of_handler(handler),
                                  base::by_number(sum, one, more), list(messages, preposition)));
    }
  };
  auto add_messages = [](CountsByHandler& counts, const Held& held) {
    const transport::FrameHeader& header = held.arrival.header;
    if (header.kind == std::uint8_t(transport::FrameKind::messages))
      counts[header.handler][header.source] += held.messages();
  };
  CountsByHandler later, mismatched, paused, queued, open;
  for (const Held& held : later_) {
    if (!scopes_.awaits_epoch(held.arrival.header.scope)) add_messages(later, held);
  }
  for (const Held& held : mismatched_) add_messages(mismatched, held);
  handlers_.for_each([&](std::uint32_t number, const Entry& entry) {
    for (const std::vector<Held>& frames : entry.paused) {
      for (const Held& held : frames) add_messages(paused, held);
    }
    MessagesByPeer in_buffers;
    entry.handler->count_open(in_buffers);
    if (!in_buffers.empty()) open[number] = std::move(in_buffers);
  });
  store_.for_each_queued([&](std::size_t target, const transport::FrameHeader& header, bool) {
    if (header.kind == std::uint8_t(transport::FrameKind::messages))
      queued[header.handler][std::uint32_t(target)] += header.count;
  });
  add(later, "waits for the end of quiesce() here", "wait for the end of quiesce() here", "from");
  add(mismatched, "has another signature than the aggregator here", "have another signature than the aggregator here",
      "from");
  add(paused, "waits for memory for its next hop", "wait for memory for their next hop", "from");
  add(queued, "in a frame that waits to be posted", "in frames that wait to be posted", "for");
  add(open, "in an open buffer", "in open buffers", "for");
}

/// Adds the use of frame memory, if the PE may be waiting for memory.
void Engine::add_memory(std::vector<std::string>& lines) const {
  if (board_->phase.load(std::memory_order_relaxed) != report::Phase::sending && !store_.queued() &&
      paused_frames_ == 0)
    return;
  const std::uint64_t used = outstanding_bytes();
  if (used == 0 && !store_.spilling()) return;
  const std::size_t most = largest_holder();
  lines.push_back(
      fmt::format("frame memory: {} of {} in use, most of it by PE {} ({}); spilled: {}; held for "
                  "later: {}",
                  base::format_bytes(used), base::format_bytes(store_.budget_bytes()), most,
                  base::format_bytes(store_.outstanding_bytes(most)), base::format_bytes(store_.spill_bytes()),
                  base::format_bytes(store_.held_bytes())));
}

report::PeReport Engine::report() {
  publish_counts();
  report::PeReport report{waits_for(), {}};
  add_undelivered(report.lines);
  add_memory(report.lines);
  return report;
}

// --- statistics

void Engine::answer(std::uint32_t wanted) {
  const std::uint32_t before = std::exchange(answered_, wanted);
  if (report::report_in(wanted) != report::report_in(before)) options_.give_report(report::report_in(wanted), report());
  if (report::statistics_in(wanted) != report::statistics_in(before)) publish_statistics(report::statistics_in(wanted));
}

void Engine::publish_statistics(std::uint32_t request) {
  publish_counts();
  report::PeStatistics all = of_removed_handlers_;
  all.buffer_bytes = 0;
  handlers_.for_each([&](std::uint32_t, const Entry& entry) { entry.handler->add_statistics(all); });
  all.time_ns = std::uint64_t(now());
  all.created = scopes_.created(root_scope);
  all.handled = scopes_.handled(root_scope);
  all.memory_bytes = store_.outstanding_bytes_with_hops(0);
  all.budget_bytes = store_.budget_bytes();
  all.spill_bytes = store_.spill_bytes();
  all.spilled_frames = store_.spilled_frames();
  report::give_statistics(*board_, request, all);
}

}  // namespace headway::am
