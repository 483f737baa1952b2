// SPDX-License-Identifier: BSD-3-Clause
// Memory that UCX reads for other processes: keys, and gets.
#include <cstdio>
#include <cstring>
#include <headway/base/counted.hpp>
#include <string>

#include "ucx_wire.hpp"

namespace headway::ucx {
namespace {

/// The begin of a key of expose(); UCX's packed key follows:
///
///     | magic 8 | check 8 | address 8 | bytes 8 | process 4 | packed_bytes 4 | packed key, packed_bytes
///
/// UCX does not check a packed key, so the check comes first. Numbers are in the byte order of the key's owner.
struct Key {
  std::uint64_t magic = 0x79656b2077646568;
  std::uint64_t check = 0;  // of the whole key, with 0 here
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

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// Avoids the sum of `offset` and `bytes`, which may not fit 64 bits.
bool lies_within(headway_wire& wire, const headway_wire_remote& remote, std::uint64_t offset, std::size_t bytes) {
  if (offset <= remote.bytes && bytes <= remote.bytes - offset) return true;
  refuse(wire, base::counted(bytes, "byte") + " from byte " + std::to_string(offset) + " on " +
                   std::string(base::by_number(bytes, "is", "are")) + " beyond a region of " +
                   base::counted(remote.bytes, "byte") + " of process " + std::to_string(remote.process));
  return false;
}

}  // namespace

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
    return refuse(*wire, "the key takes " + base::counted(*key_bytes, "byte") + ", and there is room for " +
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
    return refuse(*wire, title + ": the run has " + base::counted(wire->meeting.processes, "process"));
  Key header;
  if (key_bytes < sizeof header)
    return refuse(*wire, title + " has " + base::counted(key_bytes, "byte") + "; a key has at least " +
                             std::to_string(sizeof header));
  std::memcpy(&header, key, sizeof header);
  const char* const packed = static_cast<const char*>(key) + sizeof header;
  if (header.magic != Key().magic)
    return refuse(*wire, title + " begins with " + hex(header.magic) + " instead of " + hex(Key().magic));
  if (header.packed_bytes != key_bytes - sizeof header) {
    return refuse(*wire, title + " has " + base::counted(key_bytes, "byte") + " instead of " +
                             std::to_string(sizeof header + header.packed_bytes));
  }
  if (const std::uint64_t check = check_of(header, packed); header.check != check) {
    return refuse(*wire, title + " is damaged: its check value is " + hex(header.check) + " instead of " + hex(check));
  }
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

int get(headway_wire* wire, headway_wire_remote* remote, std::uint64_t offset, void* to, std::size_t bytes,
        std::uint64_t cookie) {
  if (!lies_within(*wire, *remote, offset, bytes)) return -1;
  if (bytes == 0) return 1;
  return begin(*wire, remote->process, headway_wire_got, cookie, "ucp_get_nbx", [&](const ucp_request_param_t& param) {
    return ucp_get_nbx(wire->endpoints[remote->process], to, bytes, remote->address + offset, remote->key, &param);
  });
}

void free_memory(headway_wire& wire) {
  for (const headway_wire_remote* const remote : wire.remotes) {
    if (remote->key != nullptr) ucp_rkey_destroy(remote->key);
    delete remote;
  }
  for (const headway_wire_region* const region : wire.regions) {
    if (region->memory != nullptr) ucp_mem_unmap(wire.context, region->memory);
    delete region;
  }
}

}  // namespace headway::ucx
