// SPDX-License-Identifier: BSD-3-Clause
/// Messages over the rings.
#include <memory>
#include <stdexcept>

#include "build.hpp"
#include "comparison.hpp"
#include "deliver.hpp"
#include "exchange.hpp"
#include "formulation.hpp"
#include "measure.hpp"
#include "owning.hpp"
#include "send.hpp"
#include "traffic.hpp"

namespace headway::limit {

namespace {

template <class Messages, class Apply>
std::vector<NamedDeliver> deliveries() {
  return {{"one by one", Messages::template one_by_one<Apply>},
          {"by four", Messages::template by_four<Apply>},
          {"prefetching", Messages::template prefetching<Apply>},
          {"staging", Messages::template staging<Apply>}};
}
template <class Messages>
std::vector<NamedDeliver> deliveries(bool table) {
  return table ? deliveries<Messages, Update>() : deliveries<Messages, Sum>();
}

/// A copy takes so long that the looks do not matter: each fills as its traffic does it best.
template <class Build>
Send send_of_copy(const Traffic& traffic) {
  return traffic.one_target() ? send<Build, Filling::in_rows> : send<Build, Filling::checked>;
}

template <std::size_t Bytes>
std::vector<NamedSend> fixed_builds(const Traffic& traffic) {
  std::vector<NamedSend> builds = {{"fields, in rows", send<FixedFields<Bytes>, Filling::in_rows>},
                                   {"fields, checked", send<FixedFields<Bytes>, Filling::checked>}};
  if constexpr (Bytes > 32) {
    builds.push_back({"words", send_of_copy<FixedCopy<Bytes, copy_words>>(traffic)});
    builds.push_back({"libc", send_of_copy<FixedCopy<Bytes, copy_libc>>(traffic)});
    builds.push_back({"wide", send_of_copy<FixedCopy<Bytes, copy_wide>>(traffic)});
  }
  return builds;
}

/// For messages of any size: the sender must check the room before each.
template <class Walk>
std::vector<NamedSend> variable_builds() {
  return {{"words", send<VariableCopy<Walk, copy_words>, Filling::checked>},
          {"libc", send<VariableCopy<Walk, copy_libc>, Filling::checked>},
          {"wide", send<VariableCopy<Walk, copy_wide>, Filling::checked>}};
}

template <std::size_t Bytes>
Kind fixed_kind(const Traffic& traffic) {
  return {"", Format::fixed, fixed_builds<Bytes>(traffic), deliveries<FixedMessages<Bytes>>(traffic.table()), Bytes};
}

template <class Walk>
Kind variable_kind(const char* name, Format format, const Traffic& traffic, std::size_t bytes) {
  return {name, format, variable_builds<Walk>(), deliveries<VariableMessages<Walk>>(traffic.table()),
          VariableCopy<Walk, copy_wide>(nullptr, bytes, 0).needed()};
}

std::vector<Kind> kinds_of(const Options& options) {
  const Traffic traffic(options);
  if (options.type == Type::vector || options.type == Type::parts) return owning_kinds(options);
  if (options.type == Type::bytes) {
    return {variable_kind<LengthBefore>("length before", Format::length_before, traffic, options.bytes),
            variable_kind<LengthsAtEnd>("lengths at end", Format::lengths_at_end, traffic, options.bytes)};
  }
  switch (options.bytes) {
    case 8: return {fixed_kind<8>(traffic)};
    case 16: return {fixed_kind<16>(traffic)};
    case 32: return {fixed_kind<32>(traffic)};
    case 64: return {fixed_kind<64>(traffic)};
    case 104: return {fixed_kind<104>(traffic)};
    case 256: return {fixed_kind<256>(traffic)};
    case 1000: return {fixed_kind<1000>(traffic)};
    default: throw std::invalid_argument("a size that is not fixed");
  }
}

struct Buffers {
  std::size_t bytes, depth;
};

/// A few that stay in the cache of their sender, and so many that they leave it: lines that both caches hold are slow
/// to write again.
std::vector<Buffers> buffers_of(const Options& options) {
  const std::size_t few = options.buffers > 0 ? options.buffers : Ring::depth_usual;
  if (options.buffer_bytes > 0) return {{options.buffer_bytes, few}};
  constexpr std::size_t small = std::size_t(16) << 10, large = std::size_t(64) << 10;
  if (options.pes > 4) return {{small, few}};
  if (options.buffers > 0) return {{small, few}, {large, few}};
  return {{small, few}, {large, few}, {large, Ring::depth_max}};
}

std::vector<Formulation> formulations_of(const Options& options) {
  const std::vector<Buffers> choices = buffers_of(options);
  std::vector<Formulation> formulations;
  for (const auto& [buffer, depth] : choices) {
    const std::string times = depth == Ring::depth_usual ? "" : " x " + std::to_string(depth);
    const std::string size = choices.size() > 1 ? ", " + std::to_string(buffer >> 10) + "K" + times : "";
    for (const Kind& kind : kinds_of(options)) {
      const bool fixed = kind.format == Format::fixed;
      const std::size_t used = std::max(fixed ? buffer / kind.needed * kind.needed : buffer, kind.needed);
      for (const NamedSend& build : kind.builds) {
        for (const NamedDeliver& delivery : kind.deliveries) {
          const std::string format = kind.name.empty() ? "" : kind.name + ", ";
          formulations.push_back({format + build.name + ", " + delivery.name + size, kind.format, build.send,
                                  delivery.deliver, delivery.check, used, depth});
        }
      }
    }
  }
  return formulations;
}

/// A PE's part of the table: T[i] = i between passes.
class Table {
 public:
  Table(const Traffic& traffic, std::size_t me)
      : begin_(traffic.table_begin(me)),
        end_(traffic.table() ? traffic.table_end(me) : begin_),
        memory_(Memory::Kind::own, traffic.table() ? (traffic.mask() + 1) * word_bytes : 0) {
    for (std::uint64_t i = begin_; i < end_; ++i) words()[i] = i;
  }
  Word* words() const { return reinterpret_cast<Word*>(memory_.data()); }
  std::uint64_t errors() const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = begin_; i < end_; ++i) wrong += words()[i] != i;
    return wrong;
  }

