// SPDX-License-Identifier: BSD-3-Clause
// The wire over UCX. A message's tag carries its channel and its sender. Processes exchange their addresses in the
// meeting that start() is given; UCX chooses the transport between each two. One thread at a time calls it.
#include "ucx_wire.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/transport/wire/ucx_defaults.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headway::ucx {
namespace {

// | channel 32 | sender 32 |
enum : std::uint64_t { counts_channel = 2 };  // after the wire's channels: how many messages a process has sent another
constexpr ucp_tag_t channel_mask = ~ucp_tag_t(0) << 32, whole_mask = ~ucp_tag_t(0);
constexpr ucp_tag_t tag_of(std::uint64_t channel, std::uint64_t sender) { return channel << 32 | sender; }
constexpr std::uint32_t sender_of(ucp_tag_t tag) { return std::uint32_t(tag); }

// Calls of ucp_worker_progress in one call of progress: a flood of messages must not keep the PE from its handlers.
constexpr int steps_max = 32;

constexpr const char* tag_send = "ucp_tag_send_nbx";

}  // namespace

int fail(headway_wire& wire, const char* call, ucs_status_t status) {
  wire.failure = std::string(call) + ": " + ucs_status_string(status);
  return -1;
}

void record_lost(headway_wire& wire, std::uint32_t process, const char* call, ucs_status_t status) {
  if (!wire.failure.empty()) return;
  fail(wire, call, status);
  wire.lost = process;
}

int refuse(headway_wire& wire, std::string reason) {
  wire.refusal = std::move(reason);
  return -1;
}
int refuse(headway_wire& wire, const char* call, ucs_status_t status) {
  return refuse(wire, std::string(call) + ": " + ucs_status_string(status));
}

void on_done(void* request, ucs_status_t status, void* user) {
  Operation& operation = *static_cast<Operation*>(user);
  headway_wire& wire = *operation.wire;
  // UCX reports a message that does not arrive to on_lost.
  const bool is_message = operation.call == tag_send;
  if (status == UCS_OK || is_message) {
    wire.done.push_back({operation.cookie, operation.kind});
  } else if (!wire.leaving) {
    record_lost(wire, operation.process, operation.call, status);
  }
  wire.unused.push_back(&operation);
  ucp_request_free(request);
}

namespace {

/// UCX calls it when a process has died or the network no longer reaches it.
void on_lost(void* argument, ucp_ep_h endpoint, ucs_status_t status) {
  headway_wire& wire = *static_cast<headway_wire*>(argument);
  if (wire.leaving || !wire.failure.empty()) return;
  for (std::size_t process = 0; process < wire.endpoints.size(); ++process) {
    if (wire.endpoints[process] != endpoint) continue;
    wire.failure = ucs_status_string(status);
    wire.lost = std::uint32_t(process);
  }
}

int start_context(headway_wire& wire) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
  params.estimated_num_eps = wire.meeting.processes;
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config)) return fail(wire, "ucp_config_read", status);
  if (!wire::has_fetching_devices() && std::getenv("UCX_RNDV_THRESH") == nullptr) {
    ucp_config_modify(config, "RNDV_THRESH", wire::ucx_eager_bytes);
  }
  const auto started = ucp_init(&params, config, &wire.context);
  ucp_config_release(config);
  if (started != UCS_OK) return fail(wire, "ucp_init", started);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const auto status = ucp_worker_create(wire.context, &worker, &wire.worker))
    return fail(wire, "ucp_worker_create", status);
  return 0;
}

/// Identifies a host; the boot ID differs after each restart.
struct Host {
  char name[256] = "", boot[64] = "";
};
Host this_host() {
  Host host;
  gethostname(host.name, sizeof host.name - 1);
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(host.boot, sizeof host.boot, file) == nullptr) host.boot[0] = 0;
    std::fclose(file);
  }
  return host;
}

