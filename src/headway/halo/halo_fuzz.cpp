// SPDX-License-Identifier: BSD-3-Clause
// Hostile partners: set-up messages of an exchange, with lists and places in pools, those of streams between hosts, and
// frames with elements. One PE of four is here; an input holds the messages of the others.
//
// An input:  | role, 1 byte | records |
// A record:  | kind | call | source | trim, 1 byte each | count, 2 bytes | count numbers of 8 bytes |
//
// A record with a kind below 128 is a set-up message, of a call by its number from the meeting on. `trim` is not 0:
// the sender has fields of other types. Other records are frames: a PieceHeader and elements, less `trim` bytes.
// Numbers of exchanges count from the one that the input makes.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fuzz/fuzz.hpp>
#include <fuzz/memory_endpoint.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/exchanges.hpp>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headway::halo {
namespace {

using fuzz::Broken;
using fuzz::Bytes;
using fuzz::MemoryEndpoint;
using Numbers = std::vector<std::uint64_t>;
using Lists = std::vector<PartnerIndices>;

constexpr std::size_t pes = 4, per_host = 2;
constexpr std::array<std::size_t, 2> hosts{0, per_host};
constexpr std::uint64_t owned = 8, elements = owned + 3 * pes;
constexpr std::size_t element_bytes = sizeof(double) + sizeof(std::uint32_t);
constexpr std::size_t pool_bytes = 4_MiB;
constexpr std::size_t inputs_per_pool = 100;  // each leaves some memory allocated there

// Bits of the role. The victim is PE 0 or 1.
constexpr unsigned role_victim = 1, role_never = 2, role_fixed = 4;

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("nothing more arrives") {}
};

