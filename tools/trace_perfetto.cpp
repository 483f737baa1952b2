// SPDX-License-Identifier: BSD-3-Clause
#include "trace_perfetto.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "gzip_file.hpp"
#include "perfetto_fields.hpp"
#include "protobuf.hpp"
#include "trace_counters.hpp"
#include "trace_slices.hpp"

namespace headway::tools {

using model::trace::FrameEnd;
using model::trace::MarkEnd;
using model::trace::Record;
using perfetto::event::Type;
using protobuf::Message;

namespace {

constexpr std::uint32_t sequence_of_all = 1;  // of packets; a PE has the next ones
constexpr std::uint64_t uuid_of_run = 1, uuid_of_processes = 1'000'000, uuid_of_pes = 2'000'000,
                        uuid_of_counters = 3'000'000, uuid_of_lanes = 4'000'000;
constexpr std::uint64_t tid_of_pes = 10'000'000;  // beyond those of Linux, so that no PE is a process's main thread

enum class Annotation : std::uint32_t { peer = 1, bytes, messages, flushed, age_ns, latency_ns, id, count };
constexpr std::array<const char*, 7> annotation_names = {"PE",     "bytes",      "messages", "flushed",
                                                         "age_ns", "latency_ns", "id"};
constexpr std::uint32_t category_of_posts = slice_kinds + 1;

class File {
 public:
  explicit File(const std::string& path) : file_(path) {}

  void add(const Message& packet) {
    whole_.clear();
    whole_.message(perfetto::trace::packet, packet);
    file_.write(whole_.bytes());
    counts.bytes += whole_.bytes().size();
  }
  void add_track(const Message& descriptor) {
    Message packet;
    packet.number(perfetto::packet::trusted_packet_sequence_id, sequence_of_all);
    packet.message(perfetto::packet::track_descriptor, descriptor);
    add(packet);
  }
  void add_event(std::int64_t at, const Message& event) {
    Message packet;
    packet.signed_number(perfetto::packet::timestamp, at);
    packet.number(perfetto::packet::trusted_packet_sequence_id, sequence_of_all);
    packet.message(perfetto::packet::track_event, event);
    add(packet);
  }
  void close() { file_.close(); }

  PerfettoCounts counts;
  std::uint64_t next_lane = uuid_of_lanes;

