// SPDX-License-Identifier: BSD-3-Clause
/// Set-up of an exchange: partners compare their numbers and types, and find one another's memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <headway/am/engine.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/rma/pool.hpp>

namespace headway::halo {
namespace {

std::uint64_t elements_of(std::span<const Partner> partners, std::size_t pe) {
  const auto index = index_of(partners, pe);
  return index ? partners[*index].list.size() : 0;
}

std::string describe(std::uint64_t elements, const std::string& types) {
  return fmt::format("{} of ({})", base::counted(elements, "element"), types);
}

}  // namespace

void refuse_stranger(std::size_t source, const PartnerSetup& setup, std::size_t me) {
  if (setup.kind > SetupKind::meeting) {
    throw FormatError(
        fmt::format("PE {} sends PE {} a message about streams of a halo exchange, which are set up", source, me));
  }
  if (setup.kind != SetupKind::meeting) {
    throw UsageError(
        fmt::format("PE {} sends a set-up message of a halo plan to PE {}, which has made that plan: "
                    "expected the same order of calls on all PEs",
                    source, me));
  }
  const SetupNumbers numbers = read_setup(source, me, [&] { return setup.first(); });
  throw UsageError(fmt::format(
      "halo exchange number {}: PE {} sends {} to PE {} and expects {}; PE {} has no part in it", numbers.exchange,
      source, describe(numbers.sent, setup.text), me, describe(numbers.expected, setup.text), me));
}

void ExchangeState::check_fields(const Plan& plan, std::span<const FieldRef> fields) const {
  if (fields.empty()) throw UsageError("a halo exchange has no field; expected at least one");
  for (std::size_t i = 0; i != fields.size(); ++i) {
    if (fields[i].elements >= plan.extent()) continue;
    throw UsageError(fmt::format("field {} of a halo exchange on PE {} has {}; its plan uses elements 0 to {}", i,
                                 pe_->id().value, base::counted(fields[i].elements, "element"), plan.extent() - 1));
  }
}

void ExchangeState::require_types(const std::vector<FieldRef>& fields, const char* call) const {
  if (begun_) throw UsageError(fmt::format("{} of a halo exchange between begin() and end()", call));
  if (is_refused_) throw UsageError(fmt::format("{} of a halo exchange after a rebuild() that partners refused", call));
  const std::string before = types_of(fields_), given = types_of(fields);
  if (given != before)
    throw UsageError(fmt::format("{} of a halo exchange of ({}) to fields of ({})", call, before, given));
}

void ExchangeState::rebind(std::vector<FieldRef> fields) {
  require_types(fields, "rebind()");
  check_fields(plan_, fields);
  fields_ = std::move(fields);
  publish_fields();
}

void ExchangeState::rebuild(const Plan& plan, std::vector<FieldRef> fields) {
  exchanges_->engine().require_may_block(report::Phase::collective);
  require_types(fields, "rebuild()");
  check_fields(plan, fields);
  fields_ = std::move(fields);
  parts_.reset();
  try {
    follow(plan);
    meet_partners();
  } catch (...) {
    is_refused_ = true;
    exchanges_->remove(number_);
    throw;
  }
}

/// Empty states for the partners of a plan. All exchanges by the plan before have ended.
void ExchangeState::follow(const Plan& plan) {
  plan_ = plan;
  own_ = index_of(plan_.receives(), pe_->id());
  receives_.resize(plan_.receives().size());
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    const Partner& one = plan_.receives()[i];
    receives_[i] = Receive{.bytes = stream_bytes(one.list),
                           .acknowledges = !index_of(plan_.sends(), one.pe),
                           .host = {},
                           .early = {},
                           .stream = std::move(receives_[i].stream)};
  }
  sends_.resize(plan_.sends().size());
  for (std::size_t i = 0; i != sends_.size(); ++i) {
    sends_[i] = Send{.partner = i,
                     .awaits_acknowledgement = !index_of(plan_.receives(), plan_.sends()[i].pe),
                     .acknowledged = generation_,
                     .host = {}};
  }
  // The largest messages first, and those for other hosts before them: they take longest.
  const transport::PeRange host = exchanges_->engine().endpoint().host_map().own_host();
  std::ranges::stable_sort(sends_, [&](const Send& a, const Send& b) {
    const Partner &first = plan_.sends()[a.partner], &second = plan_.sends()[b.partner];
    return std::pair(host.contains(first.pe), second.list.size()) <
           std::pair(host.contains(second.pe), first.list.size());
  });
  has_host_senders_ = has_host_receivers_ = false;
  if (arrived_room_ < receives_.size()) {
    arrived_room_ = receives_.size();
    arrived_.reset(new std::atomic<std::uint32_t>[arrived_room_]);
  }
  for (std::size_t i = 0; i != receives_.size(); ++i) arrived_[i].store(0, std::memory_order_relaxed);
}

