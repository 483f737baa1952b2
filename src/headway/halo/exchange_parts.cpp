// SPDX-License-Identifier: BSD-3-Clause
/// Exchanges with parts, which several threads mark as ready.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <headway/am/engine.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>

namespace headway::halo {

void ExchangeState::divide(std::size_t parts, const PartRule& rule) {
  if (begun_) throw UsageError("divide() of a halo exchange between begin() and end()");
  if (parts == 0) throw UsageError("divide() of a halo exchange into 0 parts; expected 1 or more");
  std::vector<const IndexList*> lists;
  for (const Send& one : sends_) lists.push_back(&plan_.sends()[one.partner].list);
  parts_ = std::make_unique<Parts>(parts, rule, lists);
}

void ExchangeState::begin_parts() {
  if (parts_ == nullptr) throw UsageError("begin_parts() of a halo exchange without parts: divide() it before");
  begin_receiving();
  unsent_ = sends_.size();
  if (streams_ != nullptr) {
    for (OutgoingStream& one : streams_->outgoing()) one.complete_partners = 0;
  }
  parts_->begin();
  take_early();
}

void ExchangeState::part_ready(std::size_t part) {
  if (parts_ != nullptr && !parts_->has_partners(part)) return;
  if (parts_ == nullptr || !begun_)
    throw UsageError(fmt::format("part {} of a halo exchange is marked before begin_parts()", part));
  parts_->mark(part, generation_, [this](std::size_t index) {
    const Send& send = sends_[index];
    if (!send.host.is_used() || !send.host.is_ready(generation_))
      return parts_->set_state(index, Parts::State::complete);
    copy_to_partner(send, Caches::use);
    const bool wants_notice = send.host.publish(generation_, false);
    parts_->set_state(index, wants_notice ? Parts::State::sent_with_notice : Parts::State::sent);
  });
}

bool ExchangeState::has_arrived(std::size_t source) const {
  const auto found = index_of(plan_.receives(), source);
  if (!found) {
    throw UsageError(fmt::format("arrived({}) of a halo exchange: PE {} receives nothing from PE {}", source,
                                 pe_->id().value, source));
  }
  const Receive& from = receives_[*found];
  if (from.accepts && from.host.look(generation_) == HostSender::Sent::in_place) return true;
  return arrived_[*found].load(std::memory_order_acquire) == generation_;
}

bool ExchangeState::send_complete_parts() {
  for (std::size_t i = 0; i != sends_.size() && unsent_ != 0; ++i) {
    const Send& send = sends_[i];
    const Partner& partner = plan_.sends()[send.partner];
    switch (parts_->state(i)) {
      case Parts::State::complete:
        parts_->set_state(i, Parts::State::counted);
        if (own_ && partner.pe == pe_->id())
          send_to_self(partner.list);
        else if (send.stream != nullptr)
          complete_in_stream(*send.stream);
        else if (!send.host.is_used())
          send_in_frames(partner);
        else if (!write_directly(send))
          write_staged(send);
        break;
      case Parts::State::sent_with_notice:
        parts_->set_state(i, Parts::State::counted);
        exchanges_->notify(partner.pe, number_);
        break;
      case Parts::State::sent: parts_->set_state(i, Parts::State::counted); break;
      default: continue;
    }
    --unsent_;
  }
  return unsent_ == 0;
}

std::string ExchangeState::waits_for_parts() const {
  if (unsent_ == 0) return {};
  const std::vector<std::size_t> parts = parts_->unmarked(generation_);
  if (parts.empty()) return {};
  return fmt::format(" number {} without {} {} of {}, which no thread has marked as ready,", number_,
                     base::by_number(parts.size(), "part", "parts"), fmt::join(parts, ", "), parts_->size());
}

void ExchangeState::count_unsent(std::map<std::uint32_t, std::uint64_t>& by_target) const {
  for (std::size_t i = 0; unsent_ != 0 && i != sends_.size(); ++i) {
    if (parts_->state(i) == Parts::State::waiting) ++by_target[std::uint32_t(plan_.sends()[sends_[i].partner].pe)];
  }
}

bool ExchangeState::look() {
  const bool all_sent = unsent_ == 0 || send_complete_parts();
  return look_at_host() && all_sent;
}

}  // namespace headway::halo
