// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/host_partner.hpp>
#include <headway/rma/pool.hpp>
#include <new>

namespace headway::halo {
namespace {

constexpr std::uint64_t line_bytes = 64;

std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

}  // namespace

HostBlock::HostBlock(Pe& pe, const HostSizes& sizes)
    : lines_(sizes.receives + sizes.staging_bytes.size()), fields_(sizes.fields) {
  fields_at_ = 2 * lines_ * sizeof(SenderLine);
  bytes_ = fields_at_ + whole_lines(fields_ * sizeof(FieldPlace));
  for (const std::uint64_t each : sizes.staging_bytes) bytes_ += 2 * staging_step(each);
  rma::Pool& pool = rma::Pool::of(pe);
  offset_ = pool.allocate(std::max(bytes_, line_bytes));
  base_ = pool.memory().data() + offset_;
  lay_out(sizes);
}

bool HostBlock::renew(const HostSizes& sizes) {
  std::uint64_t bytes = fields_at_ + whole_lines(fields_ * sizeof(FieldPlace));
  for (const std::uint64_t each : sizes.staging_bytes) bytes += 2 * staging_step(each);
  if (sizes.receives + sizes.staging_bytes.size() > lines_ || sizes.fields > fields_ || bytes > bytes_) return false;
  set_ = 1 - set_;
  lay_out(sizes);
  return true;
}

void HostBlock::lay_out(const HostSizes& sizes) {
  receives_ = sizes.receives;
  std::uint64_t bytes = fields_at_ + whole_lines(fields_ * sizeof(FieldPlace));
  staging_at_.clear();
  for (const std::uint64_t each : sizes.staging_bytes) {
    staging_at_.push_back(bytes);
    bytes += 2 * staging_step(each);
  }
  for (std::size_t i = 0; i != sizes.receives; ++i) new (&sender_line(i)) SenderLine{};
  for (std::size_t i = 0; i != sizes.staging_bytes.size(); ++i)
    (new (&receiver_line(i)) ReceiverLine{})->consumed.store(sizes.generation, std::memory_order_relaxed);
}

std::uint64_t HostBlock::staging_step(std::uint64_t bytes) { return whole_lines(bytes); }

bool HostReceiver::may_stage(std::uint64_t generation) const {
  // A receiver that is ready for a generation has ended the one before.
  const std::uint64_t ready = state->ready.load(std::memory_order_acquire);
  const std::uint64_t ended = std::max(state->consumed.load(std::memory_order_acquire), ready - (ready != 0));
  return ended + 2 >= generation;
}

bool HostReceiver::publish(std::uint64_t generation, bool is_staged) const {
  line->sent[generation % 2].store(2 * generation + is_staged, std::memory_order_seq_cst);
  return state->notify.load(std::memory_order_seq_cst) == generation;
}

HostSender::Sent HostSender::look(std::uint64_t generation) const {
  const std::uint64_t sent = line->sent[generation % 2].load(std::memory_order_seq_cst);
  if (sent / 2 != generation) return Sent::not_yet;
  return sent % 2 == 0 ? Sent::in_place : Sent::staged;
}

void HostSender::ask_for_notice(std::uint64_t generation) const {
  state->notify.store(generation, std::memory_order_seq_cst);
}

bool shares_pools(Pe& pe, std::size_t other) {
  transport::Endpoint& endpoint = pe.engine().endpoint();
  if (other == pe.id() || !endpoint.host_map().own_host().contains(other)) return false;
  try {
    return !endpoint.shared_memory().pool(other).empty() && !endpoint.shared_memory().pool(pe.id()).empty();
  } catch (const SystemError&) {  // the address space of the process is too small
    return false;
  }
}

}  // namespace headway::halo