/// Memory for partners of this host. Returns the block that it replaces, which partners may still use.
std::optional<HostBlock> ExchangeState::renew_block() {
  host_partners_.clear();
  for (const std::size_t pe : partners_) {
    if (shares_pools(*pe_, pe)) host_partners_.push_back(pe);
  }
  if (host_partners_.empty()) return std::nullopt;
  std::vector<std::uint64_t> staging_bytes;
  for (const Partner& one : plan_.sends())
    staging_bytes.push_back(std::ranges::binary_search(host_partners_, one.pe) ? stream_bytes(one.list) : 0);
  const HostSizes sizes{plan_.receives().size(), fields_.size(), staging_bytes, generation_};
  if (block_ && block_->renew(sizes)) return std::nullopt;
  std::optional<HostBlock> old = std::exchange(block_, std::nullopt);
  block_.emplace(*pe_, sizes);
  return old;
}

/// This PE and its partners tell one another how many elements of which types they send and expect, and where they keep
/// them. On rebuild, the message of an old partner also says that all its exchanges have ended. It does not use the old
/// lines and staging buffers again.
void ExchangeState::meet_partners() {
  std::vector<std::size_t> meets = std::move(partners_);  // partners before
  partners_.clear();
  for (const Partner& one : plan_.sends()) partners_.push_back(one.pe);
  for (const Partner& one : plan_.receives()) partners_.push_back(one.pe);
  meets.insert(meets.end(), partners_.begin(), partners_.end());
  const auto sort = [me = pe_->id().value](std::vector<std::size_t>& pes) {
    std::ranges::sort(pes);
    pes.erase(std::unique(pes.begin(), pes.end()), pes.end());
    std::erase(pes, me);
  };
  sort(partners_);
  sort(meets);
  const std::optional<HostBlock> old = renew_block();
  publish_fields();
  const std::unique_ptr<HostStreams> former = std::exchange(streams_, nullptr);
  std::unique_ptr<HostStreams> streams;
  if (HostStreams::are_possible(*pe_)) {
    streams = std::make_unique<HostStreams>(*pe_, *exchanges_, number_, generation_);
    streams->prepare(plan_.sends(), element_bytes_, coalescing_);
  }

  exchanges_->begin_setup(SetupKind::meeting);
  const std::string own_types = types_of(fields_);
  for (const std::size_t pe : meets) tell(pe, own_types, streams.get());
  exchanges_->await_setup(meets);
  std::map<std::size_t, PartnerSetup> met = exchanges_->end_setup();

  std::vector<std::size_t> refused;
  std::exception_ptr difference;
  for (const auto& [pe, setup] : met) {
    if (!std::ranges::binary_search(meets, pe)) refuse_stranger(pe, setup, pe_->id());
    try {
      check_partner(pe, setup, own_types);
      if (streams != nullptr) read_setup(pe, pe_->id(), [&] { streams->take_places(pe, setup.list()); });
    } catch (const UsageError&) {
      difference = std::current_exception();
      refused.push_back(pe);
    }
  }
  // A PE that refuses some partners has a part in the streams of others. Each of the two refuses the other.
  if (streams != nullptr) streams->meet(plan_.receives(), refused, former.get());
  if (difference) std::rethrow_exception(difference);
  if (old) rma::Pool::of(*pe_).free(old->offset());
  for (const auto& [pe, setup] : met) {
    if (setup.first().places.is_mapped != 0 && std::ranges::binary_search(host_partners_, pe)) meet_on_host(pe, setup);
  }
  exchanges_->recycle(std::move(met));
  publish_fields();
  if (streams != nullptr) use_streams(std::move(streams));
}

void ExchangeState::tell(std::size_t pe, const std::string& own_types, const HostStreams* streams) const {
  SetupNumbers numbers{.exchange = number_,
                       .sent = elements_of(plan_.sends(), pe),
                       .expected = elements_of(plan_.receives(), pe),
                       .generation = generation_};
  const auto send = index_of(plan_.sends(), pe), receive = index_of(plan_.receives(), pe);
  const bool is_on_host = std::ranges::binary_search(host_partners_, pe);
  if (is_on_host) {
    numbers.places.is_mapped = 1;
    numbers.places.fields = block_->offset_of(block_->fields());
    if (send) numbers.places.receiver_line = block_->offset_of(&block_->receiver_line(*send));
    if (send) numbers.places.staging = block_->offset_of(block_->staging(*send));
    if (receive) numbers.places.sender_line = block_->offset_of(&block_->sender_line(*receive));
  }
  std::vector<std::uint64_t>& message = exchanges_->message();
  message.resize(sizeof numbers / sizeof(std::uint64_t));
  std::memcpy(message.data(), &numbers, sizeof numbers);
  if (is_on_host && receive && !plan_.receives()[*receive].knows_list) plan_.receives()[*receive].list.encode(message);
  if (streams != nullptr) streams->add_places_for(pe, message);
  exchanges_->send_setup(pe, message, own_types);
}

