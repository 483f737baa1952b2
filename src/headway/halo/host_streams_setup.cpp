// SPDX-License-Identifier: BSD-3-Clause
/// Set-up of streams between hosts. Partners of different hosts tell one another the places of their elements when they
/// meet. Three set-up calls follow, in which each PE knows the PEs that send to it:
///
///     offers     each sender: to PEs of its host, how many elements it has for which receivers
///     decisions  these PEs: to the senders, their places; to the receivers, the target, the senders and the receivers
///     arrivals   the target, one of the receivers: to the receivers, where elements arrive
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
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
// More bytes fit into no pool. The sum over all PEs of a host does not overflow.
constexpr std::uint64_t stream_bytes_max = std::uint64_t(1) << 44;

/// Reads the numbers of a set-up message in their order.
class Reader {
 public:
  Reader(std::size_t source, std::size_t me, std::span<const std::uint64_t> numbers)
      : source_(source), me_(me), rest_(numbers) {}

  std::uint64_t next() { return take(1)[0]; }
  /// The next number is their count.
  std::span<const std::uint64_t> list() { return take(next()); }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::span<const std::uint64_t> take(std::uint64_t count) {
    if (count > rest_.size()) {
      refuse_setup(source_, me_, fmt::format("it ends {} too early", base::counted(count - rest_.size(), "number")));
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::size_t source_, me_;
  std::span<const std::uint64_t> rest_;
};

/// Whether each number is larger than the one before, and all are from `begin` to `end` - 1.
bool are_ascending(std::span<const std::uint64_t> numbers, std::uint64_t begin, std::uint64_t end) {
  for (const std::uint64_t one : numbers) {
    if (one < begin || one >= end) return false;
    begin = one + 1;
  }
  return true;
}

void append(std::vector<std::uint64_t>& numbers, std::span<const std::uint64_t> list) {
  numbers.push_back(list.size());
  numbers.insert(numbers.end(), list.begin(), list.end());
}

void sort_once(std::vector<std::size_t>& pes) {
  std::ranges::sort(pes);
  const auto repeated = std::ranges::unique(pes);
  pes.erase(repeated.begin(), repeated.end());
}

}  // namespace

bool HostStreams::are_possible(Pe& pe) {
  transport::Endpoint& endpoint = pe.engine().endpoint();
  const std::size_t hosts = endpoint.host_map().host_firsts.size();
  return hosts > 1 && hosts < pe.size() && endpoint.services() != nullptr;
}

std::size_t HostStreams::decider_of(std::size_t from, std::size_t to) const {
  return host_begin(from) + to % (host_end(from) - host_begin(from));
}

void HostStreams::prepare(std::span<const Partner> sends, std::size_t element_bytes, Coalescing coalescing) {
  element_bytes_ = element_bytes;
  coalescing_ = coalescing;
  const std::size_t own = host_of(pe_->id());
  std::uint64_t extent = 0;
  for (const Partner& one : sends) extent = std::max(extent, one.list.extent());
  std::vector<std::uint64_t> place_of(coalescing == Coalescing::never ? 0 : extent);  // in the stream, plus 1
  for (std::size_t i = 0; i != sends.size();) {
    const std::size_t host = host_of(sends[i].pe);
    if (host == own) {
      ++i;
      continue;
    }
    OwnOffer& offer = offered_.emplace_back();
    offer.stream.host = host;
    std::vector<std::uint64_t> once, places;
    for (; i != sends.size() && host_of(sends[i].pe) == host; ++i) {
      offer.receivers.push_back(sends[i].pe);
      if (coalescing == Coalescing::never) continue;
      places.clear();
      sends[i].list.each_run(0, sends[i].list.size(), [&](std::uint64_t index, std::size_t length) {
        for (const std::uint64_t end = index + length; index != end; ++index) {
          if (place_of[index] == 0) {
            once.push_back(index);
            place_of[index] = once.size();
          }
          places.push_back(place_of[index] - 1);
        }
      });
      own_places_[sends[i].pe] = IndexList(places);
      offer.bytes_apart += places.size() * element_bytes;
    }
    for (const std::uint64_t index : once) place_of[index] = 0;
    offer.stream.list = IndexList(once);
    offer.stream.partners = offer.receivers.size();
  }
}

void HostStreams::add_places_for(std::size_t pe, std::vector<std::uint64_t>& message) const {
  const auto found = own_places_.find(pe);
  if (found != own_places_.end()) found->second.encode(message);
}

void HostStreams::take_places(std::size_t pe, std::span<const std::uint64_t> places) {
  if (!places.empty() && host_of(pe) != host_of(pe_->id())) places_[pe].decode_whole(places);
}

void HostStreams::meet(std::span<const Partner> receives, std::span<const std::size_t> refused, HostStreams* former) {
  const std::size_t me = pe_->id(), own = host_of(me);
  const auto is_refused = [&](std::size_t pe) { return std::ranges::find(refused, pe) != refused.end(); };
  const auto offers = exchange_offers(refused, former == nullptr ? std::vector<std::size_t>() : former->sharers());
  if (former != nullptr) former->free_memory();  // all PEs that shared it have ended their exchanges

  Mail mail;
  for (const auto& [host, of_host] : offers) decide(host, of_host, mail);
  std::vector<std::size_t> deciders;
  for (const OwnOffer& one : offered_) {
    if (!one.receivers.empty()) deciders.push_back(decider_of(own, one.stream.host));
  }
  for (const Partner& one : receives) {
    const std::size_t host = host_of(one.pe);
    if (host != own && !is_refused(one.pe)) deciders.push_back(decider_of(host, own));
  }
  for (const auto& [decider, setup] : call(SetupKind::decisions, mail, deciders)) {
    if (host_of(decider) == own)
      join(decider, setup.numbers);
    else
      take_decision(decider, setup.numbers);
  }

  mail.clear();
  std::vector<std::size_t> targets;
  for (const auto& [from, stream] : announced_) {
    targets.push_back(stream.target);
    if (stream.target == me) take_over(from, stream, mail);
  }
  parts_.resize(receives.size());
  incoming_.reserve(announced_.size());
  for (const auto& [target, setup] : call(SetupKind::arrivals, mail, targets)) {
    for (Reader reader(target, me, setup.numbers); !reader.is_at_end();) {
      const std::uint64_t host = reader.next(), offset = reader.next();
      const auto announced = announced_.find(host);
      if (announced == announced_.end() || announced->second.target != target || announced->second.is_placed)
        refuse(target, fmt::format("a place for elements of host {}, which do not arrive there, or another one", host));
      announced->second.is_placed = true;
      receive(announced->second, offset, receives);
    }
  }
  for (const auto& [from, stream] : announced_) {
    if (!stream.is_placed) refuse(stream.target, fmt::format("no place for elements of host {}", from));
  }
  offered_.clear();
  announced_.clear();
  places_.clear();
  own_places_.clear();
}

std::map<std::size_t, PartnerSetup> HostStreams::call(SetupKind kind, const Mail& mail,
                                                      std::vector<std::size_t> sources) {
  sort_once(sources);
  exchanges_->begin_setup(kind);
  for (const auto& [to, numbers] : mail) exchanges_->send_setup(to, numbers);
  exchanges_->await_setup(sources);
  auto met = exchanges_->end_setup();
  const auto stranger =
      std::ranges::find_if(met, [&](const auto& one) { return !std::ranges::binary_search(sources, one.first); });
  if (stranger != met.end()) refuse(stranger->first, "a message about streams in which this PE has no part");
  return met;
}

std::map<std::size_t, std::vector<HostStreams::Offer>> HostStreams::exchange_offers(
    std::span<const std::size_t> refused, std::span<const std::size_t> former_sharers) {
  const std::size_t me = pe_->id(), own = host_of(me);
  Mail mail;  // also an empty message tells that this PE has ended its exchanges
  std::vector<std::size_t> sources(former_sharers.begin(), former_sharers.end());
  for (const std::size_t pe : former_sharers) mail[pe];
  const std::size_t hosts = exchanges_->engine().endpoint().host_map().host_firsts.size();
  bool decides = false;
  for (std::size_t host = 0; host != hosts; ++host) {
    if (host == own) continue;
    const std::size_t decider = decider_of(own, host);
    mail[decider];
    decides |= decider == me;
  }
  for (std::size_t pe = host_begin(own); decides && pe != host_end(own); ++pe) sources.push_back(pe);
  for (OwnOffer& one : offered_) {
    std::erase_if(one.receivers, [&](std::size_t pe) { return std::ranges::find(refused, pe) != refused.end(); });
    if (one.receivers.empty()) continue;
    std::vector<std::uint64_t>& message = mail[decider_of(own, one.stream.host)];
    message.insert(message.end(), {one.stream.host, one.stream.list.size() * element_bytes_, one.bytes_apart,
                                   std::uint64_t(coalescing_)});
    append(message, one.receivers);
  }
  std::map<std::size_t, std::vector<Offer>> offers;
  for (const auto& [sender, setup] : call(SetupKind::offers, mail, sources)) {
    for (Reader reader(sender, me, setup.numbers); !reader.is_at_end();) {
      const std::uint64_t host = reader.next();
      if (host >= hosts || host == own || decider_of(own, host) != me)
        refuse(sender, fmt::format("an offer for host {}, on which another PE or none decides", host));
      std::vector<Offer>& for_host = offers[host];
      const bool is_second = !for_host.empty() && for_host.back().sender == sender;
      Offer& offer = for_host.emplace_back();
      offer.sender = sender;
      offer.bytes = reader.next();
      offer.bytes_apart = reader.next();
      const std::uint64_t coalescing = reader.next();
      const auto receivers = reader.list();
      offer.coalescing = Coalescing(coalescing);
      offer.receivers.assign(receivers.begin(), receivers.end());
      const bool has_bytes = offer.bytes != 0 || coalescing == std::uint64_t(Coalescing::never);
      if (is_second || receivers.empty() || !are_ascending(receivers, host_begin(host), host_end(host)) ||
          coalescing > std::uint64_t(Coalescing::never) || !has_bytes || offer.bytes > offer.bytes_apart ||
          offer.bytes_apart > stream_bytes_max) {
        refuse(sender,
               fmt::format("offer {} for host {}: {}, {} apart, wish {}, {} receivers; expected one offer, at most {} "
                           "bytes, a wish of 0 to 2 and receivers of that host in ascending order",
                           for_host.size(), host, base::counted(offer.bytes, "byte"), offer.bytes_apart, coalescing,
                           receivers.size(), stream_bytes_max));
      }
    }
  }
  return offers;
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
  const transport::Endpoint& endpoint = exchanges_->engine().endpoint();
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

void HostStreams::decide(std::size_t host, std::span<const Offer> offers, Mail& mail) {
  std::vector<Offer> joined;
  std::vector<std::size_t> receivers;
  std::uint64_t bytes = 0, messages = 0;
  for (const Offer& one : offers) {
    mail[one.sender];
    for (const std::uint64_t pe : one.receivers) mail[pe];
    if (one.coalescing == Coalescing::never) continue;
    joined.push_back(one);
    receivers.insert(receivers.end(), one.receivers.begin(), one.receivers.end());
    bytes += one.bytes;
    messages += one.receivers.size();
  }
  sort_once(receivers);
  if (!pays(joined, receivers.size())) return;

  // Different hosts have different targets.
  const std::uint64_t target = receivers[host_of(pe_->id()) % receivers.size()];
  const std::uint64_t offset = allocate(generations_ahead, bytes);
  std::vector<std::uint64_t> sections;
  std::uint64_t begin = 0;
  for (const Offer& one : joined) {
    std::vector<std::uint64_t>& share = mail[one.sender];
    share.insert(share.end(), {host, offset, bytes, begin, joined.size(), messages, target});
    sharers_.push_back(one.sender);
    sections.insert(sections.end(), {one.sender, begin, one.bytes});
    begin += one.bytes;
  }
  std::vector<std::uint64_t> decision = {target, bytes};
  append(decision, sections);
  append(decision, receivers);
  for (const std::size_t pe : receivers) mail[pe] = decision;
}

void HostStreams::join(std::size_t decider, std::span<const std::uint64_t> numbers) {
  for (Reader reader(decider, pe_->id(), numbers); !reader.is_at_end();) {
    const std::uint64_t host = reader.next();
    const auto offered = std::ranges::find(offered_, host, [](const OwnOffer& one) { return one.stream.host; });
    if (offered == offered_.end() || decider_of(host_of(pe_->id()), host) != decider)
      refuse(decider, fmt::format("a place in a stream to host {}, which this PE has not offered there", host));
    OutgoingStream& stream = outgoing_.emplace_back(std::move(offered->stream));
    offered_.erase(offered);
    const std::uint64_t offset = reader.next(), bytes = reader.next();
    stream.begin = reader.next();
    stream.senders = reader.next();
    stream.messages = reader.next();
    stream.target = reader.next();
    const std::uint64_t own_bytes = stream.list.size() * element_bytes_, own = host_of(decider);
    if (own_bytes > bytes || stream.begin > bytes - own_bytes || stream.senders == 0 ||
        stream.senders > host_end(own) - host_begin(own) || stream.target < host_begin(host) ||
        stream.target >= host_end(host)) {
      refuse(decider, fmt::format("a place at {} for {} in a stream of {}, of {} to PE {}", stream.begin,
                                  base::counted(own_bytes, "byte"), bytes, base::counted(stream.senders, "sender"),
                                  stream.target));
    }
    std::byte* const memory = memory_of(decider, offset, generations_ahead, bytes);
    stream.packed = reinterpret_cast<StreamWords*>(memory);
    stream.buffers = {memory + sizeof(StreamWords), bytes};
    sharers_.push_back(decider);
  }
}

void HostStreams::take_decision(std::size_t decider, std::span<const std::uint64_t> numbers) {
  if (numbers.empty()) return;
  const std::size_t from = host_of(decider), own = host_of(pe_->id());
  Reader reader(decider, pe_->id(), numbers);
  Announced& stream = announced_[from];
  stream.target = reader.next();
  stream.bytes = reader.next();
  const auto sections = reader.list(), receivers = reader.list();
  stream.sections.assign(sections.begin(), sections.end());
  stream.receivers.assign(receivers.begin(), receivers.end());
  if (!reader.is_at_end() || stream.bytes == 0 || stream.bytes > stream_bytes_max || sections.size() % 3 != 0) {
    refuse(decider, fmt::format("a decision of {} on a stream of {} in {}", base::counted(numbers.size(), "number"),
                                base::counted(stream.bytes, "byte"), base::counted(sections.size(), "number")));
  }
  if (!are_ascending(receivers, host_begin(own), host_end(own)) ||
      !std::ranges::binary_search(stream.receivers, std::uint64_t(pe_->id())) ||
      !std::ranges::binary_search(stream.receivers, std::uint64_t(stream.target))) {
    refuse(decider, fmt::format("a decision on a stream to PE {} for {}; expected the target and this PE among them, "
                                "in ascending order",
                                stream.target, base::counted(receivers.size(), "receiver")));
  }
  for (std::uint64_t least = host_begin(from), i = 0; i != sections.size(); i += 3) {
    const std::uint64_t sender = sections[i], begin = sections[i + 1], bytes = sections[i + 2];
    if (sender < least || sender >= host_end(from) || begin > stream.bytes || bytes > stream.bytes - begin) {
      refuse(decider, fmt::format("{} of PE {} at {} in a stream of {}", base::counted(bytes, "byte"), sender, begin,
                                  stream.bytes));
    }
    least = sender + 1;
  }
}

void HostStreams::take_over(std::size_t from, const Announced& announced, Mail& mail) {
  const std::size_t receivers = announced.receivers.size();
  const std::uint64_t offset = allocate(generations_ahead + receivers, announced.bytes);
  std::byte* const memory = pool(pe_->id()) + offset;
  TakenStream& stream = taken_[from];
  stream.arrived = reinterpret_cast<StreamWords*>(memory);
  stream.asks = reinterpret_cast<StreamWord*>(memory + sizeof(StreamWords));
  stream.buffers = {memory + sizeof(StreamWords) + receivers * sizeof(StreamWord), announced.bytes};
  stream.receivers.assign(announced.receivers.begin(), announced.receivers.end());
  for (const std::uint64_t pe : announced.receivers) {
    std::vector<std::uint64_t>& message = mail[pe];
    message.insert(message.end(), {from, offset});
    sharers_.push_back(pe);
  }
}

void HostStreams::receive(const Announced& announced, std::uint64_t offset, std::span<const Partner> receives) {
  const std::size_t receivers = announced.receivers.size();
  std::byte* const memory = memory_of(announced.target, offset, generations_ahead + receivers, announced.bytes);
  const auto own = std::ranges::lower_bound(announced.receivers, std::uint64_t(pe_->id()));
  IncomingStream& stream = incoming_.emplace_back();
  stream.arrived = reinterpret_cast<const StreamWords*>(memory);
  stream.ask = &reinterpret_cast<StreamWord*>(memory + sizeof(StreamWords))[own - announced.receivers.begin()].value;
  stream.buffers = {memory + sizeof(StreamWords) + receivers * sizeof(StreamWord), announced.bytes};
  sharers_.push_back(announced.target);
  for (std::size_t i = 0; i != announced.sections.size(); i += 3) {
    const std::uint64_t sender = announced.sections[i], begin = announced.sections[i + 1],
                        bytes = announced.sections[i + 2];
    const auto places = places_.find(sender);
    const auto receive = index_of(receives, sender);
    if (places == places_.end() || !receive) continue;  // it sends to other PEs of this host
    const std::uint64_t elements = bytes / element_bytes_, expected = receives[*receive].list.size();
    if (places->second.size() != expected || places->second.extent() > elements || bytes % element_bytes_ != 0) {
      refuse(sender,
             fmt::format("{} of {} at {} in a stream of {}; expected {}", places->second.size(),
                         base::counted(elements, "element"), begin, base::counted(announced.bytes, "byte"), expected));
    }
    parts_[*receive] = {&stream, begin, elements, std::move(places->second)};
    stream.receives.push_back(*receive);
  }
}

std::byte* HostStreams::memory_of(std::size_t pe, std::uint64_t offset, std::size_t words, std::uint64_t bytes) const {
  const std::span<std::byte> all = exchanges_->engine().endpoint().shared_memory().pool(pe);
  const std::uint64_t head = words * sizeof(StreamWord);
  if (offset % alignof(StreamWord) != 0 || offset > all.size() || head > all.size() - offset ||
      bytes > (all.size() - offset - head) / generations_ahead / alignof(StreamWord) * alignof(StreamWord)) {
    refuse(pe,
           fmt::format("a stream of {} at {} of its pool, which has {}; expected a multiple of {}",
                       base::counted(bytes, "byte"), offset, base::counted(all.size(), "byte"), alignof(StreamWord)));
  }
  return all.data() + offset;
}

void HostStreams::free_memory() {
  for (const std::uint64_t one : std::exchange(offsets_, {})) rma::Pool::of(*pe_).free(one);
}

}  // namespace headway::halo
