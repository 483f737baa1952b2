// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/host_streams.hpp>
#include <headway/rma/pool.hpp>

namespace headway::halo {
namespace {

const std::size_t extension = am::register_extension(&Exchanges::make);

// Partners of a PE are few.
constexpr std::size_t spare_messages_max = 16;

struct Acknowledgement {
  std::uint32_t exchange, generation;
};

}  // namespace

SetupNumbers PartnerSetup::first() const {
  SetupNumbers first;
  if (numbers.size() * sizeof(std::uint64_t) < sizeof first) {
    throw FormatError(fmt::format("it has {}; expected {} or more", base::counted(numbers.size(), "number"),
                                  sizeof first / sizeof(std::uint64_t)));
  }
  std::memcpy(static_cast<void*>(&first), numbers.data(), sizeof first);
  return first;
}

std::span<const std::uint64_t> PartnerSetup::list() const {
  return std::span(numbers).subspan(sizeof(SetupNumbers) / sizeof(std::uint64_t));
}

void refuse_setup(std::size_t source, std::size_t me, const std::string& why) {
  throw FormatError(
      fmt::format("PE {} sends PE {} an invalid set-up message of a halo exchange or plan: {}", source, me, why));
}

struct Exchanges::SetupMessages {
  // tag: number of the call and SetupKind; numbers; text
  Aggregator<std::uint64_t, std::span<const std::uint64_t>, std::string_view> aggregator;
};

Exchanges& Exchanges::of(Pe& pe) {
  auto& exchanges = static_cast<Exchanges&>(pe.engine().extension(extension));
  if (exchanges.messages_ == nullptr) exchanges.begin_use();
  return exchanges;
}

std::unique_ptr<am::Extension> Exchanges::make(Pe& pe) { return std::make_unique<Exchanges>(pe); }

Exchanges::Exchanges(Pe& pe)
    : poster_(pe.engine(), 0),
      piece_bytes_max_(std::min(pe.engine().sizes().part_frame_bytes_max, pe.engine().store().budget_bytes() / 16) -
                       transport::frame_overhead - sizeof(PieceHeader)) {
  acknowledgement_ = engine().add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const auto one = am::Engine::control_value<Acknowledgement>(bytes);
    require_made(source, one.exchange);
    // An exchange that is destroyed in a handler waits for no acknowledgement.
    if (ExchangeState** const state = table_.find(one.exchange)) (*state)->acknowledged(source, one.generation);
  });
  notice_ = engine().add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const auto number = am::Engine::control_value<std::uint32_t>(bytes);
    require_made(source, number);
    engine().run_later(am::root_scope, [this, number] {
      if (ExchangeState** const state = table_.find(number)) (*state)->notified();
    });
  });
  gone_ = engine().add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    const auto number = am::Engine::control_value<std::uint32_t>(bytes);
    require_made(source, number);
    ++retired_[number].partners_gone;
    free_if_unused(number);
  });
}

/// Programs without halo exchanges have no aggregator for them.
void Exchanges::begin_use() {
  handler_ = engine().add_handler(*this);
  poster_.identify(handler_, signature());
  messages_.reset(new SetupMessages{Aggregator<std::uint64_t, std::span<const std::uint64_t>, std::string_view>(
      engine().pe(), {.flush_when_idle = true, .name = "halo set-up"})});
  messages_->aggregator.on([this](PeId source, std::uint64_t tag, std::span<const std::uint64_t> numbers,
                                  std::string_view text) { take_setup(source, tag, numbers, text); });
}

Exchanges::~Exchanges() = default;

void Exchanges::end() noexcept {
  if (messages_ == nullptr) return;
  messages_.reset();
  if (!engine().has_failed()) engine().remove_handler(handler_);
}

void Exchanges::add_waits_for(std::vector<std::uint32_t>& pes) const {
  const auto met = setup_.find(setup_call_);
  for (const std::size_t pe : setup_partners_) {
    if (met == setup_.end() || !met->second.contains(pe)) pes.push_back(std::uint32_t(pe));
  }
  if (waiting_ != nullptr) waiting_->add_missing(pes);
}

std::string Exchanges::description() const {
  return "halo exchange" + (waiting_ == nullptr ? std::string() : waiting_->waits_for_parts());
}

void Exchanges::count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const {
  if (waiting_ != nullptr) waiting_->count_unsent(by_target);
}

std::uint64_t Exchanges::begin_setup(SetupKind kind) {
  engine().require_may_block(report::Phase::collective);
  ++setup_call_;
  setup_kind_ = kind;
  setup_is_open_ = true;
  for (const auto& [source, setup] : setup_[setup_call_]) require_same_call(source, setup);
  return setup_call_;
}

void Exchanges::send_setup(std::size_t to, std::span<const std::uint64_t> numbers, std::string_view text) {
  messages_->aggregator.send(to, setup_call_ << 8 | std::uint64_t(setup_kind_), numbers, text);
}

void Exchanges::take_setup(std::size_t source, std::uint64_t tag, std::span<const std::uint64_t> numbers,
                           std::string_view text) {
  const std::uint64_t call = tag >> 8;
  if ((tag & 0xff) > std::uint64_t(SetupKind::arrivals))
    refuse_setup(source, engine().id(),
                 fmt::format("its kind is {}; expected 0 to {}", tag & 0xff, unsigned(SetupKind::arrivals)));
  PartnerSetup setup;
  setup.kind = SetupKind(tag & 0xff);
  if (!spare_messages_.empty()) {
    setup.numbers = std::move(spare_messages_.back());
    spare_messages_.pop_back();
  }
  setup.numbers.assign(numbers.begin(), numbers.end());
  setup.text = text;
  if (call < setup_call_ || (call == setup_call_ && !setup_is_open_)) refuse_stranger(source, setup, engine().id());
  if (call == setup_call_) require_same_call(source, setup);
  if (!setup_[call].emplace(source, std::move(setup)).second)
    throw FormatError(fmt::format("PE {} sends two messages in halo set-up call number {}", source, call));
}

