// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>

namespace headway::halo {
namespace {

// A partner that gets nothing back may begin so many exchanges more than it has heard of.
constexpr std::uint32_t generations_ahead = 2;

bool is_partner(std::span<const Partner> partners, std::size_t pe) {
  const auto found = std::ranges::lower_bound(partners, pe, {}, &Partner::pe);
  return found != partners.end() && found->pe == pe;
}

}  // namespace

ExchangeState::ExchangeState(Pe& pe, Plan plan, std::vector<FieldRef> fields, CombineOrder order)
    : exchanges_(&Exchanges::of(pe)), pe_(&pe), plan_(std::move(plan)), fields_(std::move(fields)), order_(order) {
  check_fields();
  for (const FieldRef& one : fields_) element_bytes_ += one.view.bytes;
  for (const Partner& one : plan_.receives()) {
    if (one.pe == pe.id()) own_ = receives_.size();
    Receive receive;
    receive.bytes = stream_bytes(one.list);
    receive.acknowledges = !is_partner(plan_.sends(), one.pe);
    receives_.push_back(std::move(receive));
  }
  for (std::size_t i = 0; i != plan_.sends().size(); ++i)
    sends_.push_back({.partner = i, .awaits_acknowledgement = !is_partner(plan_.receives(), plan_.sends()[i].pe)});
  // The largest messages first, and those for other hosts before them: they take longest.
  const transport::PeRange host = exchanges_->engine().endpoint().host_map().own_host();
  std::ranges::stable_sort(sends_, [&](const Send& a, const Send& b) {
    const Partner &first = plan_.sends()[a.partner], &second = plan_.sends()[b.partner];
    return std::pair(host.contains(first.pe), second.list.size()) <
           std::pair(host.contains(second.pe), first.list.size());
  });
  number_ = exchanges_->add(*this);
  meet_partners();
}

ExchangeState::~ExchangeState() {
  if (!exchanges_->engine().has_failed()) exchanges_->remove(number_);
}

std::string ExchangeState::types() const {
  std::string text;
  for (const FieldRef& one : fields_) text += (text.empty() ? "" : ", ") + one.type;
  return text;
}

std::string ExchangeState::describe(std::uint64_t elements, const std::string& types) const {
  return fmt::format("{} of ({})", base::counted(elements, "element"), types);
}

void ExchangeState::check_fields() const {
  if (fields_.empty()) throw UsageError("a halo exchange has no field; expected at least one");
  for (std::size_t i = 0; i != fields_.size(); ++i) {
    if (fields_[i].elements >= plan_.extent()) continue;
    throw UsageError(fmt::format("field {} of a halo exchange on PE {} has {}; its plan uses elements 0 to {}", i,
                                 pe_->id().value, base::counted(fields_[i].elements, "element"), plan_.extent() - 1));
  }
}

/// Every sender tells its receivers how many elements of which types it sends.
void ExchangeState::meet_partners() {
  const std::string own_types = types();
  Epoch epoch(*pe_);
  for (const Partner& one : plan_.sends()) {
    const std::uint64_t numbers[] = {number_, one.list.size()};
    exchanges_->send_setup(one.pe, numbers, own_types);
  }
  epoch.wait();
  const std::map<std::size_t, Exchanges::Setup> met = exchanges_->take_setup();
  const std::size_t me = pe_->id();
  for (const auto& [from, setup] : met) {
    const auto found = std::ranges::lower_bound(plan_.receives(), from, {}, &Partner::pe);
    const bool expected = found != plan_.receives().end() && found->pe == from;
    const std::uint64_t elements = expected ? found->list.size() : 0;
    if (setup.numbers.size() == 2 && setup.numbers[0] == number_ && setup.numbers[1] == elements &&
        setup.text == own_types) {
      continue;
    }
    throw UsageError(
        fmt::format("halo exchange number {}: PE {} sends {} to PE {} in its exchange number {}; PE {} "
                    "expects {}",
                    number_, from, describe(setup.numbers.at(1), setup.text), me, setup.numbers.at(0), me,
                    describe(elements, own_types)));
  }
  for (const Partner& one : plan_.receives()) {
    if (met.contains(one.pe)) continue;
    throw UsageError(fmt::format("halo exchange number {}: PE {} sends nothing to PE {}, which expects {}", number_,
                                 one.pe, me, describe(one.list.size(), own_types)));
  }
}

void ExchangeState::rebind(std::vector<FieldRef> fields) {
  if (begun_) throw UsageError("rebind() of a halo exchange between begin() and end()");
  const std::string before = types();
  std::swap(fields_, fields);
  if (types() != before) {
    const std::string given = types();
    std::swap(fields_, fields);
    throw UsageError(fmt::format("rebind() of a halo exchange of ({}) to fields of ({})", before, given));
  }
  check_fields();
}

void ExchangeState::begin() {
  if (begun_) throw UsageError("begin() of a halo exchange that has begun: end() it before");
  am::Engine& engine = exchanges_->engine();
  for (const Send& one : sends_) {
    const std::size_t pe = plan_.sends()[one.partner].pe;
    const auto is_near = [&] { return one.acknowledged + generations_ahead >= generation_; };
    if (one.awaits_acknowledgement && !is_near()) engine.wait_until(is_near, report::Phase::sending, std::uint32_t(pe));
  }
  begun_ = true;
  ++generation_;
  for (Receive& one : receives_) {
    one.received = 0;
    pending_bytes_ += one.bytes;
  }
  for (const Send& one : sends_) send_to(plan_.sends()[one.partner]);
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    auto early = receives_[i].early.extract(generation_);
    if (early.empty()) continue;
    for (const Early& piece : early.mapped()) take(i, piece.begin, piece.bytes);
  }
}

