// SPDX-License-Identifier: BSD-3-Clause
#include "watch_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <set>
#include <utility>

namespace headway::tools {
namespace {

using bench::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> optional_at(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

WatchedPe pe_of_json(const Json& from) {
  WatchedPe pe;
  pe.pe = from.at("pe");
  pe.host = from.value("host", "");
  pe.pid = from.at("pid");
  pe.state = from.at("state");
  if (const auto messages = optional_at<double>(from, "messages_per_s")) {
    pe.rates = Rates{*messages, from.at("handled_per_s"), from.at("frames_per_s"),
                     optional_at<double>(from, "messages_per_frame")};
  }
  pe.waiting = optional_at<double>(from, "waiting");
  pe.handling = optional_at<double>(from, "handling");
  pe.messages = from.at("messages");
  pe.handled = from.at("handled");
  pe.frames = from.at("frames");
  pe.buffer_bytes = from.at("buffer_bytes");
  pe.memory_bytes = from.at("memory_bytes");
  pe.budget_bytes = from.at("budget_bytes");
  pe.spill_bytes = from.at("spill_bytes");
  pe.spilled_frames = from.at("spilled_frames");
  pe.resident_bytes = optional_at<std::uint64_t>(from, "resident_bytes");
  return pe;
}

}  // namespace

std::optional<Rates> rates_between(const report::PeStatistics& before, const report::PeStatistics& after) {
  if (after.time_ns <= before.time_ns || after.handled < before.handled || after.frames < before.frames)
    return std::nullopt;
  const double seconds = 1e-9 * double(after.time_ns - before.time_ns);
  // Forwarded messages in open buffers are not counted as created: the number may fall.
  const double created = double(std::int64_t(after.created - before.created));
  const auto frames = double(after.frames - before.frames);
  Rates rates{std::max(created, 0.0) / seconds, double(after.handled - before.handled) / seconds, frames / seconds, {}};
  if (frames > 0) rates.fill = std::max(created + double(after.forwarded - before.forwarded), 0.0) / frames;
  return rates;
}

Sums sums_of(const View& view) {
  Sums sums;
  double filled = 0, waiting = 0, handling = 0;
  std::size_t sampled = 0;
  std::set<std::pair<std::string, pid_t>> processes;
  for (const WatchedPe& pe : view.pes) {
    if (pe.rates) {
      ++sums.answered;
      sums.rates.messages_per_s += pe.rates->messages_per_s;
      sums.rates.handled_per_s += pe.rates->handled_per_s;
      sums.rates.frames_per_s += pe.rates->frames_per_s;
      filled += pe.rates->fill.value_or(0) * pe.rates->frames_per_s;
    }
    if (pe.waiting) {
      ++sampled;
      waiting += *pe.waiting;
      handling += pe.handling.value_or(0);
    }
    sums.buffer_bytes += pe.buffer_bytes;
    sums.memory_bytes += pe.memory_bytes;
    sums.budget_bytes += pe.budget_bytes;
    sums.spill_bytes += pe.spill_bytes;
    sums.spilled_frames += pe.spilled_frames;
    if (pe.resident_bytes && processes.emplace(pe.host, pe.pid).second) sums.resident_bytes += *pe.resident_bytes;
  }
  if (sums.rates.frames_per_s > 0) sums.rates.fill = filled / sums.rates.frames_per_s;
  if (sampled > 0) {
    sums.waiting = waiting / double(sampled);
    sums.handling = handling / double(sampled);
  }
  return sums;
}

Json to_json(const View& view) {
  Json pes = Json::array();
  for (const WatchedPe& pe : view.pes) {
    Json one;
    one["pe"] = pe.pe;
    if (!pe.host.empty()) one["host"] = pe.host;
    one["pid"] = pe.pid;
    one["state"] = pe.state;
    one["messages_per_s"] = pe.rates ? Json(pe.rates->messages_per_s) : Json();
    one["handled_per_s"] = pe.rates ? Json(pe.rates->handled_per_s) : Json();
    one["frames_per_s"] = pe.rates ? Json(pe.rates->frames_per_s) : Json();
    one["messages_per_frame"] = pe.rates ? or_null(pe.rates->fill) : Json();
    one["waiting"] = or_null(pe.waiting);
    one["handling"] = or_null(pe.handling);
    one["messages"] = pe.messages;
    one["handled"] = pe.handled;
    one["frames"] = pe.frames;
    one["buffer_bytes"] = pe.buffer_bytes;
    one["memory_bytes"] = pe.memory_bytes;
    one["budget_bytes"] = pe.budget_bytes;
    one["spill_bytes"] = pe.spill_bytes;
    one["spilled_frames"] = pe.spilled_frames;
    one["resident_bytes"] = or_null(pe.resident_bytes);
    pes.push_back(std::move(one));
  }
  return {{"program", view.program}, {"seconds", view.seconds}, {"simulated", view.simulated}, {"pes", pes}};
}

View view_of_json(const std::string& text) {
  try {
    const Json all = Json::parse(text);
    View view{all.at("program"), all.at("seconds"), all.at("simulated"), {}};
    for (const Json& pe : all.at("pes")) view.pes.push_back(pe_of_json(pe));
    return view;
  } catch (const Json::exception& error) {
    throw SettingError(fmt::format("its output is no view: {}", error.what()));
  }
}

}  // namespace headway::tools
