// SPDX-License-Identifier: BSD-3-Clause
/// Set-up of streams between hosts. All numbers are told in epochs:
///
///     1  each sender: to its partners of other hosts, which elements they get; to a PE of its host, an offer
///     2  this PE decides: to the senders, their places; to one receiver, the target, the senders and the receivers
///     3  the target: to the receivers, where elements arrive
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/host_streams.hpp>
#include <headway/rma/pool.hpp>
#include <new>
#include <utility>

namespace headway::halo {
namespace {

// Coalescing copies each byte twice more, in memory of the host.
constexpr double further_copies = 2;
// Fewer messages would hardly be noticed.
constexpr std::uint64_t saved_messages_min = 2;

/// Reads numbers in their order.
class Reader {
 public:
  explicit Reader(std::span<const std::uint64_t> numbers) : rest_(numbers) {}

  std::uint64_t next() { return take(1)[0]; }
  /// The next number is their count.
  std::span<const std::uint64_t> list() { return take(next()); }
  std::span<const std::uint64_t> rest() { return take(rest_.size()); }

 private:
  std::span<const std::uint64_t> take(std::uint64_t count) {
    if (count > rest_.size()) {
      throw FormatError(fmt::format("a set-up message of a stream between hosts ends {} too early",
                                    base::counted(count - rest_.size(), "number")));
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::uint64_t> rest_;
};

void append(std::vector<std::uint64_t>& numbers, std::span<const std::uint64_t> list) {
  numbers.push_back(list.size());
  numbers.insert(numbers.end(), list.begin(), list.end());
}

}  // namespace

/// The first number of each message.
enum class HostStreams::Topic : std::uint64_t { places, offer, share, target, arrivals };

/// Elements that a PE would send with others of its host.
struct HostStreams::Offer {
  std::size_t sender;
  std::uint64_t bytes;        // each element once
  std::uint64_t bytes_apart;  // as often as partners get them
  Coalescing coalescing;
  std::vector<std::uint64_t> receivers;
};

bool HostStreams::are_possible(Pe& pe) {
  transport::Endpoint& endpoint = pe.engine().endpoint();
  const std::size_t hosts = endpoint.host_map().host_firsts.size();
  return hosts > 1 && hosts < pe.size() && endpoint.services() != nullptr;
}

std::size_t HostStreams::host_size(std::size_t host) const {
  const auto firsts = exchanges_->engine().endpoint().host_map().host_firsts;
  return (host + 1 == firsts.size() ? pe_->size() : firsts[host + 1]) - firsts[host];
}

std::size_t HostStreams::decider_for(std::size_t host) const {
  const std::size_t own = host_of(pe_->id());
  return exchanges_->engine().endpoint().host_map().host_firsts[own] + host % host_size(own);
}

void HostStreams::announce(std::span<const Partner> sends, std::size_t element_bytes, Coalescing coalescing) {
  if (coalescing == Coalescing::never) return;
  const std::size_t own = host_of(pe_->id());
  std::uint64_t extent = 0;
  for (const Partner& one : sends) extent = std::max(extent, one.list.extent());
  std::vector<std::uint64_t> place_of(extent);  // of an element in the stream, plus 1
  for (std::size_t i = 0; i != sends.size();) {
    const std::size_t host = host_of(sends[i].pe);
    if (host == own) {
      ++i;
      continue;
    }
    std::vector<std::uint64_t> once, receivers, places;
    std::uint64_t elements = 0;
    for (; i != sends.size() && host_of(sends[i].pe) == host; ++i) {
      places.clear();
      for (const std::uint64_t index : sends[i].list.indices()) {
        if (place_of[index] == 0) {
          once.push_back(index);
          place_of[index] = once.size();
        }
        places.push_back(place_of[index] - 1);
      }
      std::vector<std::uint64_t> message = {std::uint64_t(Topic::places)};
      append(message, IndexList(places).encoded());
      exchanges_->send_stream_setup(sends[i].pe, message);
      receivers.push_back(sends[i].pe);
      elements += places.size();
    }
    for (const std::uint64_t index : once) place_of[index] = 0;
    OutgoingStream& offered = offered_.emplace_back();
    offered.host = host;
    offered.list = IndexList(once);
    offered.partners = receivers.size();
    std::vector<std::uint64_t> offer = {std::uint64_t(Topic::offer), host, once.size() * element_bytes,
                                        elements * element_bytes, std::uint64_t(coalescing)};
    append(offer, receivers);
    exchanges_->send_stream_setup(decider_for(host), offer);
  }
}

void HostStreams::meet(const Plan& plan, std::size_t element_bytes, Coalescing coalescing) {
  {
    Epoch epoch(*pe_);
    announce(plan.sends(), element_bytes, coalescing);
    epoch.wait();
  }
  std::map<std::size_t, std::vector<Offer>> offers;  // by the other host
  for (const auto& [source, numbers] : exchanges_->take_stream_setup()) {
    Reader reader(numbers);
    if (Topic(reader.next()) == Topic::places) {
      announced_[source].places = IndexList::decoded(reader.list());
      continue;
    }
    const std::uint64_t host = reader.next(), bytes = reader.next(), apart = reader.next(), wish = reader.next();
    const auto list = reader.list();
    offers[host].push_back({source, bytes, apart, Coalescing(wish), {list.begin(), list.end()}});
  }
  {
    Epoch epoch(*pe_);
    for (auto& [host, of_host] : offers) {
      std::ranges::sort(of_host, {}, &Offer::sender);
      decide(host, of_host);
    }
    epoch.wait();
  }
  const auto decisions = exchanges_->take_stream_setup();
  Epoch epoch(*pe_);
  for (const auto& [source, numbers] : decisions) {
    Reader reader(numbers);
    const auto topic = Topic(reader.next());
    if (topic == Topic::share)
      join(reader.rest());
    else
      take_over(source, reader.rest());
  }
  epoch.wait();
  offered_.clear();
  parts_.resize(plan.receives().size());
  const auto arrivals = exchanges_->take_stream_setup();
  incoming_.reserve(arrivals.size());
  for (const auto& [target, numbers] : arrivals)
    receive_from(target, std::span(numbers).subspan(1), plan.receives(), element_bytes);
  announced_.clear();
}

bool HostStreams::pays(std::span<const Offer> offers, std::size_t receivers) const {
  std::uint64_t messages = 0, bytes = 0, apart = 0;
  bool is_wanted = false;
  for (const Offer& one : offers) {
    messages += one.receivers.size();
    bytes += one.bytes;
    apart += one.bytes_apart;
    is_wanted |= one.coalescing == Coalescing::always;
  }
  if (is_wanted) return messages > 1;
  const std::uint64_t pieces = (bytes + exchanges_->piece_bytes_max() - 1) / exchanges_->piece_bytes_max();
  if (messages < pieces + saved_messages_min) return false;
  // One PE of each host moves all bytes, where several would move their parts at the same time.
  transport::Endpoint& endpoint = exchanges_->engine().endpoint();
  const transport::TransportCosts between = endpoint.costs(), within = endpoint.costs_within_host();
  const double saved =
      double(messages - pieces) * between.overhead_ns + double(apart - bytes) * between.gap_per_byte_ns;
  const double share = 1 - 1 / double(std::max(offers.size(), receivers));
  return saved > double(bytes) * (share * between.gap_per_byte_ns + further_copies * within.gap_per_byte_ns);
}

std::uint64_t HostStreams::allocate(std::size_t words, std::uint64_t bytes) {
  rma::Pool& own = rma::Pool::of(*pe_);
  const std::uint64_t offset =
      own.allocate(words * sizeof(StreamWord) + generations_ahead * StreamBuffers::step(bytes));
  auto* const first = reinterpret_cast<StreamWord*>(own.memory().data() + offset);
  for (std::size_t i = 0; i != words; ++i) new (first + i) StreamWord{};
  offsets_.push_back(offset);
  return offset;
}

void HostStreams::decide(std::size_t host, std::span<const Offer> offers) {
  std::vector<std::uint64_t> receivers;
  std::uint64_t bytes = 0, messages = 0;
  for (const Offer& one : offers) {
    receivers.insert(receivers.end(), one.receivers.begin(), one.receivers.end());
    bytes += one.bytes;
    messages += one.receivers.size();
  }
  std::ranges::sort(receivers);
  const auto repeated = std::ranges::unique(receivers);
  receivers.erase(repeated.begin(), repeated.end());
  if (!pays(offers, receivers.size())) return;

  // Different hosts have different targets.
  const std::uint64_t target = receivers[host_of(pe_->id()) % receivers.size()];
  const std::uint64_t offset = allocate(generations_ahead, bytes);
  std::vector<std::uint64_t> sections;  // sender and begin
  std::uint64_t begin = 0;
  for (const Offer& one : offers) {
    const std::uint64_t share[] = {
        std::uint64_t(Topic::share), host, pe_->id(), offset, bytes, begin, offers.size(), messages, target};
    exchanges_->send_stream_setup(one.sender, share);
    sharers_.push_back(one.sender);
    sections.insert(sections.end(), {one.sender, begin, one.bytes});
    begin += one.bytes;
  }
  std::vector<std::uint64_t> message = {std::uint64_t(Topic::target), bytes};
  append(message, sections);
  append(message, receivers);
  exchanges_->send_stream_setup(target, message);
}

void HostStreams::join(std::span<const std::uint64_t> numbers) {
  Reader reader(numbers);
  const auto offered = std::ranges::find(offered_, reader.next(), &OutgoingStream::host);
  const std::uint64_t decider = reader.next();
  if (offered == offered_.end()) refuse(decider, "a place in a stream that this PE has not offered");
  OutgoingStream& stream = outgoing_.emplace_back(std::move(*offered));
  std::byte* const memory = pool(decider) + reader.next();
  stream.packed = reinterpret_cast<StreamWords*>(memory);
  stream.buffers = {memory + sizeof(StreamWords), reader.next()};
  stream.begin = reader.next();
  stream.senders = reader.next();
  stream.messages = reader.next();
  stream.target = reader.next();
  sharers_.push_back(decider);
}

void HostStreams::take_over(std::size_t source, std::span<const std::uint64_t> numbers) {
  Reader reader(numbers);
  const std::uint64_t bytes = reader.next();
  const auto sections = reader.list(), receivers = reader.list();
  const std::uint64_t offset = allocate(generations_ahead + receivers.size(), bytes);
  std::byte* const memory = pool(pe_->id()) + offset;
  TakenStream& stream = taken_[host_of(source)];
  stream.arrived = reinterpret_cast<StreamWords*>(memory);
  stream.asks = reinterpret_cast<StreamWord*>(memory + sizeof(StreamWords));
  stream.buffers = {memory + sizeof(StreamWords) + receivers.size() * sizeof(StreamWord), bytes};
  stream.receivers.assign(receivers.begin(), receivers.end());
  for (std::size_t i = 0; i != receivers.size(); ++i) {
    std::vector<std::uint64_t> message = {std::uint64_t(Topic::arrivals), offset, bytes, i, receivers.size()};
    append(message, sections);
    exchanges_->send_stream_setup(receivers[i], message);
    sharers_.push_back(receivers[i]);
  }
}

void HostStreams::receive_from(std::size_t target, std::span<const std::uint64_t> numbers,
                               std::span<const Partner> receives, std::size_t element_bytes) {
  Reader reader(numbers);
  std::byte* const memory = pool(target) + reader.next();
  IncomingStream& stream = incoming_.emplace_back();
  const std::uint64_t bytes = reader.next(), own = reader.next(), receivers = reader.next();
  stream.arrived = reinterpret_cast<const StreamWords*>(memory);
  stream.ask = &reinterpret_cast<StreamWord*>(memory + sizeof(StreamWords))[own].value;
  stream.buffers = {memory + sizeof(StreamWords) + receivers * sizeof(StreamWord), bytes};
  sharers_.push_back(target);
  const auto sections = reader.list();
  for (std::size_t i = 0; i + 2 < sections.size(); i += 3) {
    const auto announced = announced_.find(sections[i]);
    const auto receive = index_of(receives, sections[i]);
    if (announced == announced_.end() || !receive) continue;  // it sends to other PEs of this host
    StreamPart& part = parts_[*receive];
    part = std::move(announced->second);
    part.stream = &stream;
    part.begin = sections[i + 1];
    part.elements = sections[i + 2] / element_bytes;
    const std::uint64_t expected = receives[*receive].list.size();
    if (part.places.size() != expected || part.places.extent() > part.elements || part.begin > bytes ||
        part.elements * element_bytes > bytes - part.begin) {
      unfit_.emplace_back(sections[i], fmt::format("{} of {} at {} in a stream of {}; expected {}", part.places.size(),
                                                   base::counted(part.elements, "element"), part.begin,
                                                   base::counted(bytes, "byte"), expected));
    }
    stream.receives.push_back(*receive);
  }
}

void HostStreams::free_memory() {
  for (const std::uint64_t one : std::exchange(offsets_, {})) rma::Pool::of(*pe_).free(one);
}

void HostStreams::require_fit() const {
  if (!unfit_.empty()) refuse(unfit_.front().first, unfit_.front().second);
}

}  // namespace headway::halo
