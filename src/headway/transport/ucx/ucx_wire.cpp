// The wire over UCX: messages with tags, which carry the channel and the sender, and memory that others put to and get
// from. Processes meet by what start is given, and UCX takes the fastest way that it has between each two. Any thread
// may call it, one at a time.
#include <headway/base/counted.hpp>
#include <headway/transport/wire/ucx_defaults.hpp>
#include <headway/transport/wire/wire.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

using headway::by_number, headway::counted;

// | channel 32 | sender 32 |
enum : std::uint64_t { counts_channel = 2 };  // beside those of the wire: how many messages a process has sent another
constexpr ucp_tag_t channel_mask = ~ucp_tag_t(0) << 32, whole_mask = ~ucp_tag_t(0);
constexpr ucp_tag_t tag_of(std::uint64_t channel, std::uint64_t sender) { return channel << 32 | sender; }
constexpr std::uint32_t sender_of(ucp_tag_t tag) { return std::uint32_t(tag); }

// What UCX moves in one call of progress, lest a flood keep the PE from its handlers.
constexpr int steps_max = 32;

constexpr const char* tag_send = "ucp_tag_send_nbx";

struct Receive {
  std::uint64_t cookie = 0;
  std::uint64_t bytes = 0;  // asked for, then arrived
  std::uint32_t source = 0;
  bool done = false;
  void* request = nullptr;
};

/// A send, put, get or flush that UCX has begun.
struct Operation {
  headway_wire* wire = nullptr;
  std::uint64_t cookie = 0;
  std::uint32_t kind = 0;     // of its event
  std::uint32_t process = 0;  // that it is for
  const char* call = nullptr;
};

struct Done {
  std::uint64_t cookie = 0;
  std::uint32_t kind = 0;
};

/// What expose hands out, before UCX's packed key:
///
///     | magic 8 | check 8 | address 8 | bytes 8 | process 4 | packed_bytes 4 | packed key, packed_bytes
///
/// UCX trusts a packed key, so that nothing that was damaged may come to it. Its numbers lie as its maker has them.
struct Key {
  std::uint64_t magic = 0x79656b2077646568;
  std::uint64_t check = 0;  // of all of it, with 0 here
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t process = 0, packed_bytes = 0;
};
static_assert(sizeof(Key) == 40 && offsetof(Key, check) == 8 && offsetof(Key, address) == 16);
static_assert(offsetof(Key, bytes) == 24 && offsetof(Key, process) == 32 && offsetof(Key, packed_bytes) == 36);

/// FNV-1a, 64 bits.
std::uint64_t check_of(Key key, const char* packed) {
  key.check = 0;
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](const char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3;
  };
  take(reinterpret_cast<const char*>(&key), sizeof key);
  take(packed, key.packed_bytes);
  return hash;
}

}  // namespace

struct headway_wire_region {
  ucp_mem_h memory = nullptr;  // nullptr: of no bytes
};

struct headway_wire_remote {
  std::uint32_t process = 0;
  std::uint64_t address = 0, bytes = 0;
  ucp_rkey_h key = nullptr;  // nullptr: of no bytes
};

struct headway_wire {
  headway_wire_meeting meeting{};
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::vector<ucp_ep_h> endpoints;                   // by process
  std::deque<Receive> frames;                        // oldest first; UCX keeps addresses of them
  std::list<Receive> large;                          // likewise
  std::list<Receive> counts;                         // of the others, while settling
  std::deque<Operation> operations;                  // as many as were ever open at once; UCX keeps addresses of them
  std::vector<Operation*> unused;                    // of these
  std::deque<Done> done;                             // oldest first
  std::unordered_set<headway_wire_region*> regions;  // owned
  std::unordered_set<headway_wire_remote*> remotes;  // owned
  std::vector<std::uint64_t> sent_to, counts_of_others;  // messages, by process
  bool settling = false, leaving = false;
  std::string failure;     // the first; with it the wire has come to its end
  std::string refusal;     // the last
  std::uint32_t lost = 0;  // processes: none
  char library[64] = "";
};