/// Exchanges addresses with all processes, and makes an endpoint for each.
int connect(headway_wire& wire) {
  // | host | address |
  const Host host = this_host();
  ucp_address_t* mine = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(wire.worker, &mine, &bytes))
    return fail(wire, "ucp_worker_get_address", status);
  const std::size_t processes = wire.meeting.processes;
  const std::uint64_t length = sizeof host + bytes;
  std::vector<std::uint64_t> lengths(processes);
  const auto exchange = [&](const void* own, std::size_t own_bytes, void* all) {
    if (wire.meeting.exchange(wire.meeting.context, own, own_bytes, all) == 0) return 0;
    wire.failure = "the processes could not exchange their addresses";
    ucp_worker_release_address(wire.worker, mine);
    return -1;
  };
  if (exchange(&length, sizeof length, lengths.data()) != 0) return -1;
  std::uint64_t longest = 0;
  for (const std::uint64_t one : lengths) longest = one > longest ? one : longest;
  std::vector<char> own(longest), all(longest * processes);
  std::memcpy(own.data(), &host, sizeof host);
  std::memcpy(own.data() + sizeof host, mine, bytes);
  if (exchange(own.data(), longest, all.data()) != 0) return -1;
  ucp_worker_release_address(wire.worker, mine);
  wire.endpoints.resize(processes);
  for (std::size_t process = 0; process < processes; ++process) {
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    const char* const other = all.data() + process * longest;
    params.address = reinterpret_cast<const ucp_address_t*>(other + sizeof host);
    // The supervisor sees a process of its host end. UCX cannot use shared memory in the mode that reports it.
    params.err_mode =
        std::memcmp(other, &host, sizeof host) == 0 ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_lost, &wire};
    if (const auto status = ucp_ep_create(wire.worker, &params, &wire.endpoints[process])) {
      wire.failure = "process " + std::to_string(process) + " cannot be reached: " + ucs_status_string(status);
      return -1;
    }
  }
  return 0;
}

void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user) {
  Receive& receive = *static_cast<Receive*>(user);
  receive.done = status == UCS_OK;
  if (receive.done) {
    receive.bytes = info->length;
    receive.source = sender_of(info->sender_tag);
  }
  receive.request = nullptr;
  ucp_request_free(request);
}

int post(headway_wire& wire, Receive& receive, void* memory, std::size_t bytes, ucp_tag_t tag, ucp_tag_t mask) {
  ucp_request_param_t param{};
  // A message that is there already is also reported by the callback.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = &receive;
  void* const request = ucp_tag_recv_nbx(wire.worker, memory, bytes, tag, mask, &param);
  if (UCS_PTR_IS_ERR(request)) return fail(wire, "ucp_tag_recv_nbx", UCS_PTR_STATUS(request));
  if (!receive.done) receive.request = request;
  return 0;
}

int send(headway_wire* wire, std::uint32_t target, std::uint32_t channel, const void* message, std::size_t bytes,
         std::uint64_t cookie) {
  const int result = begin(*wire, target, headway_wire_sent, cookie, tag_send, [&](const ucp_request_param_t& param) {
    return ucp_tag_send_nbx(wire->endpoints[target], message, bytes, tag_of(channel, wire->meeting.process), &param);
  });
  if (result >= 0) ++wire->sent_to[target];
  return result;
}

int receive(headway_wire* wire, std::uint32_t channel, std::uint32_t source, void* memory, std::size_t bytes,
            std::uint64_t cookie) {
  const bool is_large = channel == headway_wire_large;
  Receive& receive = is_large ? wire->large.emplace_back() : wire->frames.emplace_back();
  receive.cookie = cookie;
  receive.bytes = bytes;
  return post(*wire, receive, memory, bytes, tag_of(channel, is_large ? source : 0),
              is_large ? whole_mask : channel_mask);
}

/// Messages match receives in the order of the receives, but a later receive may be complete first. Reports in order.
int take_frames(headway_wire& wire, headway_wire_event* events, int events_max) {
  int count = 0;
  for (; count < events_max && !wire.frames.empty() && wire.frames.front().done; wire.frames.pop_front()) {
    const Receive& receive = wire.frames.front();
    events[count++] = {headway_wire_arrived, receive.source, headway_wire_frames, 0, receive.cookie, receive.bytes};
  }
  return count;
}

int take_large(headway_wire& wire, headway_wire_event* events, int events_max) {
  int count = 0;
  for (auto receive = wire.large.begin(); count < events_max && receive != wire.large.end();) {
    if (!receive->done) {
      ++receive;
      continue;
    }
    events[count++] = {headway_wire_arrived, receive->source, headway_wire_large, 0, receive->cookie, receive->bytes};
    receive = wire.large.erase(receive);
  }
  return count;
}

int move(headway_wire& wire) {
  for (int steps = 0; steps < steps_max && ucp_worker_progress(wire.worker) != 0; ++steps) {
  }
  return wire.failure.empty() ? 0 : -1;
}

int progress(headway_wire* wire, headway_wire_event* events, int events_max) {
  if (move(*wire) != 0) return -1;
  int count = take_frames(*wire, events, events_max);
  count += take_large(*wire, events + count, events_max - count);
  for (; count < events_max && !wire->done.empty(); wire->done.pop_front()) {
    events[count++] = {wire->done.front().kind, 0, 0, 0, wire->done.front().cookie, 0};
  }
  return count;
}