void Exchanges::require_same_call(std::size_t source, const PartnerSetup& setup) const {
  if (setup.kind == setup_kind_) return;
  const auto name = [](SetupKind kind) {
    switch (kind) {
      case SetupKind::asks: return "a plan of needed elements";
      case SetupKind::counts: return "a plan of sent elements";
      case SetupKind::ranges:
      case SetupKind::owners: return "a plan of ids in ranges";
      case SetupKind::meeting: return "an exchange";
      default: return "streams of an exchange";
    }
  };
  throw UsageError(
      fmt::format("halo set-up call number {}: PE {} makes or rebuilds {}, and PE {} makes or rebuilds {}; "
                  "expected the same order of calls on all PEs",
                  setup_call_, source, name(setup.kind), engine().id(), name(setup_kind_)));
}

void Exchanges::await_setup(std::span<const std::size_t> partners) {
  messages_->aggregator.flush();
  const auto& met = setup_[setup_call_];
  setup_partners_ = partners;
  engine().wait_until([&] { return met.size() >= partners.size(); }, report::Phase::collective);
  setup_partners_ = {};
}

std::map<std::size_t, PartnerSetup> Exchanges::end_setup() {
  setup_is_open_ = false;
  auto call = setup_.extract(setup_call_);
  if (call.empty()) return {};
  return std::move(call.mapped());
}

void Exchanges::recycle(std::map<std::size_t, PartnerSetup>&& messages) {
  for (auto& [pe, setup] : messages) {
    if (spare_messages_.size() < spare_messages_max) spare_messages_.push_back(std::move(setup.numbers));
  }
}

am::OpenFrame Exchanges::claim(std::size_t to, std::size_t bytes) {
  return poster_.claim_alone(to, sizeof(PieceHeader) + bytes, aggregate::Wait::yes, am::Writing::in_pieces);
}

void Exchanges::post(std::size_t to, const am::OpenFrame& frame, const PieceHeader& header, std::size_t bytes) {
  std::memcpy(poster_.message_of(frame), &header, sizeof header);
  poster_.post_alone(to, frame, sizeof header + bytes);
}

void Exchanges::acknowledge(std::size_t to, std::uint32_t exchange, std::uint32_t generation) {
  const Acknowledgement one{exchange, generation};
  engine().send_control(to, acknowledgement_, std::as_bytes(std::span(&one, 1)));
}

void Exchanges::notify(std::size_t to, std::uint32_t exchange) {
  engine().send_control(to, notice_, std::as_bytes(std::span(&exchange, 1)));
}

void Exchanges::retire(std::uint32_t exchange, std::vector<std::uint64_t> offsets,
                       std::span<const std::size_t> partners) {
  Retired& retired = retired_[exchange];
  retired.partners = partners.size();
  retired.offsets = std::move(offsets);
  retired.is_destroyed = true;
  for (const std::size_t pe : partners) engine().send_control(pe, gone_, std::as_bytes(std::span(&exchange, 1)));
  free_if_unused(exchange);
}

void Exchanges::free_if_unused(std::uint32_t exchange) {
  const auto found = retired_.find(exchange);
  if (!found->second.is_destroyed || found->second.partners_gone != found->second.partners) return;
  for (const std::uint64_t one : found->second.offsets) rma::Pool::of(engine().pe()).free(one);
  retired_.erase(found);
}

void Exchanges::require_made(std::size_t source, std::uint32_t number) const {
  if (table_.was_made(number)) return;
  throw FormatError(
      fmt::format("PE {} names halo exchange number {}, which PE {} has not made", source, number, engine().id()));
}

ExchangeState& Exchanges::find(std::size_t source, std::uint32_t number) {
  ExchangeState** const found = table_.find(number);
  if (found != nullptr) return **found;
  require_made(source, number);
  throw UsageError(
      fmt::format("elements of PE {} for halo exchange number {} arrive on PE {}, which has destroyed it: "
                  "end() it on all PEs before",
                  source, number, engine().id()));
}

am::FrameHandler::Result Exchanges::handle(const transport::Arrival& arrival, std::uint32_t&) {
  const transport::FrameHeader& header = arrival.header;
  if (header.hops_left != 0 || header.tail_bytes != 0 || header.count != 1 ||
      header.payload_bytes <= sizeof(PieceHeader)) {
    throw FormatError(fmt::format(
        "a frame of halo elements from PE {} has {} hops left, a tail of {} bytes, {} messages "
        "and {} bytes; expected 0, 0, 1 and more than {}",
        header.source, header.hops_left, header.tail_bytes, header.count, header.payload_bytes, sizeof(PieceHeader)));
  }
  PieceHeader piece;
  std::memcpy(&piece, arrival.payload, sizeof piece);
  ExchangeState& exchange = find(header.source, piece.exchange);
  const std::span<const std::byte> bytes(arrival.payload + sizeof piece, header.payload_bytes - sizeof piece);
  if ((piece.begin & stream_of_host) != 0)
    exchange.arrived_of_host(header.source, piece.generation, piece.begin & ~stream_of_host, bytes);
  else
    exchange.arrived(header.source, piece.generation, piece.begin, bytes);
  engine().count_handled(1);
  return Result::done;
}

}  // namespace headway::halo
