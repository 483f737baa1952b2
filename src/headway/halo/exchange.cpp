// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>

namespace headway::halo {
namespace {

// A whole exchange waits so long for receivers that are about to be ready: about the cost of a second copy of 256 KiB.
constexpr std::int64_t patience_ns = 20'000;
// A second copy of fewer bytes costs less than the wait.
constexpr std::uint64_t patience_bytes_min = 4096;
// Shorter writes are not worth a look at the clock.
constexpr std::uint64_t bypass_bytes_min = 4096, bypass_run_bytes_min = 512;
// Before end() asks for a control message, it looks so often: longer than partners in step need.
constexpr unsigned looks_per_round = 32, rounds_before_notice = 64;

}  // namespace

ExchangeState::ExchangeState(Pe& pe, const Plan& plan, std::vector<FieldRef> fields, CombineOrder order,
                             Coalescing coalescing)
    : exchanges_(&Exchanges::of(pe)),
      pe_(&pe),
      plan_(plan),
      fields_(std::move(fields)),
      order_(order),
      coalescing_(coalescing) {
  check_fields(plan_, fields_);
  for (const FieldRef& one : fields_) element_bytes_ += one.view.bytes;
  number_ = exchanges_->add(*this);
  try {
    follow(plan);
    meet_partners();
  } catch (...) {
    exchanges_->remove(number_);
    throw;
  }
}

ExchangeState::~ExchangeState() {
  if (is_refused_) return;
  am::Engine& engine = exchanges_->engine();
  try {
    if (!engine.has_failed() && begun_ && !engine.may_block())
      engine.fail(report::FailureKind::failed,
                  "a halo exchange that has begun is destroyed in a handler: end() it before");
    if (!engine.has_failed() && begun_) end();  // partners may write into the arrays until then
    // An acknowledgement is not counted, so quiescence does not wait for the last one.
    for (const Send& one : sends_) {
      if (!one.awaits_acknowledgement || engine.has_failed() || !engine.may_block()) continue;
      engine.wait_until([&] { return one.acknowledged == generation_; }, report::Phase::sending,
                        std::uint32_t(plan_.sends()[one.partner].pe));
    }
  } catch (const std::exception&) {  // the run has failed; the engine has recorded why
  }
  exchanges_->remove(number_);
  if (engine.has_failed()) return;  // partners may still use the block
  try {
    retire_memory();
  } catch (const std::exception&) {
  }
}

std::string ExchangeState::types_of(std::span<const FieldRef> fields) {
  std::string text;
  for (const FieldRef& one : fields) text += (text.empty() ? "" : ", ") + one.type;
  return text;
}

std::string ExchangeState::description() const {
  std::string text;
  for (const Send& one : sends_) {
    const Partner& partner = plan_.sends()[one.partner];
    const char* const path = partner.pe == pe_->id() ? "copied"
                             : one.stream != nullptr ? "coalesced"
                             : !one.host.is_used()   ? "in frames"
                             : one.host.accepts()    ? "written in place"
                                                     : "staged";
    text += fmt::format("to PE {}: {}, {}\n", partner.pe, partner.list.description(), path);
  }
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    const Partner& partner = plan_.receives()[i];
    const char* const path = own_ == i                      ? "copied"
                             : receives_[i].is_in_stream    ? "coalesced"
                             : !receives_[i].host.is_used() ? "in frames"
                             : receives_[i].accepts         ? "written in place"
                                                            : "staged";
    text += fmt::format("from PE {}: {}, {}\n", partner.pe, partner.list.description(), path);
  }
  return streams_ == nullptr ? text : text + streams_->description();
}

// --- sending

void ExchangeState::begin_receiving() {
  if (begun_) throw UsageError("begin() of a halo exchange that has begun: end() it before");
  if (is_refused_) throw UsageError("begin() of a halo exchange after a rebuild() that partners have refused");
  am::Engine& engine = exchanges_->engine();
  for (const Send& one : sends_) {
    const std::size_t pe = plan_.sends()[one.partner].pe;
    const auto is_near = [&] { return one.acknowledged + generations_ahead > generation_; };
    if (one.awaits_acknowledgement && !is_near()) engine.wait_until(is_near, report::Phase::sending, std::uint32_t(pe));
  }
  begun_ = true;
  ++generation_;
  missing_ = receives_.size();
  for (Receive& one : receives_) {
    one.received = 0;
    if (one.accepts) one.host.state->ready.store(generation_, std::memory_order_release);
  }
}

