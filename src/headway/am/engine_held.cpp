// SPDX-License-Identifier: BSD-3-Clause
// Arrived frames that the PE cannot handle yet.
#include <algorithm>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/transport/observer.hpp>
#include <utility>

namespace headway::am {

bool Engine::has_paused(ScopeId scope) const {
  if (paused_frames_ == 0) return false;
  bool any = false;
  handlers_.for_each([&](std::uint32_t, const Entry& entry) {
    any |= std::ranges::any_of(entry.paused, [scope](const std::vector<Held>& paused) {
      return std::ranges::any_of(paused, [scope](const Held& held) { return held.is_in(scope); });
    });
  });
  return any;
}

bool Engine::held_back(ScopeId epoch) const {
  return std::ranges::any_of(extensions_, [epoch](const auto& extension) { return extension->holds_back(epoch); });
}

Calls Engine::calls(ScopeId scope) const {
  Calls calls;
  for (const auto& extension : extensions_) calls.add(extension->calls(scope));
  return calls;
}

void Engine::set_calls_made(std::uint64_t called_max) {
  for (const auto& extension : extensions_) extension->set_calls_made(called_max);
}

bool Engine::resume_paused() {
  const transport::Working working(transport::observer_of(*endpoint_), transport::Observer::Work::communication);
  bool any = false;
  handlers_.for_each([&](std::uint32_t, Entry& entry) {
    for (std::vector<Held>& paused : entry.paused) {
      if (!paused.empty()) any |= resume_paused(*entry.handler, paused);
    }
  });
  return any;
}

bool Engine::resume_paused(FrameHandler& handler, std::vector<Held>& paused) {
  bool any = false;
  std::size_t finished = 0;
  for (; finished < paused.size(); ++finished) {
    const std::uint32_t before = paused[finished].next;
    const bool done = run_handler(handler, paused[finished]) == FrameHandler::Result::done;
    any |= done || paused[finished].next != before;
    if (!done) break;
    endpoint_->release(paused[finished].arrival);
  }
  paused.erase(paused.begin(), paused.begin() + std::ptrdiff_t(finished));
  paused_frames_ -= finished;
  return any;
}

/// Keeps a frame. A frame sent by value is valid only until the next poll, so it is copied.
void Engine::hold(std::vector<Held>& frames, Held held) {
  if (held.arrival.owned == 0 && held.memory == nullptr) copy_to_own_memory(held);
  frames.push_back(std::move(held));
}

/// Keeps a frame of the next phase or of an epoch that has not begun on this PE. The latter may wait long, so it is
/// copied: this PE may wait for a sender that needs the memory before it begins that epoch.
void Engine::hold_until_begun(Held held) {
  if (scopes_.awaits_epoch(held.arrival.header.scope) && held.memory == nullptr) copy_to_own_memory(held);
  hold(later_, std::move(held));
}

void Engine::copy_to_own_memory(Held& held) {
  transport::Arrival& arrival = held.arrival;
  const std::size_t payload_bytes = arrival.header.payload_bytes, tail_bytes = arrival.header.tail_bytes;
  held.memory = store_.hold(arrival.header.source, transport::frame_overhead + payload_bytes + tail_bytes);
  std::byte* const payload = held.memory.get() + transport::frame_overhead;
  std::byte* const tail = payload + payload_bytes;
  if (payload_bytes != 0) std::memcpy(payload, arrival.payload, payload_bytes);
  if (tail_bytes != 0) std::memcpy(tail, arrival.tail_end - tail_bytes, tail_bytes);
  endpoint_->release(arrival);
  arrival.owned = 0;
  arrival.payload = payload;
  arrival.tail_end = tail + tail_bytes;
}

void Engine::replay(std::vector<Held>& frames) {
  const transport::Working working(transport::observer_of(*endpoint_), transport::Observer::Work::handlers);
  for (Held& held : std::exchange(frames, {})) dispatch_messages(std::move(held));
}

/// Dispatches the frames that may be handled now; the others stay, in order. Returns whether there were any.
bool Engine::replay_later() {
  const transport::Working working(transport::observer_of(*endpoint_), transport::Observer::Work::handlers);
  bool any = false;
  for (Held& held : std::exchange(later_, {})) {
    if (scopes_.takes(held.arrival.header.scope)) {
      dispatch_messages(std::move(held));
      any = true;
    } else {
      hold_until_begun(std::move(held));
    }
  }
  return any;
}

}  // namespace headway::am
