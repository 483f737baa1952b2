// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <headway/transfer/control_messages.hpp>
#include <headway/transfer/pipeline.hpp>
#include <headway/transfer/transfer.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <optional>
#include <thread>
#include <utility>

namespace headway::transfer {
namespace {

/// Whether content of so many bytes stays in a core's caches until its user reads it.
bool stays_in_caches(std::uint64_t bytes) {
  static const std::size_t share = base::cache_sizes().share;
  return share == 0 || bytes <= share;
}

[[noreturn]] void refuse_piece(PeId source, std::uint64_t number, std::uint64_t offset, std::uint64_t bytes,
                               std::uint64_t expected) {
  throw FormatError(fmt::format("PE {} sends {} at offset {} for get number {}, which expects {} from it", source.value,
                                base::counted(bytes, "byte"), offset, number, base::counted(expected, "byte")));
}

}  // namespace

Transfers::Copied Transfers::get_now(const rma::BufferKey& from, std::span<std::byte> to) {
  if (to.size() < from.bytes) refuse_get(from.pe, from.bytes, to.size());
  if (auto* const counted = count::CountedEndpoint::of(pe_->engine().endpoint())) counted->count_bulk();
  return copy_in(from, to.data(), true);
}

void Transfers::get_later(const rma::BufferKey& from, std::span<std::byte> to, const Copied& copied,
                          am::WhenDone done) {
  pull({.key = from,
        .scope = pe_->engine().scope(),
        .for_message = false,
        .owner = {},
        .to = to.data(),
        .begin = {},
        .finished = std::move(done),
        .timed = copied.timed});
}

void Transfers::fetch_later(const rma::BufferKey& key, std::weak_ptr<void> owner, std::function<std::byte*()> begin,
                            std::function<void()> finished) {
  pull({.key = key,
        .scope = pe_->engine().scope(),
        .for_message = true,
        .owner = std::move(owner),
        .to = nullptr,
        .begin = std::move(begin),
        .finished = std::move(finished)});
}

void Transfers::hold_scope_open(am::ScopeId scope) { ++pe_->engine().scopes()[scope].continuations; }
void Transfers::release_scope(am::ScopeId scope) { --pe_->engine().scopes()[scope].continuations; }

/// Otherwise `more` runs in that scope at the next progress: messages of a transfer belong to the caller's scope.
bool Transfers::is_in_scope(am::ScopeId scope, bool& comes_later, void (Transfers::*more)()) {
  am::Engine& engine = pe_->engine();
  if (scope == engine.scope()) return true;
  if (!std::exchange(comes_later, true)) {
    engine.keep_open_and_run_later(scope, [this, &comes_later, more] {
      comes_later = false;
      (this->*more)();
    });
  }
  return false;
}

void Transfers::refuse_late_content(const Pull& pull) {
  pe_->engine().fail(
      report::FailureKind::failed,
      fmt::format("{} of PE {} {} for an aggregator that was destroyed: quiesce() first",
                  base::counted(pull.key.bytes, "byte"), pull.key.pe, base::by_number(pull.key.bytes, "is", "are")));
}

void Transfers::pull(Pull given) {
  const auto [number, pull] = pulls_.emplace(std::move(given));
  hold_scope_open(pull.scope);
  pulls_to_request_.add(number, pull.key.pe);
  mark_transfer(model::trace::MarkEnd::begin, pull.key, 2 * number + 1);
  request_more();
}

/// Gets have odd numbers, puts even ones.
void Transfers::mark_transfer(model::trace::MarkEnd end, const rma::BufferKey& key, std::uint64_t number) {
  transport::mark(pe_->engine().endpoint(),
                  {model::trace::Mark::transfer, end, key.pe, key.bytes, std::uint32_t(number)});
}

void Transfers::begin_pull(Pull& pull) {
  pull.begun = true;
  if (pull.for_message && pull.owner.expired()) refuse_late_content(pull);
  if (pull.begin) pull.to = pull.begin();
  if (pull.timed) pull.begin_ns = now();
}

/// Requests a quarter of the window at a time. A send may run handlers, which call this function again: requests are
/// counted before they are sent.
void Transfers::request_more() {
  const auto next_bytes = [this](std::uint64_t number) {
    const Pull& pull = *pulls_.find(number);
    return std::min<std::uint64_t>(sizes_.request_bytes(), pull.key.bytes - pull.requested);
  };
  while (const std::optional<std::uint64_t> first = pulls_to_request_.first(next_bytes)) {
    const std::uint64_t number = *first, n = next_bytes(number);
    Pull& pull = *pulls_.find(number);
    if (!is_in_scope(pull.scope, requests_later_, &Transfers::request_more)) return;
    if (!pull.begun) {
      begin_pull(pull);
      pull.by_network = !pull.for_message && uses_network(pull.key.pe, pull.key.bytes);
    }
    const std::uint64_t from = std::exchange(pull.requested, pull.by_network ? pull.key.bytes : pull.requested + n);
    const bool last = pull.requested == pull.key.bytes;
    const am::ScopeId scope = pull.scope;
    pulls_to_request_.begin(n, last);
    if (pull.by_network)
      send_control(pull.key.pe, {Opcode::open, pull.key.number, 0, pull.key.bytes, number});
    else
      send_piece(pull.key.pe, {Opcode::want, pull.key.number, from, n, number});
    if (last) release_scope(scope);
  }
}

void Transfers::handle_want(PeId source, const ControlMessage& message) {
  Exposure& exposure = find_exposure(source, message, ExposedAs::source);
  const std::span<const std::byte> memory = exposure.memory;
  if (message.bytes > sizes_.window_bytes || message.offset > memory.size() ||
      message.bytes > memory.size() - message.offset) {
    throw FormatError(fmt::format("PE {} asks for {} at offset {} of a Source of {}; at most {} at a time",
                                  source.value, base::counted(message.bytes, "byte"), message.offset,
                                  base::counted(memory.size(), "byte"), sizes_.window_bytes));
  }
  if (PipelinedContent* const content = is_on_host(source) ? pipeline_->begin(message.bytes) : nullptr) {
    send_piece(source,
               {Opcode::pipelined, message.requester, message.offset, message.bytes, pipeline_->offset(*content)});
    if (!exposure.ring_write) {
      exposure.ring_write = ring_writes_.pick(memory.size(), 1u << write_cached | 1u << write_non_temporal).path;
    }
    return PipelineRing::write(*content, memory.subspan(message.offset, message.bytes),
                               ring_write_copies[*exposure.ring_write], sizes_);
  }
  for (std::uint64_t done = 0; done < message.bytes;) {
    const std::uint64_t n = std::min(piece_bytes(source), message.bytes - done);
    send_piece(source, {Opcode::piece, message.requester, message.offset + done, 0, 0},
               memory.subspan(message.offset + done, n));
    done += n;
  }
}

/// The address for `bytes` that `source` sends. FormatError if the pull does not expect them.
std::byte* Transfers::piece_destination(PeId source, const ControlMessage& message, std::uint64_t bytes) {
  Pull* const pull = pulls_.find(message.number);
  if (pull == nullptr || pull->by_network || pull->key.pe != source || message.offset > pull->requested ||
      bytes > pull->requested - message.offset || bytes > pull->requested - pull->received) {
    refuse_piece(source, message.number, message.offset, bytes,
                 pull == nullptr || pull->key.pe != source ? 0 : pull->requested - pull->received);
  }
  if (pull->for_message && pull->owner.expired()) refuse_late_content(*pull);
  return pull->to + message.offset;
}

void Transfers::received(std::uint64_t number, std::uint64_t bytes) {
  Pull& pull = *pulls_.find(number);
  pull.received += bytes;
  pulls_to_request_.end(pull.key.pe, bytes);
  if (pull.received == pull.key.bytes) end_pull(number);
  request_more();
}

void Transfers::handle_piece(PeId source, const ControlMessage& message, std::span<const std::byte> content) {
  base::copy_bytes(piece_destination(source, message, content.size()), content.data(), content.size());
  received(message.number, content.size());
}

void Transfers::handle_pipelined(PeId source, const ControlMessage& message) {
  piece_destination(source, message, message.bytes);
  const Pull& pull = *pulls_.find(message.number);
  continue_reading(message.number, message.bytes,
                   pipelined_read(pull, message.requester, message.offset, message.bytes));
}

/// The reader of bytes that the owner writes at offset `at` of its pool.
PipelinedRead Transfers::pipelined_read(const Pull& pull, std::uint64_t at, std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> pool = pe_->engine().endpoint().shared_memory().pool(pull.key.pe);
  constexpr std::size_t before = sizeof(PipelinedContent);
  if (at % alignof(PipelinedContent) != 0 || pool.size() < before || at > pool.size() - before ||
      bytes > pool.size() - before - at) {
    throw FormatError(fmt::format(
        "PE {} writes a piece of {} at offset {} of its pool of {}; a piece begins at a multiple "
        "of {} and ends in the pool",
        pull.key.pe, base::counted(bytes, "byte"), at, base::counted(pool.size(), "byte"), alignof(PipelinedContent)));
  }
  auto& content = *reinterpret_cast<PipelinedContent*>(pool.data() + at);
  const base::LargeCopy copy = stays_in_caches(pull.key.bytes) ? base::copy_bytes : base::copy_past_caches;
  return {content, bytes, pull.to + offset, copy};
}

/// A getter with a core of its own polls for a while in this handler. Otherwise, or without success, it polls again at
/// each progress.
void Transfers::continue_reading(std::uint64_t number, std::uint64_t bytes, PipelinedRead read) {
  Pull* const pull = pulls_.find(number);
  if (pull == nullptr) refuse_piece(pe_->id(), number, 0, bytes, 0);
  if (pull->for_message && pull->owner.expired()) refuse_late_content(*pull);
  am::Engine& engine = pe_->engine();
  constexpr unsigned looks_max = 1000;
  const bool has_core = engine.idle() == am::Idle::spin;
  if (read.read(has_core ? looks_max : 0)) return received(number, bytes);
  if (!has_core) std::this_thread::yield();
  engine.keep_open_and_run_later(engine.scope(),
                                 [this, number, bytes, read] { continue_reading(number, bytes, read); });
}

void Transfers::end_pull(std::uint64_t number) {
  Pull ended = pulls_.take(number);
  mark_transfer(model::trace::MarkEnd::end, ended.key, 2 * number + 1);
  const std::int64_t ns = ended.timed ? std::max<std::int64_t>(now() - ended.begin_ns, 1) : not_timed;
  if (ns != not_timed) gets_.learn(get_pieces, ended.key.bytes, ns);
  run_done(std::move(ended.finished));  // first, as in get()
  const bool refused = is_on_host(ended.key.pe) && !reach().may_attach(ended.key);
  send_used(ended.key, ended.for_message ? ExposedAs::message_content : ExposedAs::source, ns, refused);
}

/// Calls done() at once in a handler, where most transfers end; else as a handler at the next progress.
void Transfers::run_done(am::WhenDone done) {
  am::Engine& engine = pe_->engine();
  if (engine.in_handler()) return done();
  engine.keep_open_and_run_later(engine.scope(), std::move(done));
}

void refuse_get(std::size_t pe, std::size_t bytes, std::size_t room) {
  throw UsageError(fmt::format("get of {} of PE {} into {}: they do not fit", base::counted(bytes, "byte"), pe, room));
}

}  // namespace headway::transfer