void ExchangeState::begin(Patience patience) {
  begin_receiving();
  if (streams_ != nullptr) send_in_streams();
  for (const Send& one : sends_) {
    const Partner& partner = plan_.sends()[one.partner];
    if (own_ && partner.pe == pe_->id())
      send_to_self(partner.list);
    else if (!one.host.is_used() && one.stream == nullptr)
      send_in_frames(partner);
  }
  if (has_host_receivers_) send_to_host(patience);
  take_early();
}

void ExchangeState::take_early() {
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    auto early = receives_[i].early.extract(generation_);
    if (early.empty()) continue;
    for (const Early& piece : early.mapped()) take(i, piece.begin, piece.bytes);
  }
}

void ExchangeState::send_to_self(const IndexList& list) {
  own_bytes_.resize(stream_bytes(list));
  pack(list, 0, own_bytes_.size(), own_bytes_.data());
  take(*own_, 0, own_bytes_);
}

void ExchangeState::send_in_frames(const Partner& partner) {
  // Pieces end between two elements.
  const std::uint64_t bytes = stream_bytes(partner.list), most = exchanges_->piece_bytes_max();
  std::uint64_t begin = 0;
  while (begin != bytes) {
    std::uint64_t end = begin;
    bool is_full = false;
    each_field(partner.list, begin, bytes - begin,
               [&](const FieldRef& field, std::size_t, std::size_t count, std::uint64_t) {
                 if (is_full) return;
                 const std::uint64_t fit = std::min<std::uint64_t>(count, (most - (end - begin)) / field.view.bytes);
                 end += fit * field.view.bytes;
                 is_full = fit != count;
               });
    const am::OpenFrame frame = exchanges_->claim(partner.pe, end - begin);
    pack(partner.list, begin, end - begin, exchanges_->piece_of(frame));
    exchanges_->post(partner.pe, frame, {number_, generation_, begin}, end - begin);
    if (exchanges_->leaves_host(partner.pe)) {
      ++traffic_.messages;
      traffic_.bytes += end - begin;
    }
    begin = end;
  }
}

void ExchangeState::send_to_host(Patience patience) {
  const am::Engine& engine = exchanges_->engine();
  waiting_.clear();
  bool may_become_ready = false;
  for (const Send& one : sends_) {
    if (!one.host.is_used() || write_directly(one)) continue;
    waiting_.push_back(&one);
    may_become_ready |= one.host.accepts() && stream_bytes(plan_.sends()[one.partner].list) >= patience_bytes_min;
  }
  if (may_become_ready && patience == Patience::limited && engine.may_block() && engine.idle() == am::Idle::spin) {
    const std::int64_t deadline = engine.now() + patience_ns;
    do {
      for (unsigned look = 0; look != looks_per_round && !waiting_.empty(); ++look) {
        std::erase_if(waiting_, [&](const Send* one) { return write_directly(*one); });
        if (!waiting_.empty()) look_at_host();
      }
    } while (!waiting_.empty() && engine.now() < deadline);
  }
  for (const Send* one : waiting_) write_staged(*one);
}

template <class Write>
void ExchangeState::write_by_distance(const Send& send, Write write) {
  const IndexList& list = plan_.sends()[send.partner].list;
  const std::uint64_t bytes = stream_bytes(list);
  // Shorter runs cost time for themselves, so that the distance would not show.
  if (bytes < bypass_bytes_min || list.mean_run() * fields_[0].view.bytes < bypass_run_bytes_min)
    return write(Caches::use);
  Distance& distance = *send.host.distance;
  if (!distance.is_due()) return write(distance.is_remote() ? Caches::bypass : Caches::use);
  const std::int64_t begin = exchanges_->engine().now();
  write(Caches::use);
  distance.learn(bytes, exchanges_->engine().now() - begin);
}

void ExchangeState::copy_to_partner(const Send& send, Caches caches) const {
  const IndexList& list = plan_.sends()[send.partner].list;
  for (std::size_t i = 0; i != fields_.size(); ++i) {
    const FieldView& from = fields_[i].view;
    IndexList::copy(list, from, *send.host.into, send.host.view(i, from.bytes), caches);
  }
}

bool ExchangeState::write_directly(const Send& send) {
  if (!send.host.is_ready(generation_)) return false;
  write_by_distance(send, [&](Caches caches) { copy_to_partner(send, caches); });
  publish(send, false);
  return true;
}

