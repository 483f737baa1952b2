// The wire over UCX: messages with tags, which carry the channel and the sender. Processes meet by what start is given,
// and UCX takes the fastest way that it has between each two. Any thread may call it, one at a time.
#include <headway/transport/wire/wire.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace {

// | channel 32 | sender 32 |
enum : std::uint64_t { counts_channel = 2 };  // beside those of the wire: how many messages a process has sent another
constexpr ucp_tag_t channel_mask = ~ucp_tag_t(0) << 32, whole_mask = ~ucp_tag_t(0);
constexpr ucp_tag_t tag_of(std::uint64_t channel, std::uint64_t sender) { return channel << 32 | sender; }
constexpr std::uint32_t sender_of(ucp_tag_t tag) { return std::uint32_t(tag); }

// What UCX moves in one call of progress, lest a flood keep the PE from its handlers.
constexpr int steps_max = 32;

// UCX asks the receiver for room beyond some kilobytes, which takes half of the speed over TCP; here there is room, since
// receives are kept posted. It is right to ask where a device then fetches the message by itself.
constexpr const char* eager_bytes = "512K";

bool has_fetching_devices() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

struct Receive {
  std::uint64_t cookie = 0;
  std::uint64_t bytes = 0;  // asked for, then arrived
  std::uint32_t source = 0;
  bool done = false;
  void* request = nullptr;
};

}  // namespace

struct headway_wire {
  headway_wire_meeting meeting{};
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::vector<ucp_ep_h> endpoints;                       // by process
  std::deque<Receive> frames;                            // oldest first; UCX keeps addresses of them
  std::list<Receive> large;                              // likewise
  std::list<Receive> counts;                             // of the others, while settling
  std::deque<std::uint64_t> sent;                        // cookies of sends that have become done
  std::vector<std::uint64_t> sent_to, counts_of_others;  // messages, by process
  bool settling = false, leaving = false;
  std::string failure;
  std::uint32_t lost = 0;  // processes: none
  char library[64] = "";
};

namespace {

int fail(headway_wire& wire, const char* call, ucs_status_t status) {
  wire.failure = std::string(call) + ": " + ucs_status_string(status);
  return -1;
}

/// The first of all failures is the one to tell.
void note_failure(headway_wire& wire, const char* call, ucs_status_t status) {
  if (wire.failure.empty()) fail(wire, call, status);
}

/// A process that has died, or that the network no longer reaches.
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
  params.features = UCP_FEATURE_TAG;
  params.estimated_num_eps = wire.meeting.processes;
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config)) return fail(wire, "ucp_config_read", status);
  if (!has_fetching_devices() && std::getenv("UCX_RNDV_THRESH") == nullptr) {
    ucp_config_modify(config, "RNDV_THRESH", eager_bytes);
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

/// What tells a host from another, and a host from what it was before it started anew.
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

/// Tells all the others where this process is, and reaches for them.
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
    wire.failure = "the processes did not meet";
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
    // Who has started processes of this host sees them end; UCX would have to do without shared memory for it.
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
  // What is there already is reported like all else.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = &receive;
  void* const request = ucp_tag_recv_nbx(wire.worker, memory, bytes, tag, mask, &param);
  if (UCS_PTR_IS_ERR(request)) return fail(wire, "ucp_tag_recv_nbx", UCS_PTR_STATUS(request));
  if (!receive.done) receive.request = request;
  return 0;
}

// A send's callback needs the wire and the cookie.
struct OpenSend {
  headway_wire* wire;
  std::uint64_t cookie;
};
void on_open_sent(void* request, ucs_status_t, void* user) {
  const std::unique_ptr<OpenSend> send(static_cast<OpenSend*>(user));
  send->wire->sent.push_back(send->cookie);
  ucp_request_free(request);
}

int send(headway_wire* wire, std::uint32_t target, std::uint32_t channel, const void* message, std::size_t bytes,
         std::uint64_t cookie) {
  auto open = std::make_unique<OpenSend>(OpenSend{wire, cookie});
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_open_sent;
  param.user_data = open.get();
  void* const request =
      ucp_tag_send_nbx(wire->endpoints[target], message, bytes, tag_of(channel, wire->meeting.process), &param);
  if (UCS_PTR_IS_ERR(request)) {
    if (wire->failure.empty()) wire->lost = target;
    note_failure(*wire, "ucp_tag_send_nbx", UCS_PTR_STATUS(request));
    return -1;
  }
  ++wire->sent_to[target];
  if (request == nullptr) return 1;
  static_cast<void>(open.release());
  return 0;
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

/// Messages match receives in the order of these, but one may be complete before an earlier one is.
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
  for (; count < events_max && !wire->sent.empty(); wire->sent.pop_front()) {
    events[count++] = {headway_wire_sent, 0, 0, 0, wire->sent.front(), 0};
  }
  return count;
}

/// Tells each how much is on its way to it, and hears the same.
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
  wire->failure = "the others are gone, or can no longer be reached";
  return -1;
}

void end(headway_wire* wire) {
  const std::unique_ptr<headway_wire> owner(wire);
  wire->leaving = true;
  for (Receive& receive : wire->frames) {
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
  if (wire->worker != nullptr) ucp_worker_destroy(wire->worker);
  if (wire->context != nullptr) ucp_cleanup(wire->context);
}

/// Nobody goes before all have what was sent to them.
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

const char* failure(headway_wire* wire) { return wire->failure.c_str(); }

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
                                              nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const headway_wire_functions* headway_wire_plugin(void) {
  return &functions;
}
