// SPDX-License-Identifier: BSD-3-Clause
/// Every message is handled exactly once, unchanged, where it was sent to: random traffic by seed, over every route and
/// at the limits of every option, with handlers that send on. Sender and receiver count the messages of each pair of
/// PEs in memory that the starting process compares afterwards.
///
///     exactly_once [--mode direct,1d,2d,3d,wps,pp,pp-2d] [--messages N] [--large N] [--case NAME] [--seed N]
///                  [--seconds N] [--verbose]
///
/// N messages of 0 to 4 KB and N of up to 1 MB in each mode, spread over all cases. HEADWAY_PES and the other settings
/// give the shape of the run. With --seconds each case repeats for so long, with as many messages each time, and its
/// memory must not grow.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <headway/headway.hpp>
#include <new>
#include <optional>
#include <string>
#include <support/memory.hpp>
#include <utility>
#include <vector>

#include "traffic.hpp"

namespace exactly_once {
namespace {

using namespace headway::literals;
using namespace std::chrono_literals;
using headway::AggregatorOptions;
using headway::Pe;
using headway::PeId;

constexpr std::size_t small_max = 4096, large_max = 1_MiB;
constexpr std::uint16_t depth_max = 8;
constexpr std::size_t rounds = 3;  // at least; each ends with a quiesce()
constexpr std::size_t rounds_max = 2 * rounds;
constexpr std::size_t rounds_per_aggregators_in_soak = 32;
constexpr double seconds_of_a_long_soak = 600;
constexpr std::size_t pes_max = 256;

struct Case {
  const char* name;
  AggregatorOptions options;
  double fixed_threshold = headway::derived_fraction, fixed_cutoff = headway::derived_fraction;
};

/// Each aggregator of each round has other options, by the seed; the second and third also another route.
const char* const random_case = "random";

const Case cases[] = {
    {"defaults", {}},
    {"smallest-buffer", {.buffer_bytes = 256}},
    {"odd-buffer", {.buffer_bytes = 1001, .threshold = 0.7, .cutoff = 0.3}},
    {"largest-buffer", {.buffer_bytes = headway::base::buffer_bytes_max, .timeout = headway::no_timeout}},
    {"threshold-0-cutoff-1", {.buffer_bytes = 4_KiB, .threshold = 0, .cutoff = 1, .timeout = 0ns}, 0, 1},
    {"threshold-1-cutoff-0", {.buffer_bytes = 4_KiB, .threshold = 1, .cutoff = 0}, 1, 0},
    {"threshold-0-cutoff-0", {.buffer_bytes = 256, .threshold = 0, .cutoff = 0, .flush_when_idle = false}, 0, 0},
    {"never-by-itself", {.buffer_bytes = 16_KiB, .timeout = headway::no_timeout, .flush_when_idle = false}},
    {"timeout-0", {.buffer_bytes = 16_KiB, .threshold = 0.5, .cutoff = 0.5, .timeout = 0ns, .flush_when_idle = false}},
    {"ordered", {.ordered = true}},
    {"ordered-smallest", {.buffer_bytes = 256, .ordered = true}},
    {"ordered-threshold-0", {.buffer_bytes = 1000, .threshold = 0, .cutoff = 1, .timeout = 0ns, .ordered = true}, 0, 1},
    {"ordered-cutoff-0",
     {.buffer_bytes = 8_KiB,
      .threshold = 1,
      .cutoff = 0,
      .timeout = headway::no_timeout,
      .flush_when_idle = false,
      .ordered = true},
     1,
     0},
    {random_case, {}},
};

AggregatorOptions random_options(Random& random, headway::Topology topology) {
  AggregatorOptions options;
  options.topology = topology;
  if (!random.one_in(5)) options.buffer_bytes = random.size(256, 300'000);
  if (!random.one_in(4)) options.threshold = double(random.below(1001)) / 1000;
  if (!random.one_in(4)) options.cutoff = double(random.below(1001)) / 1000;
  if (options.threshold > 0 && options.cutoff > 0) options.cutoff *= 1 - options.threshold;
  constexpr std::chrono::nanoseconds timeouts[] = {
      headway::derived_timeout, headway::no_timeout, 0ns, 1us, 100us, 10ms};
  options.timeout = timeouts[random.below(std::size(timeouts))];
  options.flush_when_idle = random.one_in(2);
  options.ordered = random.one_in(2);
  return options;
}

/// What PEs write and the starting process reads.
struct Pair {
  Tally sent, handled;
};
struct Shared {
  Pair pairs[pes_max][pes_max];  // [source][destination]
};

struct Plan {
  const Case* of = nullptr;
  headway::Topology topology;
  std::uint64_t seed = 1;
  std::uint64_t messages = 0, large = 0;  // at least, of all PEs together, those that handlers send included
  double seconds = 0;                     // 0: `rounds` rounds or more
};

/// Memory of all PEs together, in about 100 samples of a soak. After the first quarter of a long soak it must not grow.
/// In a short soak queues and spills may still grow to their peak.
class Growth {
 public:
  void look(Pe& pe, double part_of_the_time) {
    if (part_of_the_time < double(samples_.size() + 1) * 0.01) return;
    samples_.push_back(headway::allreduce(pe, headway::testing::proportional_bytes(getpid()), std::plus<>()));
  }
  /// Describes the growth; empty if there is none.
  std::string report(bool is_long) const {
    if (samples_.size() < 8) return {};
    const auto quarter = samples_.begin() + std::ptrdiff_t(samples_.size() / 4);
    const auto end = samples_.end() - std::ptrdiff_t(samples_.size() / 4);
    const std::size_t early = *std::max_element(quarter, end), late = *std::max_element(end, samples_.end());
    const std::string text =
        fmt::format("memory of all PEs: {:.1f} MiB after the first quarter, {:.1f} MiB in the last",
                    double(early) / 0x1p20, double(late) / 0x1p20);
    fmt::print("{}\n", text);
    return is_long && double(late) > 1.05 * double(early) + 0x1p20 ? text : "";
  }

 private:
  std::vector<std::size_t> samples_;
};

/// One PE's part.
class Participant {
 public:
  Participant(Pe& pe, const Plan& plan, Shared& shared, const Content& content)
      : pe_(pe),
        plan_(plan),
        shared_(shared),
        content_(content),
        random_(plan.seed * 1'000'003 + pe.id()),
        sent_(2 * pe.size()),
        next_(2 * pe.size()),
        fixed_sent_(2 * pe.size()),
        fixed_next_(2 * pe.size()) {}

  int run() {
    // On the average a message is sent on depth_max / 2 times.
    const std::uint64_t per_pe = 1 + plan_.messages / (depth_max / 2) / pe_.size() / rounds;
    const std::uint64_t large_per_pe = plan_.large == 0 ? 0 : 1 + plan_.large / (depth_max / 2) / pe_.size() / rounds;
    const std::uint64_t large_every =
        large_per_pe == 0 ? ~std::uint64_t(0) : std::max<std::uint64_t>(1, per_pe / large_per_pe);
    // As of the last quiesce(): others may be further and have messages handled here since.
    std::uint64_t handled_before = 0, sent_before = 0, counted_before = 0;
    for (std::size_t round = 0; goes_on(round); ++round) {
      if (plan_.seconds == 0 || round % rounds_per_aggregators_in_soak == 0) {
        make_aggregators(round);
        counted_before = 0;
      }
      hot_ = (plan_.seed + round) % pe_.size();
      for (std::uint64_t i = 0; i < per_pe; ++i) {
        send_from_program(i % large_every == large_every - 1);
        if (random_.one_in(300)) pe_.progress();
        if (random_.one_in(1000)) whole_->flush();
      }
      const std::uint64_t returned = pe_.quiesce();
      const std::uint64_t handled = handled_ - std::exchange(handled_before, handled_);
      const std::uint64_t sent = sent_messages_ - std::exchange(sent_before, sent_messages_);
      const std::uint64_t counted_now = counted();
      if (const std::uint64_t by_statistics = counted_now - std::exchange(counted_before, counted_now);
          by_statistics != handled) {
        report(fmt::format("statistics say that {} messages were handled, but {} were", by_statistics, handled));
      }
      const std::uint64_t all_sent = headway::allreduce(pe_, sent, std::plus<>());
      const std::uint64_t all_handled = headway::allreduce(pe_, handled, std::plus<>());
      all_sent_ += all_sent;
      if (returned != all_handled || returned != all_sent) {
        report(fmt::format("quiesce() returned {}, but {} messages were sent and {} handled", returned, all_sent,
                           all_handled));
      }
    }
    if (pe_.id() == 0) {
      if (const std::string growth = growth_.report(plan_.seconds >= seconds_of_a_long_soak); !growth.empty())
        report(growth);
    }
    return errors_ == 0 ? 0 : 1;
  }

 private:
  /// Collective in a soak: PE 0's clock decides.
  bool goes_on(std::size_t round) {
    // The order of arrival decides how often handlers send on, so that three rounds are sometimes not enough.
    if (plan_.seconds == 0) return round < rounds || (round < rounds_max && all_sent_ < plan_.messages);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    const double part = headway::allreduce(pe_, pe_.id() == 0 ? passed.count() / plan_.seconds : 0, std::plus<>());
    growth_.look(pe_, part);
    return part < 1;
  }

  std::uint64_t counted() const {
    return whole_->statistics().handled + bare_->statistics().handled + fixed_->statistics().handled;
  }

  void make_aggregators(std::size_t round) {
    AggregatorOptions whole = plan_.of->options, bare, fixed;
    if (plan_.of->name == random_case) {
      Random random(plan_.seed * 77 + round);  // the same on all PEs
      whole = random_options(random, plan_.topology);
      bare = random_options(random, headway::grid(unsigned(random.below(5))));
      fixed = random_options(random, headway::grid(unsigned(random.below(5))));
    } else {
      whole.topology = plan_.topology;
      bare = fixed = whole;
      fixed.threshold = plan_.of->fixed_threshold;
      fixed.cutoff = plan_.of->fixed_cutoff;
    }
    whole_.emplace(pe_, whole);
    bare_.emplace(pe_, bare);
    fixed_.emplace(pe_, fixed);
    whole_is_ordered_ = whole.ordered;
    fixed_is_ordered_ = fixed.ordered;
    std::ranges::fill(sent_, 0);
    std::ranges::fill(next_, 0);
    std::ranges::fill(fixed_sent_, 0);
    std::ranges::fill(fixed_next_, 0);
    whole_->on([this](PeId source, const Envelope& envelope, std::span<const std::byte> content) {
      check(source, envelope, content, whole_is_ordered_ ? &next_ : nullptr);
      if (envelope.depth != 0) send_on(envelope.depth, content.size());
    });
    bare_->on([this](PeId source, std::span<const std::byte> content) {
      ++handled_;
      tally(source, pe_.id()).handled.add(checksum(content, source * 1009 + pe_.id()), content.size());
    });
    fixed_->on([this](PeId source, const Envelope& envelope) {
      check(source, envelope, {}, fixed_is_ordered_ ? &fixed_next_ : nullptr);
      if (envelope.depth != 0) send_on(envelope.depth, 0);
    });
  }

  Pair& tally(std::size_t source, std::size_t destination) { return shared_.pairs[source][destination]; }

  // --- sending

  void send_from_program(bool large) {
    const auto depth = std::uint16_t(random_.below(depth_max + 1));
    if (random_.one_in(500)) {  // a short burst that must not wait
      const headway::DeferHandlers guard(pe_);
      for (std::uint64_t left = random_.below(30); left > 0; --left) send(0, 0, false, false);
    }
    send(0, depth, large, random_.one_in(4));
    if (random_.one_in(2000)) usleep(useconds_t(random_.below(500)));
  }

  void send_on(std::uint16_t depth, std::size_t bytes) {
    const bool large = bytes > small_max;
    send(1, std::uint16_t(depth - 1), large, random_.one_in(8));
    if (!large && random_.one_in(16)) send(1, std::uint16_t(depth - 1), false, false);
    if (random_.one_in(5000)) usleep(useconds_t(random_.below(300)));
  }

  /// To a random PE, through one of the three aggregators. A try_send that is refused is sent all the same.
  void send(std::uint16_t stream, std::uint16_t depth, bool large, bool try_first) {
    // In every round one PE gets more than it can take from all the others.
    const std::size_t destination = random_.one_in(4) ? hot_ : random_.below(pe_.size());
    const std::uint64_t kind = large ? 0 : random_.below(10);
    const std::size_t bytes = large ? random_.size(small_max, large_max) : random_.size(0, small_max);
    const std::span<const std::byte> content =
        kind == 9 ? std::span<const std::byte>() : content_.piece(random_, bytes);
    ++sent_messages_;
    if (kind == 8) {
      tally(pe_.id(), destination).sent.add(checksum(content, pe_.id() * 1009 + destination), bytes);
      if (!try_first || !bare_->try_send(destination, content)) bare_->send(destination, content);
      return;
    }
    Envelope envelope{
        std::uint32_t(pe_.id()), std::uint32_t(destination), 0, std::uint32_t(content.size()), depth, stream, 0};
    std::vector<std::uint64_t>& sequences = kind == 9 ? fixed_sent_ : sent_;
    envelope.sequence = sequences[stream * pe_.size() + destination]++;
    envelope.sum = envelope.expected_sum(content);
    tally(pe_.id(), destination).sent.add(envelope.sum, content.size());
    if (kind == 9) {
      if (!try_first || !fixed_->try_send(destination, envelope)) fixed_->send(destination, envelope);
    } else {
      if (!try_first || !whole_->try_send(destination, envelope, content)) whole_->send(destination, envelope, content);
    }
  }

  // --- handling

  void check(std::size_t source, const Envelope& envelope, std::span<const std::byte> content,
             std::vector<std::uint64_t>* next) {
    ++handled_;
    if (envelope.source != source || envelope.destination != pe_.id() || envelope.bytes != content.size() ||
        envelope.sum != envelope.expected_sum(content)) {
      return report(fmt::format("a message from PE {} of {} bytes is damaged: it says {} -> {}, number {}, {} bytes",
                                source, content.size(), envelope.source, envelope.destination, envelope.sequence,
                                envelope.bytes));
    }
    tally(source, pe_.id()).handled.add(envelope.sum, content.size());
    if (next == nullptr) return;
    std::uint64_t& expected = (*next)[envelope.stream * pe_.size() + source];
    if (envelope.sequence != expected) {
      report(fmt::format("message number {} from PE {} came where number {} was due (stream {})", envelope.sequence,
                         source, expected, envelope.stream));
    }
    expected = envelope.sequence + 1;
  }

  void report(const std::string& what) {
    if (++errors_ <= 5) fmt::print(stderr, "PE {}: {}\n", pe_.id().value, what);
  }

  Pe& pe_;
  const Plan& plan_;
  Shared& shared_;
  const Content& content_;
  Random random_;
  std::optional<headway::Aggregator<Envelope, std::span<const std::byte>>> whole_;
  std::optional<headway::Aggregator<std::span<const std::byte>>> bare_;
  std::optional<headway::Aggregator<Envelope>> fixed_;
  std::vector<std::uint64_t> sent_, next_, fixed_sent_, fixed_next_;  // by stream and PE
  std::size_t hot_ = 0;
  bool whole_is_ordered_ = false, fixed_is_ordered_ = false;
  std::uint64_t sent_messages_ = 0, handled_ = 0, errors_ = 0;
  std::uint64_t all_sent_ = 0;  // of all PEs, in the rounds that have ended
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Growth growth_;
};

class Memory {
 public:
  Memory() : shared_(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (shared_ == MAP_FAILED) throw std::bad_alloc();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(shared_, sizeof(Shared)); }
  Shared& operator*() const { return *static_cast<Shared*>(shared_); }

 private:
  void* shared_;
};

/// Runs one case. Returns 0, or the exit status of the failure.
int run_case(const Plan& plan, char* program, bool verbose) {
  const auto begin = std::chrono::steady_clock::now();
  const Memory memory;
  const Content content(plan.seed, large_max);
  int status = headway::run(1, &program, [&](Pe& pe) -> int {
    if (pe.size() > pes_max) throw std::runtime_error("too many PEs for this test");
    return Participant(pe, plan, *memory, content).run();
  });
  std::uint64_t messages = 0, bytes = 0, differing = 0;
  for (std::size_t s = 0; s < pes_max; ++s) {
    for (std::size_t d = 0; d < pes_max; ++d) {
      const auto& [sent, handled] = (*memory).pairs[s][d];
      messages += sent.messages;
      bytes += sent.bytes;
      if (sent == handled) continue;
      if (++differing > 5) continue;
      fmt::print(stderr, "{} -> {}: {} messages of {} bytes were sent, {} of {} bytes handled{}\n", s, d, sent.messages,
                 sent.bytes, handled.messages, handled.bytes,
                 sent.messages == handled.messages ? ", with other content" : "");
    }
  }
  if (messages < plan.messages) fmt::print(stderr, "{} messages, expected {} or more\n", messages, plan.messages);
  if (status == 0 && (differing != 0 || messages < plan.messages)) status = 1;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  if (status != 0 || verbose) {
    fmt::print("{:6} {:22} {:9} messages {:8.1f} MB {:7.2f} s{}\n", to_string(plan.topology), plan.of->name, messages,
               double(bytes) * 1e-6, passed.count(), status == 0 ? "" : fmt::format("  FAILED (status {})", status));
  }
  if (status != 0) {
    fmt::print(
        "to repeat: {} --mode {} --case {} --seed {} --messages {} --large {}, with the same HEADWAY_ settings\n",
        program, to_string(plan.topology), plan.of->name, plan.seed, plan.messages, plan.large);
  }
  return status;
}

int run_all(int argc, char** argv) {
  std::string modes = "direct,1d,2d,3d,wps,pp", only;
  std::uint64_t messages = 50'000, large = 500, seed = 1;
  double seconds = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      verbose = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(option + " needs a value");
    const std::string value = argv[++i];
    if (option == "--mode")
      modes = value;
    else if (option == "--case")
      only = value;
    else if (option == "--messages")
      messages = std::stoull(value);
    else if (option == "--large")
      large = std::stoull(value);
    else if (option == "--seed")
      seed = std::stoull(value);
    else if (option == "--seconds")
      seconds = std::stod(value);
    else
      throw std::runtime_error("there is no option " + option);
  }
  const std::size_t cases_run = only.empty() ? std::size(cases) : 1;
  int failed = 0;
  std::size_t runs = 0;
  for (std::size_t at = 0; at <= modes.size();) {
    const std::size_t end = std::min(modes.find(',', at), modes.size());
    const headway::Topology topology = headway::parse_topology(modes.substr(at, end - at));
    at = end + 1;
    for (const Case& one : cases) {
      if (!only.empty() && only != one.name) continue;
      const Plan plan{&one, topology, seed, messages / cases_run, large / cases_run, seconds};
      failed += run_case(plan, argv[0], verbose) != 0;
      ++runs;
    }
  }
  fmt::print("{} runs, {} failed\n", runs, failed);
  return runs == 0 || failed != 0;
}

}  // namespace
}  // namespace exactly_once

int main(int argc, char** argv) {
  try {
    return exactly_once::run_all(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "exactly_once: {}\n", error.what());
    return 2;
  }
}