void ExchangeState::write_staged(const Send& send) {
  const Partner& partner = plan_.sends()[send.partner];
  const auto may_stage = [&] {
    if (send.host.may_stage(generation_)) return true;
    look_at_host();
    return false;
  };
  if (!may_stage()) exchanges_->engine().wait_polling(may_stage, report::Phase::sending, std::uint32_t(partner.pe));
  write_by_distance(send, [&](Caches caches) {
    std::byte* to = send.host.buffer(generation_);
    for (const FieldRef& one : fields_) {
      partner.list.pack_all(one.view, to, caches);
      to += partner.list.size() * one.view.bytes;
    }
  });
  publish(send, true);
}

void ExchangeState::publish(const Send& send, bool is_staged) {
  if (send.host.publish(generation_, is_staged)) exchanges_->notify(plan_.sends()[send.partner].pe, number_);
}

void ExchangeState::pack(const IndexList& list, std::uint64_t begin, std::uint64_t bytes, std::byte* to) const {
  each_field(list, begin, bytes, [&](const FieldRef& field, std::size_t first, std::size_t count, std::uint64_t at) {
    list.pack(first, count, field.view, to + at);
  });
}

template <class F>
void ExchangeState::each_field(const IndexList& list, std::uint64_t begin, std::uint64_t bytes, F f) const {
  std::uint64_t at = 0, field_begin = 0;
  for (const FieldRef& field : fields_) {
    const std::uint64_t field_end = field_begin + list.size() * field.view.bytes;
    const std::uint64_t from = std::max(begin, field_begin), to = std::min(begin + bytes, field_end);
    if (from < to) {
      const std::size_t first = (from - field_begin) / field.view.bytes, count = (to - from) / field.view.bytes;
      f(field, first, count, at);
      at += count * field.view.bytes;
    }
    field_begin = field_end;
  }
}

void ExchangeState::unpack(const IndexList& list, std::uint64_t begin, std::span<const std::byte> piece) {
  each_field(list, begin, piece.size(),
             [&](const FieldRef& field, std::size_t first, std::size_t count, std::uint64_t at) {
               if (field.combine)
                 field.combine(list, first, count, piece.data() + at, field.view);
               else
                 list.unpack(first, count, piece.data() + at, field.view);
             });
}

void ExchangeState::arrived(std::size_t source, std::uint32_t generation, std::uint64_t begin,
                            std::span<const std::byte> piece) {
  const std::optional<std::size_t> found = index_of(plan_.receives(), source);
  const std::uint64_t bytes = found ? receives_[*found].bytes : 0;
  if (begin > bytes || piece.size() > bytes - begin) {
    throw FormatError(fmt::format(
        "PE {} sends {} at {} of a stream for halo exchange number {}; PE {} expects a stream of {} from it", source,
        base::counted(piece.size(), "byte"), begin, number_, pe_->id().value, base::counted(bytes, "byte")));
  }
  const std::size_t at = *found;
  const IndexList& list = plan_.receives()[at].list;
  if (!is_between_elements(list, begin) || !is_between_elements(list, begin + piece.size())) {
    throw FormatError(fmt::format(
        "PE {} sends {} at {} of a stream of {} for halo exchange number {} to PE {}; expected whole "
        "elements",
        source, base::counted(piece.size(), "byte"), begin, base::counted(bytes, "byte"), number_, pe_->id().value));
  }
  if (begun_ && generation == generation_) return take(at, begin, piece);
  if (generation <= generation_ || generation > generation_ + generations_ahead) {
    throw FormatError(
        fmt::format("PE {} sends elements of generation {} of halo exchange number {}; PE {} expects {} to {}", source,
                    generation, number_, pe_->id().value, generation_ + 1, generation_ + generations_ahead));
  }
  receives_[at].early[generation].push_back({begin, {piece.begin(), piece.end()}});
}

bool ExchangeState::is_between_elements(const IndexList& list, std::uint64_t at) const {
  if (at == 0 || at == stream_bytes(list)) return true;
  for (const FieldRef& field : fields_) {
    const std::uint64_t bytes = list.size() * field.view.bytes;
    if (at < bytes) return at % field.view.bytes == 0;
    at -= bytes;
  }
  return true;
}

