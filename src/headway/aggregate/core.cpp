// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/defaults.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/type_text.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <utility>

namespace headway::aggregate {
namespace {

count::AggregatorCounts counts_of(const void* self) {
  const Core& core = *static_cast<const Core*>(self);
  const AggregatorStatistics s = core.statistics();
  return {.messages = s.messages,
          .payload_bytes = s.payload_bytes,
          .forwarded = s.forwarded,
          .alone = s.alone,
          .full = s.flush_full,
          .timeout = s.flush_timeout,
          .idle = s.flush_idle,
          .requested = s.flush_explicit,
          .peak_buffer_bytes = s.peak_buffer_bytes,
          .buffer_bytes = core.options().buffer_bytes,
          .spilled_frames = s.spilled_frames,
          .spilled_bytes_peak = s.spilled_bytes_peak};
}

}  // namespace

Core::Core(Pe& pe, const AggregatorOptions& options, MessageShape shape)
    : shape_(std::move(shape)),
      name_(options.name),
      poster_(pe.engine(), padding_for(shape_.alignment)),
      options_(options_possible(options)),
      // a single message gains nothing from a buffer
      size_rules_{options.buffer_bytes == derived_bytes && !engine().aggregation_settings().buffer_bytes,
                  options.cutoff == derived_fraction && !engine().aggregation_settings().cutoff ? std::size_t(2) : 1},
      route_(engine().id(), engine().size(), options_.topology, engine().endpoint().host_map().pes_per_process,
             engine().endpoint().host_map().host_firsts),
      table_(*this, poster_, route_, options_, make_layout()),
      large_(poster_, table_, route_),
      reassembly_(engine(), counters().further_copies) {
  number_ = engine().add_handler(*this);
  if (auto* const counted = count::CountedEndpoint::of(engine().endpoint())) counted->enter(this, counts_of);
}

Core::~Core() {
  if (engine().has_failed()) return;
  table_.flush_now();  // never blocks; frames without memory wait in the engine
  if (auto* const counted = count::CountedEndpoint::of(engine().endpoint())) counted->leave(this);
  reassembly_.forget();
  engine().remove_handler(number_);
}

/// Buffers that PEs fill together keep no order, and are needed only where processes have several PEs.
AggregatorOptions Core::options_possible(const AggregatorOptions& given) const {
  transport::Endpoint& endpoint = engine().endpoint();
  const transport::HostMap& hosts = endpoint.host_map();
  AggregatorOptions options = resolve(given, {.pes = engine().size(),
                                              .pes_per_process = hosts.pes_per_process,
                                              .hosts = hosts.host_firsts,
                                              .budget_bytes = engine().store().budget_bytes(),
                                              .message_bytes = shape_.fixed_bytes,
                                              .costs = endpoint.costs(),
                                              .costs_within_host = endpoint.costs_within_host(),
                                              .settings = engine().aggregation_settings()});
  options.name = name_;
  const bool together =
      endpoint.shared_memory().shared_by_process() != nullptr && hosts.pes_per_process <= SharedBuffer::writers_max;
  if (options.topology.scheme == Scheme::pp && (options.ordered || !together)) options.topology.scheme = Scheme::wps;
  return options;
}

FrameLayout Core::make_layout() { return {engine(), route_, options_, shape_, size_rules_}; }

void Core::mark_ready(bool wants_source) {
  if (ready_) throw UsageError(fmt::format("on() was called twice for {}", description()));
  shape_.wants_source = wants_source;
  FrameLayout layout = make_layout();
  const std::size_t pes = engine().size(), bytes = layout.fixed_bytes;
  FastPaths paths;
  if (layout.alone_from != 0) paths.buffered = pes;
  if (route_.levels() == 1) paths.one_hop = paths.buffered;
  if (is_direct() && bytes != 0 && bytes <= layout.by_value_bytes_max) paths.by_value = pes;
  table_.begin(std::move(layout), paths);
  ready_ = true;
  poster_.identify(number_, signature());
  if (options_.topology.scheme == Scheme::pp && route_.is_over_processes()) {
    // The same on all PEs of the process: their numbers and signatures of it agree.
    table_.merge_in_process(std::uint64_t(number_) << 16 | signature(), options_.buffer_bytes);
  }
  engine().handler_ready();
}

std::string Core::description() const {
  return fmt::format("aggregator number {}{} <{}, {}{}> with buffers of {}", number_,
                     name_.empty() ? "" : " '" + name_ + "'", base::short_type_names(shape_.type),
                     to_string(options_.topology), options_.ordered ? ", ordered" : "",
                     base::format_bytes(options_.buffer_bytes));
}

void Core::check_send(std::size_t destination) const {
  if (destination >= engine().size()) base::throw_destination_out_of_range(destination, engine().size());
  if (table_.in_batch()) table_.refuse_to_post();
  if (!ready_) throw UsageError(fmt::format("send() before on() for {}", description()));
}

std::int64_t Core::due() const { return std::min(table_.due(), reassembly_.due()); }

bool Core::flush_due(std::int64_t now) {
  const bool any = table_.flush_due(now);
  if (reassembly_.due() <= now) reassembly_.forget();
  return any;
}

std::uint64_t Core::waiting_messages(am::ScopeId scope) const {
  std::uint64_t messages = 0;
  for (const auto& [s, waiting] : waiting_messages_) {
    if (scope == am::root_scope || s == scope) messages += waiting;
  }
  return messages;
}

void Core::add_statistics(report::PeStatistics& all) const {
  const Counters& counters = poster_.counters();
  all.frames += counters.frames + counters.by_value;
  all.forwarded += counters.forwarded;
  all.buffer_bytes += table_.open_bytes();
}

AggregatorStatistics Core::statistics() const {
  const SlotTable::Open open = table_.in_open_buffers();
  return poster_.counters().statistics(open.messages, open.bytes, engine().store());
}

// --- arrived frames

void Core::refuse_frame(const transport::Arrival& arrival, const char* what) const {
  throw FormatError(fmt::format("a frame of {} from PE {} for {} is not valid: {}",
                                base::counted(arrival.header.count, "message"), arrival.header.source, description(),
                                what));
}

void Core::refuse_frame(const transport::Arrival& arrival, const char* what, std::uint64_t actual, const char* relation,
                        std::uint64_t expected) const {
  refuse_frame(arrival, fmt::format("{} is {}, expected {} {}", what, actual, relation, expected).c_str());
}

void Core::refuse_single(const transport::Arrival& arrival) const {
  const transport::FrameHeader& header = arrival.header;
  if (header.hops_left != 0)
    refuse_frame(arrival, "hops left of a message sent alone", header.hops_left, "equal to", 0);
  refuse_frame(arrival, "tail of a message sent alone", header.tail_bytes, "equal to", 0);
}

void Core::refuse_whole(std::size_t bytes, std::size_t expected) {
  throw FormatError(fmt::format("a message in parts has {}; its type has {}", base::counted(bytes, "byte"), expected));
}

KeyedMessage Core::keyed_message(const transport::Arrival& arrival, std::size_t header_bytes) const {
  const transport::FrameHeader& header = arrival.header;
  const std::size_t outside = layout().padding + header_bytes;
  check_single(arrival);
  if (header.payload_bytes < outside) refuse_frame(arrival, "its payload", header.payload_bytes, "at least", outside);
  if (header.count != 1) refuse_frame(arrival, "its count of messages", header.count, "equal to", 1);
  KeyedMessage message;
  std::memcpy(&message.header, arrival.payload + layout().padding, sizeof message.header);
  message.at = arrival.payload + outside;
  message.bytes = header.payload_bytes - outside;
  if (message.header.key.pe != header.source) {
    refuse_frame(arrival, "the owner of its content", message.header.key.pe, "equal to PE", header.source);
  }
  return message;
}

}  // namespace headway::aggregate