/// Tells each process how many messages this one has sent to it, and posts receives for the same numbers.
int begin_to_settle(headway_wire& wire) {
  wire.settling = true;
  const std::size_t self = wire.meeting.process;
  wire.counts_of_others.assign(wire.meeting.processes, 0);
  wire.counts_of_others[self] = wire.sent_to[self];
  for (std::size_t process = 0; process < wire.meeting.processes; ++process) {
    if (process == self) continue;
    if (post(wire, wire.counts.emplace_back(), &wire.counts_of_others[process], sizeof(std::uint64_t),
             tag_of(counts_channel, process), whole_mask) != 0)
      return -1;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.send = [](void* request, ucs_status_t, void*) { ucp_request_free(request); };
    void* const request = ucp_tag_send_nbx(wire.endpoints[process], &wire.sent_to[process], sizeof(std::uint64_t),
                                           tag_of(counts_channel, self), &param);
    if (UCS_PTR_IS_ERR(request)) return fail(wire, "ucp_tag_send_nbx", UCS_PTR_STATUS(request));
  }
  return 0;
}

int settle(headway_wire* wire, std::uint64_t* arriving) {
  if (!wire->settling && begin_to_settle(*wire) != 0) return -1;
  if (move(*wire) != 0) return -1;
  for (const Receive& count : wire->counts) {
    if (!count.done) return 0;
  }
  *arriving = 0;
  for (const std::uint64_t count : wire->counts_of_others) *arriving += count;
  return 1;
}

int exchange(headway_wire* wire, const void* mine, std::size_t bytes, void* all) {
  if (wire->meeting.exchange(wire->meeting.context, mine, bytes, all) == 0) return 0;
  wire->failure = "another process has ended or cannot be reached";
  return -1;
}

void end(headway_wire* wire) {
  const std::unique_ptr<headway_wire> owner(wire);
  wire->leaving = true;
  for (const Receive& receive : wire->frames) {
    if (receive.request != nullptr) ucp_request_cancel(wire->worker, receive.request);
  }
  for (const ucp_ep_h endpoint : wire->endpoints) {
    if (endpoint == nullptr) continue;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_ERR(request) || request == nullptr) continue;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(wire->worker);
    ucp_request_free(request);
  }
  free_memory(*wire);  // UCX still uses it until the endpoints are closed
  if (wire->worker != nullptr) ucp_worker_destroy(wire->worker);
  if (wire->context != nullptr) ucp_cleanup(wire->context);
}

/// Waits until all processes have received their messages.
int leave(headway_wire* wire) {
  const std::uint8_t here = 1;
  std::vector<std::uint8_t> all(wire->meeting.processes);
  const int result = exchange(wire, &here, sizeof here, all.data());
  if (result == 0) end(wire);
  return result;
}

int start(const headway_wire_meeting* meeting, headway_wire** result, headway_wire_facts* facts, char* reason,
          std::size_t reason_bytes) {
  auto* const wire = new headway_wire;
  wire->meeting = *meeting;
  wire->sent_to.assign(meeting->processes, 0);
  wire->lost = meeting->processes;
  if (start_context(*wire) != 0 || connect(*wire) != 0) {
    std::snprintf(reason, reason_bytes, "%s", wire->failure.c_str());
    end(wire);
    return -1;
  }
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  std::snprintf(wire->library, sizeof wire->library, "UCX %u.%u.%u", major, minor, release);
  facts->processes = meeting->processes;
  facts->process = meeting->process;
  facts->any_thread = 1;
  facts->was_there = 0;
  facts->library = wire->library;
  *result = wire;
  return 0;
}

void abort(headway_wire* wire, int status) { wire->meeting.abort(wire->meeting.context, status); }

const char* failure(headway_wire* wire) {
  return wire->failure.empty() ? wire->refusal.c_str() : wire->failure.c_str();
}

std::uint32_t lost(headway_wire* wire) { return wire->lost; }

constexpr headway_wire_functions functions = {HEADWAY_WIRE_VERSION,
                                              sizeof(headway_wire_functions),
                                              "ucx",
                                              1,
                                              start,
                                              exchange,
                                              send,
                                              receive,
                                              progress,
                                              settle,
                                              leave,
                                              abort,
                                              failure,
                                              lost,
                                              nullptr,
                                              expose,
                                              withdraw,
                                              reach,
                                              forget,
                                              get,
                                              nullptr};  // eager_bytes: larger than any frame of the wire

}  // namespace
}  // namespace headway::ucx

extern "C" __attribute__((visibility("default"))) const headway_wire_functions* headway_wire_plugin(void) {
  return &headway::ucx::functions;
}