 private:
  GzipFile file_;
  Message whole_;
};

Message text_annotation(const std::string& name, const std::string& value) {
  Message message;
  message.text(perfetto::annotation::name, name).text(perfetto::annotation::string_value, value);
  return message;
}

Message track(std::uint64_t uuid, std::uint64_t parent, const std::string& name) {
  Message message;
  message.number(perfetto::track::uuid, uuid);
  if (parent != 0) message.number(perfetto::track::parent_uuid, parent);
  return message.text(perfetto::track::name, name);
}

/// Aligned time 0 by the clock of day, so that viewers can show it.
void add_clocks(File& file, const TraceFolder& folder) {
  const std::int64_t day_minus_run = model::trace::Flows::day_minus_run_ns(folder.first());
  if (folder.simulated() || day_minus_run == 0) return;
  auto clock = [](perfetto::clock::Id id, std::int64_t at) {
    Message message;
    message.number(perfetto::clock::clock_id, std::uint64_t(id)).signed_number(perfetto::clock::timestamp, at);
    return message;
  };
  const std::int64_t zero = day_minus_run - folder.flows().shift_ns(0);
  if (zero < 0) return;
  Message snapshot, packet;
  snapshot.message(perfetto::clock::clocks, clock(perfetto::clock::Id::boottime, 0));
  snapshot.message(perfetto::clock::clocks, clock(perfetto::clock::Id::realtime, zero));
  snapshot.number(perfetto::clock::primary_trace_clock, std::uint64_t(perfetto::clock::Id::boottime));
  packet.number(perfetto::packet::trusted_packet_sequence_id, sequence_of_all);
  file.add(packet.message(perfetto::packet::clock_snapshot, snapshot));
}

/// An instant at 0 with the facts about the run, and all that the trace lacks.
void add_run(File& file, const TraceFolder& folder) {
  file.add_track(track(uuid_of_run, 0, "run"));
  Message event;
  event.number(perfetto::event::type, std::uint64_t(Type::instant));
  event.number(perfetto::event::track_uuid, uuid_of_run);
  const model::trace::Flows::Counts& frames = folder.flows().counts();
  event.text(perfetto::event::name,
             fmt::format("trace: {} records lost, {} frames undelivered", folder.lost(), frames.undelivered));
  auto number = [&](const char* name, std::uint64_t value) {
    Message message;
    message.text(perfetto::annotation::name, name).number(perfetto::annotation::uint_value, value);
    event.message(perfetto::event::debug_annotations, message);
  };
  number("records", folder.records());
  number("records_lost", folder.lost());
  number("frames", frames.joined);
  number("frames_undelivered", frames.undelivered);
  number("control_frames_undelivered", frames.undelivered_control);
  number("frames_unknown", frames.unknown);
  number("pes_without_end", folder.unfinished());
  number("clock_residual_ns", std::uint64_t(std::max<std::int64_t>(folder.residual_ns(), 0)));
  if (folder.description().is_object()) {
    for (const auto& [name, value] : folder.description().items()) {
      event.message(perfetto::event::debug_annotations,
                    text_annotation(name, value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  file.add_event(0, event);
}

void add_counter(File& file, std::uint64_t uuid, std::uint64_t parent, const char* name, perfetto::counter::Unit unit,
                 const std::vector<CounterPoint>& points) {
  Message counter, descriptor = track(uuid, parent, name);
  counter.number(perfetto::counter::unit, std::uint64_t(unit));
  file.add_track(descriptor.message(perfetto::track::counter, counter));
  for (const CounterPoint& point : points) {
    Message event;
    event.number(perfetto::event::type, std::uint64_t(Type::counter)).number(perfetto::event::track_uuid, uuid);
    file.add_event(point.at_ns, event.real(perfetto::event::double_counter_value, point.value));
  }
}

void add_processes(File& file, const TraceFolder& folder) {
  for (std::size_t number = 0; number < folder.processes().size(); ++number) {
    const TraceProcess& process = folder.processes()[number];
    const std::uint64_t uuid = uuid_of_processes + number;
    Message descriptor, inner;
    inner.number(perfetto::process::pid, process.pid).text(perfetto::process::process_name, process.name);
    descriptor.number(perfetto::track::uuid, uuid).message(perfetto::track::process, inner);
    file.add_track(descriptor);
    for (const std::size_t pe : process.pes) {
      Message thread, its_track;
      thread.number(perfetto::thread::pid, process.pid).number(perfetto::thread::tid, tid_of_pes + pe);
      thread.text(perfetto::thread::thread_name, fmt::format("PE {}", pe));
      its_track.number(perfetto::track::uuid, uuid_of_pes + pe).number(perfetto::track::parent_uuid, uuid);
      file.add_track(its_track.message(perfetto::track::thread, thread));
    }
    add_counter(file, uuid_of_counters + 2 * number, uuid, "bytes in flight", perfetto::counter::Unit::bytes,
                bytes_in_flight(folder, process));
    add_counter(file, uuid_of_counters + 2 * number + 1, uuid, "messages per frame", perfetto::counter::Unit::count,
                messages_per_frame(folder, process));
  }
}

/// Packets of one PE: a sequence with its own table of names.
class PeSequence final : public SliceSink {
 public:
  PeSequence(File& file, std::size_t pe) : file_(file), pe_(pe) {}

  void begin(std::int64_t at, SliceKind kind, const std::string& name, const FrameEnd* taken) override {
    event_.clear();
    event_.number(perfetto::event::type, std::uint64_t(Type::slice_begin));
    categorize(std::uint32_t(kind) + 1, name);
    if (taken != nullptr) {
      annotate_frame(*taken);
      if (taken->number != 0) {
        event_.fixed(perfetto::event::terminating_flow_ids, taken->number);
        ++file_.counts.arrows;
      }
    }
    write(at);
    ++file_.counts.slices;
  }
  void end(std::int64_t at) override {
    event_.clear();
    event_.number(perfetto::event::type, std::uint64_t(Type::slice_end));
    write(at);
  }
  void post(std::int64_t at, const FrameEnd& posted, const Flushed& flushed) override {
    event_.clear();
    event_.number(perfetto::event::type, std::uint64_t(Type::instant));
    const bool delivered = posted.state != FrameEnd::State::undelivered;
    categorize(category_of_posts, delivered ? "post" : "post, undelivered");
    annotate_frame(posted);
    if (flushed.reason != nullptr) {
      annotate_text(Annotation::flushed, flushed.reason);
      annotate(Annotation::age_ns, flushed.age_ns);
    }
    if (posted.number != 0) event_.fixed(perfetto::event::flow_ids, posted.number);
    write(at);
  }
  void mark(std::int64_t at, const Record& record, const std::string& name) override {
    const std::uint64_t uuid = MarkEnd(record.detail) == MarkEnd::instant ? 0 : lane(record, name);
    static constexpr std::array types = {Type::instant, Type::slice_begin, Type::slice_end};
    const Type type = types[record.detail < types.size() ? record.detail : 0];
    if (type == Type::slice_end && uuid == 0) return;  // its begin is lost
    event_.clear();
    event_.number(perfetto::event::type, std::uint64_t(type));
    if (uuid != 0) event_.number(perfetto::event::track_uuid, uuid);
    if (type != Type::slice_end) {
      categorize(std::uint32_t(SliceKind::mark) + 1, name);
      annotate(Annotation::peer, record.peer);
      annotate(Annotation::bytes, record.bytes);
      annotate(Annotation::id, record.sequence);
    }
    write(at);
    file_.counts.slices += type == Type::slice_begin;
  }
  void note(std::int64_t at, const std::string& text) {
    event_.clear();
    event_.number(perfetto::event::type, std::uint64_t(Type::instant));
    event_.text(perfetto::event::name, text);
    write(at);
  }
  /// Begins of marks that have no end.
  void close_lanes(std::int64_t at) {
    for (const auto& [name_and_id, uuid] : busy_) {
      event_.clear();
      event_.number(perfetto::event::type, std::uint64_t(Type::slice_end));
      event_.number(perfetto::event::track_uuid, uuid);
      write(at);
    }
    busy_.clear();
  }

 private:
  /// The track for a mark with a length: such marks overlap, slices of one track do not. 0 for an end without begin.
  std::uint64_t lane(const Record& record, const std::string& name) {
    const auto key = std::pair(name, record.sequence);
    const auto found = busy_.find(key);
    if (MarkEnd(record.detail) == MarkEnd::end) {
      if (found == busy_.end()) return 0;
      const std::uint64_t uuid = found->second;
      busy_.erase(found);
      free_[name].push_back(uuid);
      return uuid;
    }
    std::vector<std::uint64_t>& free = free_[name];
    std::uint64_t uuid = 0;
    if (!free.empty()) {
      uuid = free.back();
      free.pop_back();
    } else {
      uuid = file_.next_lane++;
      file_.add_track(track(uuid, uuid_of_pes + pe_, name));
    }
    busy_.emplace(key, uuid);
    return uuid;
  }

  void categorize(std::uint32_t category, const std::string& name) {
    event_.number(perfetto::event::category_iids, category);
    const auto [found, is_new] = names_.emplace(name, names_.size() + 1);
    if (is_new) intern(perfetto::interned::event_names, found->second, name);
    event_.number(perfetto::event::name_iid, found->second);
  }
  void intern(std::uint32_t table, std::uint64_t iid, const std::string& text) {
    Message entry;
    entry.number(perfetto::interned::iid, iid).text(perfetto::interned::text, text);
    interned_.message(table, entry);
  }
  void annotate(Annotation name, std::uint64_t value) {
    annotation_.clear();
    annotation_.number(perfetto::annotation::name_iid, std::uint64_t(name));
    annotation_.number(perfetto::annotation::uint_value, value);
    event_.message(perfetto::event::debug_annotations, annotation_);
  }
  void annotate_text(Annotation name, const char* value) {
    const auto [found, is_new] = values_.emplace(value, values_.size() + 1);
    if (is_new) intern(perfetto::interned::debug_annotation_string_values, found->second, value);
    annotation_.clear();
    annotation_.number(perfetto::annotation::name_iid, std::uint64_t(name));
    annotation_.number(perfetto::annotation::string_value_iid, found->second);
    event_.message(perfetto::event::debug_annotations, annotation_);
  }
  void annotate_frame(const FrameEnd& end) {
    annotate(Annotation::peer, end.peer);
    annotate(Annotation::bytes, end.bytes);
    annotate(Annotation::messages, end.messages);
    if (!end.is_posted && end.number != 0 && end.time_ns >= end.other_ns)
      annotate(Annotation::latency_ns, std::uint64_t(end.time_ns - end.other_ns));
  }

  void write(std::int64_t at) {
    packet_.clear();
    packet_.signed_number(perfetto::packet::timestamp, at);
    packet_.number(perfetto::packet::trusted_packet_sequence_id, sequence_of_all + 1 + pe_);
    std::uint64_t flags = perfetto::flags::needs_incremental_state;
    if (std::exchange(is_first_, false)) {
      flags |= perfetto::flags::incremental_state_cleared;
      Message event_defaults, defaults;
      event_defaults.number(perfetto::event::track_uuid, uuid_of_pes + pe_);
      defaults.message(perfetto::defaults::track_event_defaults, event_defaults);
      packet_.message(perfetto::packet::trace_packet_defaults, defaults);
      for (std::uint32_t name = 0; name < annotation_names.size(); ++name)
        intern(perfetto::interned::debug_annotation_names, name + 1, annotation_names[name]);
      for (std::uint32_t kind = 0; kind < slice_kinds; ++kind)
        intern(perfetto::interned::event_categories, kind + 1, name_of(SliceKind(kind)));
      intern(perfetto::interned::event_categories, category_of_posts, "post");
    }
    packet_.number(perfetto::packet::sequence_flags, flags);
    if (!interned_.bytes().empty()) packet_.message(perfetto::packet::interned_data, interned_);
    interned_.clear();
    file_.add(packet_.message(perfetto::packet::track_event, event_));
  }

  File& file_;
  const std::size_t pe_;
  Message packet_, event_, annotation_, interned_;
  bool is_first_ = true;
  std::map<std::string, std::uint64_t> names_, values_;
  std::multimap<std::pair<std::string, std::uint32_t>, std::uint64_t> busy_;  // lanes by name and id
  std::map<std::string, std::vector<std::uint64_t>> free_;
};

}  // namespace

PerfettoCounts write_perfetto(const TraceFolder& folder, const std::string& path) {
  File file(path);
  add_clocks(file, folder);
  add_run(file, folder);
  add_processes(file, folder);
  for (std::size_t pe = 0; pe < folder.pes(); ++pe) {
    const model::trace::PeTrace trace = folder.trace(pe);
    if (trace.records.empty()) continue;
    const std::int64_t shift = folder.flows().shift_ns(pe);
    PeSequence sequence(file, pe);
    if (trace.lost != 0)
      sequence.note(trace.records.front().time_ns + shift, fmt::format("{} older records lost", trace.lost));
    slice(trace, folder.flows().of(pe), shift, sequence);
    sequence.close_lanes(trace.records.back().time_ns + shift);
  }
  file.close();
  return file.counts;
}

}  // namespace headway::tools
