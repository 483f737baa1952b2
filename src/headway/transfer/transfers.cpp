// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/transfer/control_messages.hpp>
#include <headway/transfer/pipeline.hpp>
#include <headway/transfer/transfer.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <optional>
#include <utility>

namespace headway::transfer {
namespace {

const std::size_t extension = [] {
  aggregate::ContentMover::if_linked = &Transfers::mover_of;
  return am::register_extension(&Transfers::make);
}();

/// Cost of a key, its table entry and its answer, on both PEs.
constexpr std::int64_t key_ns = 150;
std::uint64_t checksum(std::span<const std::byte> content) {
  std::uint64_t hash = content.size();
  const auto mix = [&hash](std::uint64_t word) { hash = std::rotl(hash ^ word, 27) * 0x9e3779b97f4a7c15; };
  std::size_t at = 0;
  for (std::uint64_t word; at + sizeof word <= content.size(); at += sizeof word) {
    std::memcpy(&word, content.data() + at, sizeof word);
    mix(word);
  }
  for (; at < content.size(); ++at) mix(std::uint64_t(content[at]));
  return hash | 1;
}

const char* name_of(ExposedAs as) {
  switch (as) {
    case ExposedAs::message_content: return "the content of a message";
    case ExposedAs::source: return "a Source";
    default: return "a Destination";
  }
}

[[noreturn]] void refuse_kind(PeId source, std::uint64_t number, ExposedAs actual, ExposedAs named) {
  throw FormatError(fmt::format("PE {} names memory number {} as {}; it is {}", source.value, number, name_of(named),
                                name_of(actual)));
}

}  // namespace

Transfers& Transfers::of(Pe& pe) { return static_cast<Transfers&>(pe.engine().extension(extension)); }

std::unique_ptr<am::Extension> Transfers::make(Pe& pe) { return std::make_unique<Transfers>(pe); }

Transfers::Transfers(Pe& pe)
    : pe_(&pe),
      sizes_(pe.engine().sizes()),
      host_(pe.engine().endpoint().host_map().own_host()),
      path_(pe.engine().transfer_settings().path),
      checks_(pe.engine().transfer_settings().check),
      pipeline_(new Pipeline(pe)),
      control_(new ControlAggregators{ControlAggregators::Messages(pe, {.flush_when_idle = true, .name = "transfers"}),
                                      ControlAggregators::Messages(pe, {.topology = direct(), .name = "pieces"})}) {
  const auto take = [this](PeId source, const ControlMessage& message, std::span<const std::byte> content) {
    handle_control(source, message, content);
  };
  control_->messages.on(take);
  control_->pieces.on(take);
}

Transfers::~Transfers() = default;

void Transfers::end() noexcept {
  control_.reset();
  exposures_ = {};
  pulls_ = {};
  pushes_ = {};
}

void Transfers::send_control(std::size_t to, const ControlMessage& message, std::span<const std::byte> content) {
  control_->messages.send(to, message, content);
}

/// Within a host a PE waits for the piece, so it is posted at once. Between hosts a frame costs more than the wait.
void Transfers::send_piece(std::size_t to, const ControlMessage& message, std::span<const std::byte> content) {
  (is_on_host(to) ? control_->pieces : control_->messages).send(to, message, content);
}

void Transfers::handle_control(PeId source, const ControlMessage& message, std::span<const std::byte> content) {
  switch (message.opcode) {
    case Opcode::want: return handle_want(source, message);
    case Opcode::piece: return handle_piece(source, message, content);
    case Opcode::pipelined: return handle_pipelined(source, message);
    case Opcode::put: return handle_put(source, message, content);
    case Opcode::put_all: return handle_small_put(source, message, content);
    case Opcode::in_place: return handle_in_place(source, message);
    case Opcode::used: return handle_used(source, message);
    case Opcode::open: return handle_open(source, message);
    case Opcode::opened: return handle_opened(source, message, content);
    case Opcode::take: return handle_take(source, message, content);
  }
  throw FormatError(fmt::format("a control message of a transfer has opcode {}; valid are 0 to {}",
                                std::uint64_t(message.opcode), std::uint64_t(Opcode::pipelined)));
}

// --- of this PE's own memory

/// Memory that all PEs have mapped is read in place, except for a few bytes. For several gets one key serves all.
bool Transfers::holds_copy(std::span<const std::byte> memory, std::uint64_t times) const {
  constexpr std::size_t mapped_bytes_max = 512;
  if (memory.size() > sizes_.copied_bytes_max || checks_ || times != 1) return false;
  if (held_bytes_ + memory.size() > sizes_.held_bytes_max) return false;
  if (path_ == base::TransferPath::frames) return true;
  if (path_ != base::TransferPath::fastest) return false;
  return memory.size() <= mapped_bytes_max || !reach().is_mapped_by_all(memory.data(), memory.size());
}

rma::BufferKey Transfers::expose(ExposedAs as, std::span<const std::byte> memory, std::uint64_t times,
                                 am::WhenDone done) {
  const std::uint64_t sum = as == ExposedAs::destination ? 0 : checksum_of(memory);
  return reach().key(memory, exposures_.emplace(as, memory, times, sum, std::move(done)).number);
}

rma::BufferKey Transfers::expose_content(SendPath path, std::span<const std::byte> content, std::uint64_t sum,
                                         am::WhenDone done) {
  if (auto* const counted = count::CountedEndpoint::of(pe_->engine().endpoint())) counted->count_bulk();
  const auto added = exposures_.emplace(ExposedAs::message_content, content, std::uint64_t(1), sum, std::move(done));
  added.object.measures_send = path.timed;
  return reach().key(content, added.number, path.timed);
}

/// No other PE uses the memory any more.
void Transfers::remove(std::uint64_t number, Exposure& exposure) {
  close(exposure.exposed);
  exposures_.remove(number);
}

void Transfers::withdraw(std::uint64_t number) {
  if (Exposure* const found = exposures_.find(number)) remove(number, *found);
}

void Transfers::close(transport::ExposedMemory*& exposed) {
  if (exposed != nullptr) pe_->engine().endpoint().network_memory()->withdraw(std::exchange(exposed, nullptr));
}

Transfers::Exposure& Transfers::find_exposure(PeId source, const ControlMessage& message, ExposedAs as) {
  Exposure* const found = exposures_.find(message.number);
  if (found == nullptr && exposures_.is_gone(message.number)) {
    const char* what = as == ExposedAs::destination ? "puts to a Destination of"
                       : as == ExposedAs::source    ? "gets from a Source of"
                                                    : "takes the content of a message of";
    throw UsageError(fmt::format("PE {} {} PE {} that is gone: it was destroyed, or made for fewer", source.value, what,
                                 pe_->id().value));
  }
  if (found == nullptr) {
    throw FormatError(fmt::format("PE {} names memory number {} of PE {}, which is not exposed: expected {}",
                                  source.value, message.number, pe_->id().value, name_of(as)));
  }
  if ((found->as == ExposedAs::destination) != (as == ExposedAs::destination))
    refuse_kind(source, message.number, found->as, as);
  return *found;
}

void Transfers::handle_used(PeId source, const ControlMessage& message) {
  Exposure* found = exposures_.find(message.number);
  if (found == nullptr) found = &find_exposure(source, message, ExposedAs(message.requester));
  if ((found->as == ExposedAs::destination) != (ExposedAs(message.requester) == ExposedAs::destination)) {
    refuse_kind(source, message.number, found->as, ExposedAs(message.requester));
  }
  if (message.bytes != not_timed) {
    constexpr std::uint64_t ns_max = 1'000'000'000'000;
    learn(*found, source, std::int64_t(std::min(message.bytes, ns_max)));
  }
  if (message.offset != 0) reach().refused_by(source);
  if (found->checksum != 0 && checksum(found->memory) != found->checksum) {
    throw UsageError(fmt::format("{} of {} on PE {} was changed before PE {} was done with it", name_of(found->as),
                                 base::counted(found->memory.size(), "byte"), pe_->id().value, source.value));
  }
  if (--found->left != 0) return;
  am::WhenDone done = std::move(found->done);
  remove(message.number, *found);
  done();
}

/// Only a get from another process of this host measures the cost of a write to the ring.
void Transfers::learn(const Exposure& exposure, PeId source, std::int64_t ns) {
  const std::size_t bytes = exposure.memory.size();
  if (exposure.measures_send) return mapped_sends_.learn(by_key, bytes, key_ns + ns);
  if (exposure.ring_write && reach().is_other_process_here(source)) ring_writes_.learn(*exposure.ring_write, bytes, ns);
}

// --- content of messages

bool Transfers::is_mapped_by(std::size_t destination, std::span<const std::byte> content) const {
  return reach().is_mapped_by(destination, content.data(), content.size());
}

/// A copy into the frame takes less time than attaching, at any size. A receiver that posts memory copies again, out of
/// lines in the sender's cache: long content is faster by attach or in pieces.
Transfers::SendPath Transfers::send_path(std::size_t destination, std::span<const std::byte> content, bool posts) {
  if (content.size() < keyed_bytes_min(posts)) return {};
  if (!is_mapped_by(destination, content)) {
    if (path_ == base::TransferPath::cma) return {reach().may_attach_to_this(destination), false};
    const bool by_key = path_ == base::TransferPath::fastest && posts && is_on_host(destination) &&
                        content.size() > sizes_.copied_bytes_max;
    return {.by_key = by_key, .timed = false};
  }
  if (posts || path_ != base::TransferPath::fastest)
    return {.by_key = true, .timed = false};  // one copy instead of two
  const auto pick = mapped_sends_.pick(content.size(), 1u << in_message | 1u << by_key);
  return {pick.path == by_key, pick.timed};
}

void Transfers::learn_sent(std::span<const std::byte> content, std::int64_t ns) {
  mapped_sends_.learn(in_message, content.size(), ns);
}

std::uint64_t Transfers::checksum_of(std::span<const std::byte> content) const {
  return checks_ ? checksum(content) : 0;
}

void Transfers::require_unchanged(const rma::BufferKey& key, std::span<const std::byte> content,
                                  std::uint64_t sum) const {
  if (sum == 0 || checksum(content) == sum) return;
  throw UsageError(
      fmt::format("{} of PE {} {} arrival on PE {}", base::counted(key.bytes, "byte"), key.pe,
                  base::by_number(key.bytes, "was changed between send and its", "were changed between send and their"),
                  pe_->id().value));
}

void Transfers::check(const rma::BufferKey& key) { reach().check(key); }

const std::byte* Transfers::mapped(const rma::BufferKey& key) {
  check(key);
  return reach().mapped(key);
}

/// Copies content at once, or not at all: if it cannot, or (with `may_pull`) if pieces have been faster. `timed`: the
/// caller measures the pieces.
Transfers::Copied Transfers::copy_in(const rma::BufferKey& key, std::byte* to, bool may_pull) {
  rma::Reach& reach = this->reach();
  reach.check(key);
  if (key.bytes == 0) return {.done = true};
  rma::FastestPath<4>::Pick pick{get_attach, true};
  const std::byte* const from = reach.mapped(key);
  if (from != nullptr) {
    pick = {get_cached, false};
    if (key.bytes >= sizes_.learned_bytes_min) pick = gets_.pick(key.bytes, 1u << get_cached | 1u << get_non_temporal);
  } else {
    const bool attaches = reach.may_attach(key);
    if (attaches && key.bytes <= sizes_.copied_bytes_max)
      pick = {get_attach, false};  // pieces take longer
    else if (may_pull && path_ != base::TransferPath::cma)
      pick = gets_.pick(key.bytes, unsigned(attaches) << get_attach | 1u << get_pieces);
    if (!attaches || pick.path == get_pieces) return {.timed = pick.timed || key.is_timed()};
  }
  const bool timed = pick.timed || key.is_timed();
  const std::int64_t begin = timed ? now() : 0;
  if (from == nullptr) {
    if (!reach.copy_from(key, 0, to, key.bytes)) return {.timed = true};
  } else if (pick.path == get_cached) {
    base::copy_bytes(to, from, key.bytes);
  } else {
    base::copy_past_caches(to, from, key.bytes);
  }
  if (!timed) return {.done = true};
  const std::int64_t ns = std::max<std::int64_t>(now() - begin, 1);
  gets_.learn(pick.path, key.bytes, ns);
  return {.done = true, .timed = true, .ns = ns};
}

std::optional<std::int64_t> Transfers::fetch_now(const rma::BufferKey& key, std::byte* to, bool may_pull) {
  const Copied copied = copy_in(key, to, may_pull);
  return copied.done ? std::optional(copied.ns) : std::nullopt;
}

void Transfers::tell_used(const rma::BufferKey& key, std::int64_t ns) {
  send_used(key, ExposedAs::message_content, ns);
}

void Transfers::send_used(const rma::BufferKey& key, ExposedAs as, std::int64_t ns, bool refused) {
  send_control(key.pe, {Opcode::used, key.number, refused, std::uint64_t(ns), std::uint64_t(as)});
}

void refuse_no_uses(const char* what) { throw UsageError(fmt::format("{}: it is for 1 or more", what)); }

}  // namespace headway::transfer
