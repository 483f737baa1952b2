// SPDX-License-Identifier: BSD-3-Clause
/// Set-up of an exchange: partners compare their numbers and types, and find one another's memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/rma/pool.hpp>

namespace headway::halo {
namespace {

std::uint64_t elements_of(std::span<const Partner> partners, std::size_t pe) {
  const auto index = index_of(partners, pe);
  return index ? partners[*index].list.size() : 0;
}

}  // namespace

/// Each PE tells its partners how many elements of which types it sends and expects, and where it keeps them.
void ExchangeState::meet_partners() {
  meet_hosts();
  std::map<std::size_t, SetupNumbers> partners;
  for (const Partner& one : plan_.sends()) partners[one.pe].sent = one.list.size();
  for (const Partner& one : plan_.receives()) partners[one.pe].expected = one.list.size();
  partners.erase(pe_->id());
  std::vector<std::uint64_t> staging_bytes;
  for (const Partner& one : plan_.sends())
    staging_bytes.push_back(shares_pools(*pe_, one.pe) ? stream_bytes(one.list) : 0);
  for (const auto& [pe, numbers] : partners) {
    if (shares_pools(*pe_, pe)) host_partners_.push_back(pe);
  }
  if (!host_partners_.empty()) block_.emplace(*pe_, plan_.receives().size(), fields_.size(), staging_bytes);
  publish_fields();

  const std::string own_types = types();
  Epoch epoch(*pe_);
  for (auto& [pe, numbers] : partners) {
    numbers.exchange = number_;
    std::vector<std::uint64_t> list;
    if (std::ranges::binary_search(host_partners_, pe)) {
      const auto send = index_of(plan_.sends(), pe), receive = index_of(plan_.receives(), pe);
      numbers.places.is_mapped = 1;
      numbers.places.fields = block_->offset_of(block_->fields());
      if (send) numbers.places.receiver_line = block_->offset_of(&block_->receiver_line(*send));
      if (send) numbers.places.staging = block_->offset_of(block_->staging(*send));
      if (receive) numbers.places.sender_line = block_->offset_of(&block_->sender_line(*receive));
      if (receive) list = plan_.receives()[*receive].list.encoded();
    }
    std::vector<std::uint64_t> message(sizeof numbers / sizeof(std::uint64_t));
    std::memcpy(message.data(), &numbers, sizeof numbers);
    message.insert(message.end(), list.begin(), list.end());
    exchanges_->send_setup(pe, message, own_types);
  }
  epoch.wait();

  const std::map<std::size_t, PartnerSetup> met = exchanges_->take_setup();
  const std::size_t me = pe_->id();
  const auto refuse = [&](std::size_t from, std::uint64_t sent, const std::string& sent_types, std::uint32_t sent_in,
                          std::size_t to, std::uint64_t expected, const std::string& expected_types,
                          std::uint32_t expected_in) {
    throw UsageError(fmt::format(
        "halo exchange number {}: PE {} sends {} to PE {}; PE {} expects {} in its exchange number {}", sent_in, from,
        describe(sent, sent_types), to, to, describe(expected, expected_types), expected_in));
  };
  for (const auto& [pe, setup] : met) {
    const SetupNumbers other = setup.first();
    const std::uint64_t sent = elements_of(plan_.sends(), pe), expected = elements_of(plan_.receives(), pe);
    const bool is_same = setup.text == own_types && other.exchange == number_;
    const auto in = std::uint32_t(other.exchange);
    if (other.sent != expected || (!is_same && expected != 0))
      refuse(pe, other.sent, setup.text, in, me, expected, own_types, number_);
    if (other.expected != sent || !is_same) refuse(me, sent, own_types, number_, pe, other.expected, setup.text, in);
    if (other.places.is_mapped != 0) meet_on_host(pe, setup);
  }
  for (const auto& [pe, numbers] : partners) {  // the partner has another plan, or its exchanges have another order
    if (met.contains(pe)) continue;
    throw UsageError(
        fmt::format("halo exchange number {}: PE {} sends {} to PE {} and expects {}; PE {} has no part in it", number_,
                    me, describe(numbers.sent, own_types), pe, describe(numbers.expected, own_types), pe));
  }
  publish_fields();
  if (streams_ != nullptr) use_streams();
}

void ExchangeState::meet_on_host(std::size_t pe, const PartnerSetup& setup) {
  const HostPlaces places = setup.first().places;
  std::byte* const pool = exchanges_->engine().endpoint().shared_memory().pool(pe).data();
  if (const auto receive = index_of(plan_.receives(), pe)) {
    receives_[*receive].host = {.line = &block_->sender_line(*receive),
                                .state = reinterpret_cast<ReceiverLine*>(pool + places.receiver_line),
                                .staging = pool + places.staging,
                                .staging_step = HostBlock::staging_step(receives_[*receive].bytes)};
    receives_[*receive].acknowledges = false;
    has_host_senders_ = true;
  }
  if (const auto send = index_of(plan_.sends(), pe)) {
    const auto to = std::ranges::find(sends_, *send, &Send::partner);
    to->host = {.state = &block_->receiver_line(*send),
                .line = reinterpret_cast<SenderLine*>(pool + places.sender_line),
                .places = reinterpret_cast<const FieldPlace*>(pool + places.fields),
                .pool = pool,
                .staging = block_->staging(*send),
                .staging_step = HostBlock::staging_step(stream_bytes(plan_.sends()[*send].list)),
                .into = IndexList::decoded(setup.list()),
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