 private:
  std::uint64_t begin_, end_;
  Memory memory_;  // of all PEs' words; only the own ones are touched, so only they exist
};

/// One PE's part of all passes.
class RingCase {
 public:
  RingCase(Pe& pe, const Options& options, const std::vector<Formulation>& formulations, std::byte* shared)
      : pe_(pe),
        options_(options),
        formulations_(formulations),
        traffic_(options),
        prepared_(prepared_message(options.bytes, pe.id())),
        table_(traffic_, pe.id()),
        exchange_(pe, shared, largest_buffer(formulations), receiver_) {
    receiver_.objects = &objects_;
    receiver_.update = {table_.words(), traffic_.mask()};
    for (std::size_t source = 0; source < pe.size(); ++source) {
      sources_ += source != pe.id() && traffic_.receives_from(pe.id(), source);
    }
  }

  static std::size_t largest_buffer(const std::vector<Formulation>& formulations) {
    return std::ranges::max(formulations, {}, &Formulation::buffer_bytes).buffer_bytes;
  }

  /// Compares every byte of the first `messages`.
  void check(std::size_t formulation, std::uint64_t messages) {
    Comparison comparison(traffic_, pe_.id(), options_.bytes, formulations_[formulation].format, messages);
    receiver_.comparison = &comparison;
    objects_ = {};  // else they would still hold what another formulation read
    exchange_.clear(formulations_[formulation].depth);
    run(formulations_[formulation], formulations_[formulation].check, messages);
    errors_ += comparison.errors();
  }

  /// Sends and receives `messages` of each sender and verifies their effect. Where the case has more messages, takes
  /// others than in the pass before, so that a large table is not in the cache because of the last pass. Returns the
  /// seconds of sending and receiving.
  double pass(std::size_t formulation, std::uint64_t messages) {
    receiver_.sum = {};
    traffic_.skip(passes_++ * messages % (options_.messages - messages + 1));
    const Passed passed = run(formulations_[formulation], formulations_[formulation].deliver, messages);
    Sum sum;
    std::uint64_t count = 0;
    traffic_.for_each_to(pe_.id(), messages, [&](std::size_t, Word number) {
      const Word last = options_.bytes >= 2 * word_bytes ? ~number : number;
      ++count;
      if (traffic_.table()) {
        receiver_.update(number, last);  // each update is its own inverse
      } else {
        sum(number, last);
      }
    });
    errors_ += passed.delivered != count;
    errors_ += receiver_.sum != sum;
    return passed.seconds;
  }

  std::uint64_t errors() const { return errors_ + table_.errors(); }

 private:
  struct Passed {
    double seconds;
    std::uint64_t delivered;
  };

  Passed run(const Formulation& formulation, Deliver deliver, std::uint64_t messages) {
    exchange_.begin({traffic_.targets(pe_.id()), sources_, formulation.buffer_bytes, formulation.depth, deliver});
    pe_.meet_all();
    const double begin = now();
    if (traffic_.sends(pe_.id())) {
      formulation.send(exchange_, {traffic_, pe_.id(), options_.bytes, prepared_.data()}, messages);
    }
    const std::uint64_t delivered = exchange_.finish();
    const double end = now();
    pe_.meet_all();
    return {end - begin, delivered};
  }

  Pe& pe_;
  const Options& options_;
  const std::vector<Formulation>& formulations_;
  Traffic traffic_;
  std::vector<std::byte> prepared_;
  Table table_;
  OwnedObjects objects_;
  Receiver receiver_;
  Exchange exchange_;
  std::size_t sources_ = 0;
  std::uint64_t passes_ = 0;
  std::uint64_t errors_ = 0;
};

}  // namespace

Job ring_job(const Options& options) {
  const auto formulations = std::make_shared<std::vector<Formulation>>(formulations_of(options));
  Job job;
  for (const Formulation& formulation : *formulations) {
    job.formulations.push_back(formulation.name);
    job.buffer_bytes.push_back(formulation.buffer_bytes);
    job.buffers.push_back(formulation.depth);
  }
  job.shared_bytes = Exchange::bytes(options.pes, RingCase::largest_buffer(*formulations));
  job.body = [options, formulations](Pe& pe, std::byte* shared, std::optional<std::size_t> only, Outcome& outcome) {
    RingCase ring(pe, options, *formulations, shared);
    const auto some = [&](std::uint64_t bytes) {
      return std::min(options.messages, std::max<std::uint64_t>(bytes / options.bytes, 256));
    };
    for (std::size_t i = 0; i < formulations->size(); ++i) {
      if (!only || *only == i) ring.check(i, some(1 << 18));
    }
    const std::uint64_t tried = some(4 << 20), senders = Traffic(options).senders();
    measure_best(pe, formulations->size(), only, tried, options.messages, outcome,
                 [&](std::size_t formulation, std::uint64_t messages) { return ring.pass(formulation, messages); });
    const std::uint64_t errors = pe.sum_of_all(ring.errors());
    if (pe.id() != 0) return;
    outcome.messages = options.messages * senders;
    outcome.tried_messages = tried * senders;
    outcome.errors = errors;
  };
  return job;
}

}  // namespace headway::limit