/// Memory between two pages that end the process.
class Pool {
 public:
  Pool() {
    void* const all = mmap(nullptr, pool_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(all);
    if (mprotect(base_ + page, pool_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { munmap(base_, pool_bytes + 2 * page); }
  std::span<std::byte> memory() const { return {base_ + page, pool_bytes}; }

 private:
  static constexpr std::size_t page = 4096;
  std::byte* base_ = nullptr;
};

class NoServices final : public transport::Services {
 public:
  void send(std::size_t, std::span<const std::byte>) override {}
  void set_take(Take) override {}
  void wake_host() override {}
};

/// The elements that PE `from` sends to PE `to`, and their places there.
Numbers sent(std::size_t to) { return {0, 1, 2 + to}; }
Numbers kept(std::size_t from) { return {owned + 3 * from, owned + 3 * from + 1, owned + 3 * from + 2}; }

/// A PE by itself. Its frames to others are lost.
class Node {
 public:
  explicit Node(std::size_t me)
      : process_{.pes = 1, .shared = {}, .members = {}, .pools = pools(), .services_between_hosts = &services_},
        endpoint_(
            me, pes, sizeof(report::PeBoard), process_,
            [this](std::size_t target, const transport::FrameHeader& header, const std::byte* payload,
                   const std::byte* tail_end) { post(target, header, payload, tail_end); },
            hosts),
        engine_(endpoint_, {.budget_bytes = 64_KiB, .spill_bytes = 4_MiB, .idle = am::Idle::sleep, .while_waiting = [] {
                              throw Stop();
                            }}) {}

  Pe& pe() { return engine_.pe(); }
  Exchanges& exchanges() { return Exchanges::of(pe()); }
  /// Forgets its messages to itself of a set-up that has failed.
  void drop_arrivals() {
    for (transport::Arrival arrival; endpoint_.poll(arrival);) endpoint_.release(arrival);
  }
  std::uint32_t made = 0;  // exchanges

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::map<std::size_t, std::span<std::byte>> pools() const {
    return {{0, memory_[0].memory()}, {1, memory_[1].memory()}};
  }

  void post(std::size_t target, const transport::FrameHeader& header, const std::byte* payload,
            const std::byte* tail_end) {
    if (target != endpoint_.id()) return;
    const std::size_t bytes = header.payload_bytes + std::size_t(header.tail_bytes);
    auto& lines = to_itself_.emplace_back((32 + bytes) / sizeof(Line) + 1);
    std::byte* const at = reinterpret_cast<std::byte*>(lines.data()) + 32;
    std::copy_n(payload, header.payload_bytes, at);
    std::copy_n(tail_end - header.tail_bytes, header.tail_bytes, at + header.payload_bytes);
    transport::Arrival arrival;
    arrival.header = header;
    arrival.payload = at;
    arrival.tail_end = at + bytes;
    arrival.owned = header.hops_left == 0 && bytes <= transport::by_value_bytes_most ? 0 : to_itself_.size();
    endpoint_.arrive(arrival);
  }

  std::array<Pool, per_host> memory_;
  NoServices services_;
  std::vector<std::vector<Line>> to_itself_;
  MemoryEndpoint::Process process_;
  MemoryEndpoint endpoint_;
  am::Engine engine_;
};

struct Record {
  std::uint8_t kind = 0, call = 0, source = 0, trim = 0;
  Numbers numbers = {};

  bool is_frame() const { return kind >= 128; }
};

constexpr std::size_t record_head = 4 + sizeof(std::uint16_t);

void append(Bytes& input, const Record& record) {
  const auto add = [&](const void* from, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    input.insert(input.end(), first, first + bytes);
  };
  const std::array<std::uint8_t, 4> head{record.kind, record.call, record.source, record.trim};
  const auto count = std::uint16_t(record.numbers.size());
  add(head.data(), head.size());
  add(&count, sizeof count);
  add(record.numbers.data(), count * sizeof(std::uint64_t));
}

std::vector<Record> records_of(std::span<const std::byte> input) {
  std::vector<Record> records;
  for (std::size_t at = 1; at + record_head <= input.size();) {
    Record& record = records.emplace_back();
    std::uint16_t count = 0;
    for (std::uint8_t* one : {&record.kind, &record.call, &record.source, &record.trim})
      *one = std::to_integer<std::uint8_t>(input[at++]);
    std::memcpy(&count, input.data() + at, sizeof count);
    at += sizeof count;
    count = std::uint16_t(std::min<std::size_t>(count, (input.size() - at) / sizeof(std::uint64_t)));
    record.numbers.resize(count);
    if (count != 0) std::memcpy(record.numbers.data(), input.data() + at, count * sizeof(std::uint64_t));
    at += count * sizeof(std::uint64_t);
  }
  return records;
}

/// What correct partners send to a victim.
class Script {
 public:
  explicit Script(unsigned role, std::size_t target) : role_(role), me_(role & role_victim), target_(target) {}

  Bytes input() {
    bytes_ = {std::byte(role_)};
    for (std::size_t pe = 0; pe != pes; ++pe) {
      if (pe != me_) meeting(pe);
    }
    const bool decides = me_ == 1;  // on the stream from this host
    const std::uint64_t wish = is_never() ? 2 : 1, section = is_never() ? 0 : section_bytes;
    if (decides) add(SetupKind::offers, 2, 0, {1, section, is_never() ? 0 : 6 * element_bytes, wish, 2, 2, 3});
    // From PE 1, which decides for this host, and from PE 2, which decides for the other.
    Numbers own, other;
    if (!is_never()) {
      own = {1, pool_bytes / 2, 2 * section, section * me_, 2, 4, 3};
      other = {target_, 2 * section, 6, 2, 0, section, 3, section, section, 2, 0, 1};
    }
    if (!decides) add(SetupKind::decisions, 3, 1, own);
    add(SetupKind::decisions, 3, 2, other);
    if (!is_never() && target_ != me_) add(SetupKind::arrivals, 4, target_, {1, pool_bytes / 2 + 4096});
    frames();
    return bytes_;
  }

 private:
  static constexpr std::uint64_t section_bytes = 4 * element_bytes;  // elements 0, 1, and one for each PE of a host

  bool is_never() const { return (role_ & role_never) != 0; }
  void add(SetupKind kind, std::uint8_t call, std::size_t source, Numbers numbers) {
    append(bytes_, {std::uint8_t(kind), call, std::uint8_t(source), 0, std::move(numbers)});
  }

  void meeting(std::size_t pe) {
    SetupNumbers first{.exchange = 0, .sent = 3, .expected = 3, .generation = 0};
    const bool is_near = pe < per_host;
    if (is_near) first.places = {1, pool_bytes / 2, pool_bytes / 2 + 64, pool_bytes / 2 + 128, pool_bytes / 2 + 256};
    Numbers numbers(sizeof first / sizeof(std::uint64_t));
    std::memcpy(numbers.data(), &first, sizeof first);
    // Of the elements 0, 1, 2 + (first PE of the host), 3 + (first PE of the host), which it packs once.
    if (is_near)
      IndexList(kept(me_)).encode(numbers);
    else if (!is_never())
      IndexList(Numbers{0, 1, 2 + me_}).encode(numbers);
    add(SetupKind::meeting, 1, pe, std::move(numbers));
  }

  void frames() {
    if (is_never()) {
      for (std::size_t pe = per_host; pe != pes; ++pe) frame(pe, 1, 0, 3 * element_bytes);
      frame(2, 2, 0, 8);
      frame(2, 2, 8, 3 * element_bytes - 8);
    } else if (target_ == me_) {
      frame(3, 1, stream_of_host, 2 * section_bytes);
      frame(2, 2, stream_of_host, section_bytes);
      frame(2, 2, stream_of_host | section_bytes, section_bytes);
    }
  }
  void frame(std::size_t source, std::uint64_t generation, std::uint64_t begin, std::size_t bytes) {
    Record record{128, 0, std::uint8_t(source), 0, {generation << 32, begin}};
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) record.numbers.push_back(source << 56 | i);
    record.trim = std::uint8_t((record.numbers.size() - 2) * sizeof(std::uint64_t) - bytes);
    append(bytes_, record);
  }

  unsigned role_;
  std::size_t me_, target_;
  Bytes bytes_;
};

class Partners final : public fuzz::Target {
 public:
  std::vector<Bytes> valid_inputs() override {
    begin_round(0);
    std::vector<Bytes> inputs;
    for (unsigned role = 0; role != 8; ++role) {
      for (const std::size_t target : {0, 1}) {
        inputs.push_back(Script(role, target).input());
        if (const std::string& refusal = decode(inputs.back()); !refusal.empty())
          throw Broken("a valid input is refused: " + refusal);
        const bool gets_all = (role & role_never) != 0 || target == (role & role_victim);
        if (!is_set_up_ || missing_.contains(2) == gets_all || missing_.contains(3) == gets_all)
          throw Broken(fmt::format("a valid input, of role {} and target {}, does not take its frames", role, target));
      }
    }
    return inputs;
  }

  void begin_round(std::uint64_t) override {
    nodes_ = {};
    for (std::size_t me = 0; me != per_host; ++me) nodes_[me] = std::make_unique<Node>(me);
    inputs_ = 0;
  }
  bool exhausted() const override { return inputs_ == inputs_per_pool; }
  std::size_t allocated_bytes_max(std::size_t input_bytes) const override { return (256u << 10) + 64 * input_bytes; }

  void mutate(Bytes& input, const Bytes& other, Random& random) override {
    if (input.size() <= 1 || random.one_in(4)) return fuzz::change_bytes(input, 0, other, random);
    std::vector<Record> records = records_of(input);
    if (records.empty()) return;
    Record& one = records[random.below(records.size())];
    const auto any_number = [&]() -> std::uint64_t& { return one.numbers[random.below(one.numbers.size())]; };
    const std::size_t what = one.numbers.empty() ? random.below(4) : random.below(12);
    switch (what) {
      case 0: one.numbers.push_back(fuzz::boundary_value(random, elements)); break;
      case 1: std::swap(one, records[random.below(records.size())]); break;
      case 2: records.push_back(one); break;
      case 3: change_head(one, random); break;
      case 4: one.numbers.pop_back(); break;
      case 5: any_number() = fuzz::boundary_value(random, pool_bytes); break;
      case 6: any_number() = fuzz::boundary_value(random, elements); break;
      case 7: any_number() += 64 * (random.below(9) - 4); break;
      case 8: any_number() += random.below(9) - 4; break;
      case 9: any_number() = any_number(); break;
      case 10: any_number() = pool_bytes - 64 * random.below(8); break;
      default: {
        const std::vector<Record> more = records_of(other);
        if (!more.empty()) one = more[random.below(more.size())];
      }
    }
    const std::byte role = input[0];
    input.assign(1, random.one_in(20) ? std::byte(random.below(8)) : role);
    for (const Record& record : records) append(input, record);
  }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    is_set_up_ = false;
    ++inputs_;
    if (input.empty()) return refusal_;
    const auto role = std::to_integer<unsigned>(input[0]);
    try {
      meet(*nodes_[role & role_victim], role, records_of(input));
    } catch (const FormatError& error) {
      refusal_ = error.what();
    } catch (const UsageError& error) {  // another order of calls, other numbers or types
      refusal_ = error.what();
    } catch (const Stop&) {
    }
    memory_.let_go();
    if (!refusal_.empty() && refusal_.find("PE ") == std::string::npos)
      throw Broken("a refusal names no PE: " + refusal_);
    return refusal_;
  }

 private:
  static void change_head(Record& record, Random& random) {
    switch (random.below(4)) {
      case 0: record.kind = std::uint8_t(fuzz::boundary_value(random, 6)); return;
      case 1: record.call = std::uint8_t(random.below(6)); return;
      case 2: record.source = std::uint8_t(random.below(pes)); return;
      default: record.trim = std::uint8_t(random.below(16)); return;
    }
  }

  /// The number of the last call, after which no message of an earlier input is left.
  static std::uint64_t finish_calls(Exchanges& exchanges) {
    std::uint64_t call = 0;
    for (int i = 0; i != 8; ++i) {
      try {
        call = exchanges.begin_setup(SetupKind::meeting);
      } catch (const UsageError&) {  // a message of another kind waits
      }
      (void)exchanges.end_setup();
    }
    return call;
  }

  void meet(Node& node, unsigned role, const std::vector<Record>& records) {
    node.drop_arrivals();
    Exchanges& exchanges = node.exchanges();
    const std::size_t me = node.pe().id();
    const std::uint64_t last = finish_calls(exchanges);
    const std::uint32_t number = node.made;
    std::vector<double> doubles(elements);
    std::vector<std::uint32_t> words(elements);
    const std::string types = field(doubles).type + ", " + field(words).type;
    for (const Record& one : records) {
      if (one.is_frame()) continue;
      Numbers numbers = one.numbers;
      if (!numbers.empty() && one.kind == std::uint8_t(SetupKind::meeting)) numbers[0] += number;
      exchanges.take_setup(source_of(one, me), (last + one.call % 8) << 8 | one.kind, numbers,
                           one.trim == 0 ? types : "int");
    }
    Lists sends, receives;
    for (std::size_t pe = 0; pe != pes; ++pe) {
      if (pe == me) continue;
      sends.push_back({pe, sent(pe)});
      receives.push_back({pe, kept(pe)});
    }
    const auto plan = Plan::both(node.pe(), sends, receives);
    ++node.made;
    ExchangeState exchange(node.pe(), plan, {field(doubles), field(words)},
                           (role & role_fixed) != 0 ? CombineOrder::fixed : CombineOrder::any,
                           (role & role_never) != 0 ? Coalescing::never : Coalescing::always);
    is_set_up_ = true;
    exchange.begin(Patience::none);
    for (const Record& one : records) {
      if (one.is_frame()) take(exchanges, one, me, number);
    }
    (void)exchange.done();
    std::vector<std::uint32_t> missing;
    exchange.add_missing(missing);
    missing_ = {missing.begin(), missing.end()};
  }

  /// Another PE: the engine has no frames of this one from the wire.
  static std::size_t source_of(const Record& record, std::size_t me) {
    const std::size_t source = record.source % pes;
    return source == me ? (me + 1) % pes : source;
  }

  void take(Exchanges& exchanges, const Record& record, std::size_t me, std::uint32_t number) {
    Bytes bytes(record.numbers.size() * sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(bytes.data(), record.numbers.data(), bytes.size());
    bytes.resize(bytes.size() - std::min<std::size_t>(record.trim, bytes.size()));
    if (bytes.size() >= sizeof number) {
      std::uint32_t exchange = 0;
      std::memcpy(&exchange, bytes.data(), sizeof exchange);
      exchange += number;
      std::memcpy(bytes.data(), &exchange, sizeof exchange);
    }
    transport::Arrival arrival;
    arrival.header = {};
    arrival.header.source = std::uint16_t(source_of(record, me));
    arrival.header.count = 1;
    arrival.header.payload_bytes = std::uint32_t(bytes.size());
    arrival.payload = memory_.hold(bytes, 64, 32, 0);
    arrival.tail_end = arrival.payload + bytes.size();
    std::uint32_t next = 0;
    (void)exchanges.handle(arrival, next);
  }

  std::array<std::unique_ptr<Node>, per_host> nodes_;
  fuzz::FencedMemory memory_{8_KiB};
  std::size_t inputs_ = 0;
  bool is_set_up_ = false;
  std::set<std::uint32_t> missing_;
  std::string refusal_;
};

}  // namespace
}  // namespace headway::halo

int main(int argc, char** argv) {
  headway::halo::Partners partners;
  return headway::fuzz::run(argc, argv, "headway_halo_fuzz", partners);
}