namespace {

int fail(headway_wire& wire, const char* call, ucs_status_t status) {
  wire.failure = std::string(call) + ": " + ucs_status_string(status);
  return -1;
}

/// The first of all failures is the one to tell.
void record_lost(headway_wire& wire, std::uint32_t process, const char* call, ucs_status_t status) {
  if (!wire.failure.empty()) return;
  fail(wire, call, status);
  wire.lost = process;
}

/// What was asked for does not go, and everything else goes on.
int refuse(headway_wire& wire, std::string reason) {
  wire.refusal = std::move(reason);
  return -1;
}
int refuse(headway_wire& wire, const char* call, ucs_status_t status) {
  return refuse(wire, std::string(call) + ": " + ucs_status_string(status));
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
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
  params.estimated_num_eps = wire.meeting.processes;
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config)) return fail(wire, "ucp_config_read", status);
  if (!headway::wire::has_fetching_devices() && std::getenv("UCX_RNDV_THRESH") == nullptr) {
    ucp_config_modify(config, "RNDV_THRESH", headway::wire::ucx_eager_bytes);
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

void on_done(void* request, ucs_status_t status, void* user) {
  Operation& operation = *static_cast<Operation*>(user);
  headway_wire& wire = *operation.wire;
  // Of a message that does not get there on_lost is told.
  const bool is_message = operation.call == tag_send;
  if (status == UCS_OK || is_message) {
    wire.done.push_back({operation.cookie, operation.kind});
  } else if (!wire.leaving) {
    record_lost(wire, operation.process, operation.call, status);
  }
  wire.unused.push_back(&operation);
  ucp_request_free(request);
}

/// Has UCX do `call(parameters)`. Returns as headway_wire_functions::put does.
template <class Call>
int begin(headway_wire& wire, std::uint32_t process, std::uint32_t kind, std::uint64_t cookie, const char* name,
          const Call& call) {
  if (wire.unused.empty()) wire.unused.push_back(&wire.operations.emplace_back());
  Operation* const operation = wire.unused.back();
  wire.unused.pop_back();
  *operation = {&wire, cookie, kind, process, name};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_done;
  param.user_data = operation;
  void* const request = call(param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) return 0;
  wire.unused.push_back(operation);  // UCX calls nobody back
  if (request == nullptr) return 1;
  record_lost(wire, process, name, UCS_PTR_STATUS(request));
  return -1;
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
  for (; count < events_max && !wire->done.empty(); wire->done.pop_front()) {
    events[count++] = {wire->done.front().kind, 0, 0, 0, wire->done.front().cookie, 0};
  }
  return count;
}

int expose(headway_wire* wire, void* memory, std::size_t bytes, headway_wire_region** region, void* key,
           std::size_t key_room, std::size_t* key_bytes) {
  ucp_mem_h mapped = nullptr;
  void* packed = nullptr;
  std::size_t packed_bytes = 0;
  if (bytes > 0) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = bytes;
    if (const auto status = ucp_mem_map(wire->context, &params, &mapped)) return refuse(*wire, "ucp_mem_map", status);
    if (const auto status = ucp_rkey_pack(wire->context, mapped, &packed, &packed_bytes)) {
      ucp_mem_unmap(wire->context, mapped);
      return refuse(*wire, "ucp_rkey_pack", status);
    }
  }
  Key header;
  *key_bytes = sizeof header + packed_bytes;
  const bool fits = *key_bytes <= key_room;
  if (fits) {
    header.address = reinterpret_cast<std::uintptr_t>(memory);
    header.bytes = bytes;
    header.process = wire->meeting.process;
    header.packed_bytes = std::uint32_t(packed_bytes);
    header.check = check_of(header, static_cast<const char*>(packed));
    std::memcpy(key, &header, sizeof header);
    if (packed_bytes > 0) std::memcpy(static_cast<char*>(key) + sizeof header, packed, packed_bytes);
  }
  if (packed != nullptr) ucp_rkey_buffer_release(packed);
  if (!fits) {
    if (mapped != nullptr) ucp_mem_unmap(wire->context, mapped);
    return refuse(*wire, "the key takes " + counted(*key_bytes, "byte") + ", and there is room for " +
                             std::to_string(key_room));
  }
  *region = *wire->regions.insert(new headway_wire_region{mapped}).first;
  return 0;
}

int withdraw(headway_wire* wire, headway_wire_region* region) {
  if (region->memory != nullptr) {
    if (const auto status = ucp_mem_unmap(wire->context, region->memory)) return refuse(*wire, "ucp_mem_unmap", status);
  }
  wire->regions.erase(region);
  delete region;
  return 0;
}

