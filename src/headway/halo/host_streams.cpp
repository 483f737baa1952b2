// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/host_streams.hpp>
#include <headway/rma/pool.hpp>

namespace headway::halo {

HostStreams::HostStreams(Pe& pe, Exchanges& exchanges, std::uint32_t number, std::uint32_t generation)
    : pe_(&pe), exchanges_(&exchanges), number_(number), base_(generation) {}

std::size_t HostStreams::host_of(std::size_t pe) const {
  const auto firsts = exchanges_->engine().endpoint().host_map().host_firsts;
  return std::size_t(std::ranges::upper_bound(firsts, pe) - firsts.begin()) - 1;
}

std::size_t HostStreams::host_begin(std::size_t host) const {
  return exchanges_->engine().endpoint().host_map().host_firsts[host];
}

std::size_t HostStreams::host_end(std::size_t host) const {
  const auto firsts = exchanges_->engine().endpoint().host_map().host_firsts;
  return host + 1 == firsts.size() ? pe_->size() : firsts[host + 1];
}

std::byte* HostStreams::pool(std::size_t pe) const {
  return exchanges_->engine().endpoint().shared_memory().pool(pe).data();
}

OutgoingStream* HostStreams::outgoing_to(std::size_t pe) {
  const auto found = std::ranges::find(outgoing_, host_of(pe), &OutgoingStream::host);
  return found == outgoing_.end() ? nullptr : &*found;
}

std::vector<std::size_t> HostStreams::sharers() const {
  std::vector<std::size_t> all = sharers_;
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  std::erase(all, std::size_t(pe_->id()));
  return all;
}

std::string HostStreams::description() const {
  std::string text;
  for (const OutgoingStream& one : outgoing_) {
    text += fmt::format("to the host of PEs {} to {}: {} of {} in one stream to PE {}, in place of {}\n",
                        host_begin(one.host), host_end(one.host) - 1, base::counted(one.list.size(), "element"),
                        base::counted(one.buffers.bytes, "byte"), one.target, base::counted(one.messages, "message"));
  }
  return text;
}

void HostStreams::send(OutgoingStream& stream, std::span<const FieldRef> fields, std::uint32_t generation,
                       HostTraffic& traffic) {
  const std::byte* const gathered = stream.buffers.of(generation);
  std::byte* to = stream.buffers.of(generation) + stream.begin;
  for (const FieldRef& one : fields) {
    stream.list.pack_all(one.view, to, Caches::use);
    to += stream.list.size() * one.view.bytes;
  }
  const std::uint64_t rounds = (generation - base_ + generations_ahead - 1) / generations_ahead;  // of this buffer
  StreamWord& word = (*stream.packed)[generation % generations_ahead];
  if (word.value.fetch_add(1, std::memory_order_acq_rel) + 1 != stream.senders * rounds) return;
  for (std::uint64_t begin = 0; begin != stream.buffers.bytes;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(stream.buffers.bytes - begin, exchanges_->piece_bytes_max());
    const am::OpenFrame frame = exchanges_->claim(stream.target, bytes);
    std::memcpy(exchanges_->piece_of(frame), gathered + begin, bytes);
    exchanges_->post(stream.target, frame, {number_, generation, begin | stream_of_host}, bytes);
    ++traffic.messages;
    traffic.bytes += bytes;
    begin += bytes;
  }
}

bool HostStreams::take(std::size_t source, std::uint32_t generation, std::uint64_t begin,
                       std::span<const std::byte> piece) {
  const auto found = taken_.find(host_of(source));
  if (found == taken_.end()) refuse(source, "elements of its host, which this PE does not take");
  TakenStream& stream = found->second;
  const std::size_t slot = generation % generations_ahead;
  const std::uint64_t bytes = stream.buffers.bytes;
  if (begin > bytes || piece.size() > bytes - begin || piece.size() > bytes - stream.received[slot]) {
    refuse(source, fmt::format("{} at {} of a stream of its host; expected {}, of which {} have arrived",
                               base::counted(piece.size(), "byte"), begin, base::counted(bytes, "byte"),
                               stream.received[slot]));
  }
  std::memcpy(stream.buffers.of(generation) + begin, piece.data(), piece.size());
  stream.received[slot] += piece.size();
  if (stream.received[slot] != bytes) return false;
  stream.received[slot] = 0;
  (*stream.arrived)[slot].value.store(generation, std::memory_order_seq_cst);
  for (std::size_t i = 0; i != stream.receivers.size(); ++i) {
    if (stream.receivers[i] == pe_->id()) continue;
    if (stream.asks[i].value.load(std::memory_order_seq_cst) == generation)
      exchanges_->notify(stream.receivers[i], number_);
  }
  return true;
}

void HostStreams::ask_for_notices(std::uint32_t generation) const {
  for (const IncomingStream& one : incoming_) {
    if (one.taken != generation) one.ask->store(generation, std::memory_order_seq_cst);
  }
}

void HostStreams::refuse(std::size_t source, const std::string& what) const {
  throw FormatError(
      fmt::format("PE {} sends PE {} for halo exchange number {}: {}", source, pe_->id().value, number_, what));
}

}  // namespace headway::halo
