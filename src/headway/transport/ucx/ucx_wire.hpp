// SPDX-License-Identifier: BSD-3-Clause
/// State of the plug-in for UCX, which its source files share.
#pragma once

#include <headway/transport/wire/wire.h>
#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <unordered_set>
#include <vector>

namespace headway::ucx {

struct Receive {
  std::uint64_t cookie = 0;
  std::uint64_t bytes = 0;  // first of the memory, then of the message
  std::uint32_t source = 0;
  bool done = false;
  void* request = nullptr;
};

/// A send or get that UCX has begun.
struct Operation {
  headway_wire* wire = nullptr;
  std::uint64_t cookie = 0;
  std::uint32_t kind = 0;     // of its event
  std::uint32_t process = 0;  // the other process
  const char* call = nullptr;
};

struct Done {
  std::uint64_t cookie = 0;
  std::uint32_t kind = 0;
};

}  // namespace headway::ucx

struct headway_wire_region {
  ucp_mem_h memory = nullptr;  // nullptr: a region of 0 bytes
};

struct headway_wire_remote {
  std::uint32_t process = 0;
  std::uint64_t address = 0, bytes = 0;
  ucp_rkey_h key = nullptr;  // nullptr: a region of 0 bytes
};

struct headway_wire {
  headway_wire_meeting meeting{};
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::vector<ucp_ep_h> endpoints;                       // by process
  std::deque<headway::ucx::Receive> frames;              // oldest first; UCX keeps addresses of them
  std::list<headway::ucx::Receive> large;                // UCX keeps addresses of them
  std::list<headway::ucx::Receive> counts;               // of the other processes, while settling
  std::deque<headway::ucx::Operation> operations;        // UCX keeps addresses of them; never shrinks
  std::vector<headway::ucx::Operation*> unused;          // of these
  std::deque<headway::ucx::Done> done;                   // oldest first
  std::unordered_set<headway_wire_region*> regions;      // owned
  std::unordered_set<headway_wire_remote*> remotes;      // owned
  std::vector<std::uint64_t> sent_to, counts_of_others;  // messages, by process
  bool settling = false, leaving = false;
  std::string failure;     // the first one, which ends the wire
  std::string refusal;     // the last one
  std::uint32_t lost = 0;  // the lost process; number of processes: none
  char library[64] = "";
};

namespace headway::ucx {

/// Records a failure that ends the wire. Returns -1.
int fail(headway_wire& wire, const char* call, ucs_status_t status);

/// Records that a call failed because `process` is lost. Keeps the first failure.
void record_lost(headway_wire& wire, std::uint32_t process, const char* call, ucs_status_t status);

/// Records why one call is refused; the wire goes on. Returns -1.
int refuse(headway_wire& wire, std::string reason);
int refuse(headway_wire& wire, const char* call, ucs_status_t status);

void on_done(void* request, ucs_status_t status, void* user);

/// Starts `call(parameters)` of UCX. Returns 1 if it is done at once, 0 if progress will report it, -1 on failure.
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
  wire.unused.push_back(operation);  // UCX does not call on_done
  if (request == nullptr) return 1;
  record_lost(wire, process, name, UCS_PTR_STATUS(request));
  return -1;
}

// Functions of headway_wire_functions with the same names.
int expose(headway_wire* wire, void* memory, std::size_t bytes, headway_wire_region** region, void* key,
           std::size_t key_room, std::size_t* key_bytes);
int withdraw(headway_wire* wire, headway_wire_region* region);
int reach(headway_wire* wire, std::uint32_t process, const void* key, std::size_t key_bytes,
          headway_wire_remote** remote);
int forget(headway_wire* wire, headway_wire_remote* remote);
int get(headway_wire* wire, headway_wire_remote* remote, std::uint64_t offset, void* to, std::size_t bytes,
        std::uint64_t cookie);

/// Frees all regions and remotes that are left. Only after the endpoints are closed.
void free_memory(headway_wire& wire);

}  // namespace headway::ucx