int reach(headway_wire* wire, std::uint32_t process, const void* key, std::size_t key_bytes,
          headway_wire_remote** remote) {
  const std::string title = "the key of process " + std::to_string(process);
  if (process >= wire->meeting.processes)
    return refuse(*wire, title + ": the run has " + counted(wire->meeting.processes, "process"));
  Key header;
  if (key_bytes < sizeof header)
    return refuse(*wire, title + " has " + counted(key_bytes, "byte") + ", less than any key");
  std::memcpy(&header, key, sizeof header);
  const char* const packed = static_cast<const char*>(key) + sizeof header;
  if (header.magic != Key().magic) return refuse(*wire, title + " does not begin as a key does");
  if (header.packed_bytes != key_bytes - sizeof header) {
    return refuse(*wire, title + " has " + counted(key_bytes, "byte") + " instead of " +
                             std::to_string(sizeof header + header.packed_bytes));
  }
  if (header.check != check_of(header, packed)) return refuse(*wire, title + " is damaged");
  if (header.process != process) return refuse(*wire, title + " is one of process " + std::to_string(header.process));
  ucp_rkey_h unpacked = nullptr;
  if (header.bytes > 0) {
    if (const auto status = ucp_ep_rkey_unpack(wire->endpoints[process], packed, &unpacked))
      return refuse(*wire, "ucp_ep_rkey_unpack", status);
  }
  *remote = *wire->remotes.insert(new headway_wire_remote{process, header.address, header.bytes, unpacked}).first;
  return 0;
}

int forget(headway_wire* wire, headway_wire_remote* remote) {
  if (remote->key != nullptr) ucp_rkey_destroy(remote->key);
  wire->remotes.erase(remote);
  delete remote;
  return 0;
}

/// Both are counted without their sum, which may not fit 64 bits.
bool lies_within(headway_wire& wire, const headway_wire_remote& remote, std::uint64_t offset, std::size_t bytes) {
  if (offset <= remote.bytes && bytes <= remote.bytes - offset) return true;
  refuse(wire, counted(bytes, "byte") + " from byte " + std::to_string(offset) + " on " +
                   std::string(by_number(bytes, "is", "are")) + " beyond a region of " + counted(remote.bytes, "byte") +
                   " of process " + std::to_string(remote.process));
  return false;
}

int put(headway_wire* wire, headway_wire_remote* remote, std::uint64_t offset, const void* from, std::size_t bytes,
        std::uint64_t cookie) {
  if (!lies_within(*wire, *remote, offset, bytes)) return -1;
  if (bytes == 0) return 1;
  return begin(*wire, remote->process, headway_wire_sent, cookie, "ucp_put_nbx", [&](const ucp_request_param_t& param) {
    return ucp_put_nbx(wire->endpoints[remote->process], from, bytes, remote->address + offset, remote->key, &param);
  });
}

int get(headway_wire* wire, headway_wire_remote* remote, std::uint64_t offset, void* to, std::size_t bytes,
        std::uint64_t cookie) {
  if (!lies_within(*wire, *remote, offset, bytes)) return -1;
  if (bytes == 0) return 1;
  return begin(*wire, remote->process, headway_wire_got, cookie, "ucp_get_nbx", [&](const ucp_request_param_t& param) {
    return ucp_get_nbx(wire->endpoints[remote->process], to, bytes, remote->address + offset, remote->key, &param);
  });
}

int flush(headway_wire* wire, std::uint32_t process, std::uint64_t cookie) {
  return begin(*wire, process, headway_wire_placed, cookie, "ucp_ep_flush_nbx",
               [&](const ucp_request_param_t& param) { return ucp_ep_flush_nbx(wire->endpoints[process], &param); });
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
  // What was never taken back, once no endpoint has a use for it.
  for (const headway_wire_remote* const remote : wire->remotes) {
    if (remote->key != nullptr) ucp_rkey_destroy(remote->key);
    delete remote;
  }
  for (const headway_wire_region* const region : wire->regions) {
    if (region->memory != nullptr) ucp_mem_unmap(wire->context, region->memory);
    delete region;
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
                                              put,
                                              get,
                                              flush, nullptr};  // eager_bytes, which it raises beyond what is sent

}  // namespace

extern "C" __attribute__((visibility("default"))) const headway_wire_functions* headway_wire_plugin(void) {
  return &functions;
}