void ExchangeState::check_partner(std::size_t pe, const PartnerSetup& setup, const std::string& own_types) const {
  const std::size_t me = pe_->id();
  const auto refuse = [&](std::size_t from, std::uint64_t sent, const std::string& sent_types, std::uint64_t sent_in,
                          std::size_t to, std::uint64_t expected, const std::string& expected_types,
                          std::uint64_t expected_in) {
    throw UsageError(fmt::format(
        "halo exchange number {}: PE {} sends {} to PE {}; PE {} expects {} in its exchange number {}", sent_in, from,
        describe(sent, sent_types), to, to, describe(expected, expected_types), expected_in));
  };
  const SetupNumbers other = read_setup(pe, me, [&] { return setup.first(); });
  const std::uint64_t sent = elements_of(plan_.sends(), pe), expected = elements_of(plan_.receives(), pe);
  const bool is_same = setup.text == own_types && other.exchange == number_;
  if (other.sent != expected || (!is_same && expected != 0))
    refuse(pe, other.sent, setup.text, other.exchange, me, expected, own_types, number_);
  if (other.expected != sent || !is_same)
    refuse(me, sent, own_types, number_, pe, other.expected, setup.text, other.exchange);
  if (other.generation != generation_) {
    throw UsageError(
        fmt::format("halo exchange number {} is rebuilt after {} exchanges on PE {}, and after {} on PE {}; expected "
                    "the same number",
                    number_, other.generation, pe, generation_, me));
  }
}

template <class T>
T* ExchangeState::memory_of(std::size_t pe, std::uint64_t offset, std::uint64_t bytes) const {
  const std::span<std::byte> pool = exchanges_->engine().endpoint().shared_memory().pool(pe);
  if (offset % alignof(T) != 0 || offset > pool.size() || bytes > pool.size() - offset) {
    refuse_setup(pe, pe_->id(),
                 fmt::format("{} at {} of its pool, which has {}; expected a multiple of {}",
                             base::counted(bytes, "byte"), offset, base::counted(pool.size(), "byte"), alignof(T)));
  }
  return reinterpret_cast<T*>(pool.data() + offset);
}

void ExchangeState::meet_on_host(std::size_t pe, const PartnerSetup& setup) {
  const HostPlaces places = setup.first().places;
  if (const auto receive = index_of(plan_.receives(), pe)) {
    const std::uint64_t step = HostBlock::staging_step(receives_[*receive].bytes);
    receives_[*receive].host = {.line = &block_->sender_line(*receive),
                                .state = memory_of<ReceiverLine>(pe, places.receiver_line, sizeof(ReceiverLine)),
                                .staging = memory_of<std::byte>(pe, places.staging, 2 * step),
                                .staging_step = step};
    receives_[*receive].acknowledges = false;
    has_host_senders_ = true;
  }
  if (const auto send = index_of(plan_.sends(), pe)) {
    const auto to = std::ranges::find(sends_, *send, &Send::partner);
    const Partner& partner = plan_.sends()[*send];
    std::shared_ptr<IndexList> told;
    if (partner.remote.size() == 0) {
      told = std::make_shared<IndexList>();
      read_setup(pe, pe_->id(), [&] { told->decode_whole(setup.list()); });
    }
    const IndexList* const into = told ? told.get() : &partner.remote;
    if (into->size() != partner.list.size())
      throw FormatError(fmt::format("PE {} keeps {} for {} of PE {}", pe, base::counted(into->size(), "element"),
                                    partner.list.size(), pe_->id().value));
    to->host = {.state = &block_->receiver_line(*send),
                .line = memory_of<SenderLine>(pe, places.sender_line, sizeof(SenderLine)),
                .places = memory_of<FieldPlace>(pe, places.fields, fields_.size() * sizeof(FieldPlace)),
                .pool = memory_of<std::byte>(pe, 0, 0),
                .staging = block_->staging(*send),
                .staging_step = HostBlock::staging_step(stream_bytes(partner.list)),
                .into = into,
                .told = std::move(told),
                .distance = &exchanges_->distance(pe)};
    to->awaits_acknowledgement = false;
    has_host_receivers_ = true;
  }
}

/// Whether `pe` may write into the arrays: it has mapped them, and no other partner writes the same elements.
bool ExchangeState::is_written_by(std::size_t pe) const {
  if (order_ == CombineOrder::fixed || !plan_.receives_are_distinct()) return false;
  const bool in_process = exchanges_->engine().endpoint().host_map().own_process().contains(pe);
  const std::span<std::byte> pool = rma::Pool::of(*pe_).memory_in_use();
  return std::ranges::all_of(fields_, [&](const FieldRef& one) {
    const auto offset = std::uintptr_t(one.view.data) - std::uintptr_t(pool.data());
    return !one.combine && (in_process || offset < pool.size());
  });
}

void ExchangeState::publish_fields() {
  if (!block_) return;
  const std::byte* const pool = rma::Pool::of(*pe_).memory().data();
  for (std::size_t i = 0; i != fields_.size(); ++i) {
    // Modulo 2^64: in the same process an array may lie in front of the pool.
    block_->fields()[i] = {std::uintptr_t(fields_[i].view.data) - std::uintptr_t(pool), fields_[i].view.stride};
  }
  for (std::size_t i = 0; i != receives_.size(); ++i) {
    Receive& from = receives_[i];
    if (!from.host.is_used()) continue;
    from.accepts = is_written_by(plan_.receives()[i].pe);
    from.host.state->accepts.store(from.accepts, std::memory_order_relaxed);
  }
}

}  // namespace headway::halo
