// SPDX-License-Identifier: BSD-3-Clause
/// Exchanges with elements that travel in streams between hosts.
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>

namespace headway::halo {

/// Before partners compare their numbers: a PE that refuses them has taken part in all epochs.
void ExchangeState::meet_hosts() {
  if (!HostStreams::are_possible(*pe_)) return;
  auto next = std::make_unique<HostStreams>(*pe_, *exchanges_, number_, generation_);
  next->meet(plan_, element_bytes_, coalescing_);
  if (streams_ != nullptr) streams_->free_memory();  // all PEs are here, so none uses it
  streams_ = std::move(next);
}

void ExchangeState::use_streams() {
  streams_->require_fit();
  for (Send& one : sends_) one.stream = streams_->outgoing_to(plan_.sends()[one.partner].pe);
  for (std::size_t i = 0; i != receives_.size(); ++i) receives_[i].is_in_stream = streams_->part(i).stream != nullptr;
  has_host_senders_ |= !streams_->incoming().empty();
}

void ExchangeState::retire_memory() {
  std::vector<std::size_t> partners = host_partners_;
  std::vector<std::uint64_t> offsets;
  if (block_) offsets.push_back(block_->offset());
  if (streams_ != nullptr) {
    const std::vector<std::size_t> sharers = streams_->sharers();
    std::vector<std::size_t> both;
    std::ranges::set_union(partners, sharers, std::back_inserter(both));
    partners = std::move(both);
    offsets.insert(offsets.end(), streams_->offsets().begin(), streams_->offsets().end());
  }
  if (!partners.empty() || !offsets.empty()) exchanges_->retire(number_, std::move(offsets), partners);
}

void ExchangeState::send_in_streams() {
  for (OutgoingStream& one : streams_->outgoing()) streams_->send(one, fields_, generation_, traffic_);
}

void ExchangeState::complete_in_stream(OutgoingStream& stream) {
  if (++stream.complete_partners == stream.partners) streams_->send(stream, fields_, generation_, traffic_);
}

void ExchangeState::arrived_of_host(std::size_t source, std::uint32_t generation, std::uint64_t begin,
                                    std::span<const std::byte> piece) {
  const bool is_current = begun_ && generation == generation_;
  if (streams_ == nullptr ||
      (!is_current && (generation <= generation_ || generation > generation_ + generations_ahead))) {
    throw FormatError(fmt::format(
        "PE {} sends elements of its host, of generation {}, for halo exchange number {}; PE {} expects {} to {}",
        source, generation, number_, pe_->id().value, generation_ + !begun_, generation_ + generations_ahead));
  }
  if (streams_->take(source, generation, begin, piece) && is_current) look_at_host();
}

bool ExchangeState::take_from_streams() {
  for (IncomingStream& stream : streams_->incoming()) {
    if (missing_ == 0) return false;
    if (stream.taken == generation_ || !stream.has(generation_)) continue;
    stream.taken = generation_;
    for (const std::size_t receive : stream.receives) {
      if (order_ == CombineOrder::any) unpack_from_stream(receive);
      receives_[receive].received = receives_[receive].bytes;
      if (finish_receive(receive)) return true;  // a coroutine that goes on then may have begun the next exchange
    }
  }
  return false;
}

void ExchangeState::unpack_from_stream(std::size_t receive) {
  const StreamPart& part = streams_->part(receive);
  const IndexList& list = plan_.receives()[receive].list;
  std::byte* from = part.stream->buffers.of(generation_) + part.begin;
  for (const FieldRef& field : fields_) {
    const std::size_t bytes = field.view.bytes;
    const FieldView arrived{from, bytes, bytes};
    if (field.combine) {
      in_order_.resize(list.size() * bytes);
      part.places.pack(0, list.size(), arrived, in_order_.data());
      field.combine(list, 0, list.size(), in_order_.data(), field.view);
    } else {
      IndexList::copy(part.places, arrived, list, field.view, Caches::use);
    }
    from += part.elements * bytes;
  }
}

}  // namespace headway::halo
