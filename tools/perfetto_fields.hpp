// SPDX-License-Identifier: BSD-3-Clause
/// Numbers of the fields of Perfetto's messages that we write, by the names that protos/perfetto/trace gives them.
#pragma once

#include <cstdint>

namespace headway::tools::perfetto {

namespace trace {
enum : std::uint32_t { packet = 1 };
}
namespace packet {
enum : std::uint32_t {
  clock_snapshot = 6,
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  trace_packet_defaults = 59,
  track_descriptor = 60,
};
}
namespace flags {
enum : std::uint32_t { incremental_state_cleared = 1, needs_incremental_state = 2 };
}
namespace defaults {
enum : std::uint32_t { track_event_defaults = 11 };
}
namespace event {
enum : std::uint32_t {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  name = 23,
  double_counter_value = 44,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum class Type : std::uint32_t { slice_begin = 1, slice_end, instant, counter };
}  // namespace event
namespace annotation {
enum : std::uint32_t {
  name_iid = 1,
  uint_value = 3,
  int_value = 4,
  string_value = 6,
  name = 10,
  string_value_iid = 17,
};
}
namespace interned {
enum : std::uint32_t {
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3,
  debug_annotation_string_values = 29,
};
enum : std::uint32_t { iid = 1, text = 2 };
}  // namespace interned
namespace track {
enum : std::uint32_t {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
  sibling_order_rank = 12,
};
}
namespace process {
enum : std::uint32_t { pid = 1, process_name = 6 };
}
namespace thread {
enum : std::uint32_t { pid = 1, tid = 2, thread_name = 5 };
}
namespace counter {
enum : std::uint32_t { unit = 3, unit_name = 6 };
enum class Unit : std::uint32_t { count = 2, bytes = 3 };
}  // namespace counter
namespace clock {
enum : std::uint32_t { clocks = 1, primary_trace_clock = 2 };
enum : std::uint32_t { clock_id = 1, timestamp = 2 };
enum class Id : std::uint32_t { realtime = 1, boottime = 6 };
}  // namespace clock

}  // namespace headway::tools::perfetto