/// A piece of the current generation.
void ExchangeState::take(std::size_t receive, std::uint64_t begin, std::span<const std::byte> piece) {
  Receive& from = receives_[receive];
  if (piece.size() > from.bytes - from.received) {
    throw FormatError(fmt::format("PE {} sends {} for halo exchange number {} to PE {}, which has {} of {} already",
                                  plan_.receives()[receive].pe, base::counted(piece.size(), "byte"), number_,
                                  pe_->id().value, from.received, base::counted(from.bytes, "byte")));
  }
  if (order_ == CombineOrder::fixed) {
    from.stream.resize(from.bytes);
    std::copy(piece.begin(), piece.end(), from.stream.begin() + std::ptrdiff_t(begin));
  } else {
    unpack(plan_.receives()[receive].list, begin, piece);
  }
  from.received += piece.size();
  if (has_all(from)) finish_receive(receive);
}

bool ExchangeState::look_at_host() {
  if (streams_ != nullptr && take_from_streams()) return true;
  if (!has_host_senders_) return missing_ == 0;
  for (std::size_t i = 0; i != receives_.size() && missing_ != 0; ++i) {
    Receive& from = receives_[i];
    if (!from.host.is_used() || has_all(from)) continue;
    const HostSender::Sent sent = from.host.look(generation_);
    if (sent == HostSender::Sent::not_yet) continue;
    if (sent == HostSender::Sent::staged && order_ == CombineOrder::any) {
      unpack(plan_.receives()[i].list, 0, {from.host.buffer(generation_), from.bytes});
      from.host.release(generation_);
    }
    from.received = from.bytes;
    if (finish_receive(i)) return true;  // a coroutine that goes on then may have begun the next exchange
  }
  return missing_ == 0;
}

/// Returns whether all elements have arrived.
bool ExchangeState::finish_receive(std::size_t receive) {
  if (order_ == CombineOrder::any) arrived_[receive].store(generation_, std::memory_order_release);
  if (--missing_ != 0) return false;
  finish_generation();
  return true;
}

void ExchangeState::finish_generation() {
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    const Partner& partner = plan_.receives()[i];
    Receive& from = receives_[i];
    if (order_ == CombineOrder::fixed) {
      if (from.is_in_stream)
        unpack_from_stream(i);
      else
        unpack(partner.list, 0,
               from.host.is_used() ? std::span(from.host.buffer(generation_), from.bytes) : from.stream);
      if (from.host.is_used()) from.host.release(generation_);
      arrived_[i].store(generation_, std::memory_order_release);
    }
    if (from.acknowledges) exchanges_->acknowledge(partner.pe, number_, generation_);
  }
  if (!promise_) return;
  begun_ = false;
  Promise<> promise = std::move(*std::exchange(promise_, std::nullopt));
  promise.set();
}

// --- waiting

void ExchangeState::end() {
  if (!begun_) throw UsageError("end() of a halo exchange without begin()");
  am::Engine& engine = exchanges_->engine();
  bool is_done = look();
  if ((has_host_senders_ || unsent_ != 0) && engine.idle() == am::Idle::spin) {
    for (unsigned round = 0; round != rounds_before_notice && !is_done; ++round) {
      for (unsigned each = 0; each != looks_per_round && !is_done; ++each) is_done = look();
      if (!is_done && engine.may_block()) engine.progress();
    }
  }
  if (!is_done) {
    ask_for_notices();
    exchanges_->wait_for(*this, unsent_ != 0, [this] { return look(); });
  }
  begun_ = false;
}

void ExchangeState::add_missing(std::vector<std::uint32_t>& pes) const {
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    if (!has_all(receives_[i])) pes.push_back(std::uint32_t(plan_.receives()[i].pe));
  }
}

void ExchangeState::ask_for_notices() {
  for (const Receive& one : receives_) {
    if (one.host.is_used() && !has_all(one)) one.host.ask_for_notice(generation_);
  }
  if (streams_ != nullptr) streams_->ask_for_notices(generation_);
}

Future<> ExchangeState::when_done() {
  Promise<> promise(*pe_);
  Future<> future = promise.future();
  if (look_at_host()) {
    begun_ = false;
    promise.set();
    return future;
  }
  promise_ = std::move(promise);
  ask_for_notices();
  look_at_host();
  return future;
}

void ExchangeState::acknowledged(std::size_t source, std::uint32_t generation) {
  for (Send& one : sends_) {
    if (plan_.sends()[one.partner].pe != source) continue;
    if (generation > generation_) {
      throw FormatError(
          fmt::format("PE {} acknowledges generation {} of halo exchange number {} to PE {}; expected 1 to {}", source,
                      generation, number_, pe_->id().value, generation_));
    }
    one.acknowledged = std::max(one.acknowledged, generation);
    return;
  }
}

}  // namespace headway::halo