void ExchangeState::send_to(const Partner& partner) {
  const std::uint64_t bytes = stream_bytes(partner.list);
  if (own_ && partner.pe == pe_->id()) {
    std::vector<std::byte> stream(bytes);
    each_field(partner.list, 0, bytes, [&](const FieldRef& field, std::size_t first, std::size_t count, std::uint64_t at) {
      partner.list.pack(first, count, field.view, stream.data() + at);
    });
    return take(*own_, 0, stream);
  }
  // Pieces end between two elements.
  const std::uint64_t most = exchanges_->piece_bytes_max();
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
    std::byte* const to = exchanges_->piece_of(frame);
    each_field(partner.list, begin, end - begin,
               [&](const FieldRef& field, std::size_t first, std::size_t count, std::uint64_t at) {
                 partner.list.pack(first, count, field.view, to + at);
               });
    exchanges_->post(partner.pe, frame, {number_, generation_, begin}, end - begin);
    begin = end;
  }
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
  const auto found = std::ranges::lower_bound(plan_.receives(), source, {}, &Partner::pe);
  const std::size_t at = std::size_t(found - plan_.receives().begin());
  if (found == plan_.receives().end() || found->pe != source || begin > receives_[at].bytes ||
      piece.size() > receives_[at].bytes - begin) {
    throw FormatError(fmt::format(
        "PE {} sends {} at {} of a stream for halo exchange number {}; PE {} expects a stream "
        "of {} from it",
        source, base::counted(piece.size(), "byte"), begin, number_, pe_->id().value,
        base::counted(found == plan_.receives().end() || found->pe != source ? 0 : receives_[at].bytes, "byte")));
  }
  if (begun_ && generation == generation_) return take(at, begin, piece);
  if (generation <= generation_ || generation > generation_ + generations_ahead + 1) {
    throw FormatError(fmt::format(
        "PE {} sends elements of generation {} of halo exchange number {}; PE {} expects {} to "
        "{}",
        source, generation, number_, pe_->id().value, generation_ + 1, generation_ + generations_ahead + 1));
  }
  receives_[at].early[generation].push_back({begin, {piece.begin(), piece.end()}});
}

/// A piece of the current generation.
void ExchangeState::take(std::size_t receive, std::uint64_t begin, std::span<const std::byte> piece) {
  Receive& from = receives_[receive];
  if (order_ == CombineOrder::fixed) {
    from.stream.resize(from.bytes);
    std::copy(piece.begin(), piece.end(), from.stream.begin() + std::ptrdiff_t(begin));
  } else {
    unpack(plan_.receives()[receive].list, begin, piece);
  }
  from.received += piece.size();
  pending_bytes_ -= piece.size();
  if (pending_bytes_ == 0) finish_generation();
}

void ExchangeState::finish_generation() {
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    const Partner& partner = plan_.receives()[i];
    if (order_ == CombineOrder::fixed) unpack(partner.list, 0, receives_[i].stream);
    if (receives_[i].acknowledges) exchanges_->acknowledge(partner.pe, number_, generation_);
  }
  if (!promise_) return;
  begun_ = false;
  Promise<> promise = std::move(*std::exchange(promise_, std::nullopt));
  promise.set();
}

void ExchangeState::end() {
  if (!begun_) throw UsageError("end() of a halo exchange without begin()");
  am::Engine& engine = exchanges_->engine();
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    const Receive& from = receives_[i];
    const auto has_all = [&] { return from.received == from.bytes; };
    if (!has_all()) engine.wait_until(has_all, report::Phase::condition, std::uint32_t(plan_.receives()[i].pe));
  }
  begun_ = false;
}

Future<> ExchangeState::when_done() {
  Promise<> promise(*pe_);
  Future<> future = promise.future();
  if (pending_bytes_ == 0) {
    begun_ = false;
    promise.set();
  } else {
    promise_ = std::move(promise);
  }
  return future;
}

void ExchangeState::acknowledged(std::size_t source, std::uint32_t generation) {
  for (Send& one : sends_) {
    if (plan_.sends()[one.partner].pe != source) continue;
    one.acknowledged = std::max(one.acknowledged, generation);
    return;
  }
}

}  // namespace headway::halo
