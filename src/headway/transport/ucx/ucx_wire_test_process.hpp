// SPDX-License-Identifier: BSD-3-Clause
/// For tests of a plug-in: processes that load it and meet in shared memory.
#pragma once

#include <dlfcn.h>
#include <headway/transport/wire/wire.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::wire {

inline constexpr std::uint32_t processes = 3;
inline constexpr std::size_t blob_bytes = 64 * 1024;
inline constexpr auto patience = std::chrono::seconds(30);

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what); }
inline void require(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

/// Memory that the processes of a run share: their meeting and their failures.
struct Shared {
  std::atomic<std::uint32_t> waiting{0}, round{0};
  std::atomic<bool> failed{false};
  char blobs[processes][blob_bytes];
  char problem[processes][1024];
};

/// One of the processes. All of its waits together end after `patience`.
class Process {
 public:
  Process(Shared& shared, std::uint32_t number, const char* plugin)
      : shared_(&shared), number_(number), plugin_(plugin) {}

  void start() {
    void* const library = dlopen(plugin_, RTLD_NOW);
    if (library == nullptr) fail(dlerror());
    const auto entry = reinterpret_cast<headway_wire_entry>(dlsym(library, HEADWAY_WIRE_ENTRY));
    require(entry != nullptr, "no entry");
    functions_ = entry();
    require(functions_->version == HEADWAY_WIRE_VERSION && functions_->bytes == sizeof(headway_wire_functions),
            "another version");
    const headway_wire_meeting meeting{
        .processes = processes,
        .process = number_,
        .context = this,
        .exchange = [](void* self, const void* mine, std::size_t bytes,
                       void* all) { return static_cast<Process*>(self)->exchange(mine, bytes, all); },
        .abort = [](void*, int status) { _exit(status); }};
    headway_wire_facts facts{};
    char reason[512] = "";
    require(functions_->start(&meeting, &wire_, &facts, reason, sizeof reason) == 0, reason);
  }

  void leave() {
    std::uint64_t arriving = 0;
    int settled = 0;
    while (settled == 0) {
      wait_a_little();
      settled = functions_->settle(wire_, &arriving);
    }
    require(settled == 1, functions_->failure(wire_));
    while (arrived_ < arriving) progress();
    // A process that has settled still moves messages for the others.
    barrier();
    require(functions_->leave(wire_) == 0, "leave failed");
    wire_ = nullptr;
    arrived_ = 0;
  }

  const headway_wire_functions& functions() const { return *functions_; }
  headway_wire* wire() const { return wire_; }
  std::uint32_t number() const { return number_; }
  std::uint32_t right() const { return (number_ + 1) % processes; }
  std::uint32_t left() const { return (number_ + processes - 1) % processes; }

  /// Waits for all processes, and meanwhile moves messages for those that do not wait yet.
  void barrier() {
    wait_for_all([this] { progress(); });
  }
  /// The same after the wire has failed. A process that calls die() counts as waiting.
  void barrier_without_wire() {
    wait_for_all([this] { wait_a_little(); });
  }
  [[noreturn]] void die() {
    ++shared_->waiting;
    _exit(0);
  }

  void progress() {
    headway_wire_event events[16];
    const int count = functions_->progress(wire_, events, 16);
    require(count >= 0, std::string("progress: ") + functions_->failure(wire_));
    for (int i = 0; i < count; ++i) {
      if (events[i].kind == headway_wire_arrived) {
        ++arrived_;
      } else {
        record(events[i].kind, events[i].cookie);
      }
    }
    if (count == 0) wait_a_little();
  }
  std::uint64_t arrived() const { return arrived_; }

  /// Begins an operation with an event of `kind`.
  void begin(std::uint32_t kind, const std::function<int(std::uint64_t cookie)>& operation) {
    const std::uint64_t cookie = kinds_.size();
    kinds_.push_back(kind);
    is_done_.push_back(false);
    ++open_;
    const int result = operation(cookie);
    require(result >= 0, functions_->failure(wire_));
    if (result == 1) record(kind, cookie);
  }
  void get(headway_wire_remote* remote, std::uint64_t offset, void* to, std::size_t bytes) {
    begin(headway_wire_got,
          [&](std::uint64_t cookie) { return functions_->get(wire_, remote, offset, to, bytes, cookie); });
  }
  /// Waits until each operation is done once.
  void finish() {
    while (open_ > 0) progress();
  }

  /// Checks that a call was refused with a reason that contains all `parts`.
  void require_refused(int result, const std::vector<std::string>& parts) {
    require(result < 0, "not refused: " + parts.front());
    const std::string reason = functions_->failure(wire_);
    for (const std::string& part : parts) require(reason.find(part) != reason.npos, "'" + reason + "' lacks " + part);
  }

  std::vector<char> expose(void* memory, std::size_t bytes, headway_wire_region** region) {
    std::vector<char> key(blob_bytes - 1);
    std::size_t key_bytes = 0;
    require(functions_->expose(wire_, memory, bytes, region, key.data(), key.size(), &key_bytes) == 0,
            functions_->failure(wire_));
    key.resize(key_bytes);
    return key;
  }
  headway_wire_remote* reach(std::uint32_t process, const std::vector<char>& key) {
    headway_wire_remote* remote = nullptr;
    require(functions_->reach(wire_, process, key.data(), key.size(), &remote) == 0, functions_->failure(wire_));
    return remote;
  }
  /// The keys of all.
  std::vector<std::vector<char>> share(const std::vector<char>& key) {
    std::memcpy(shared_->blobs[number_], key.data(), key.size());
    std::uint32_t length = std::uint32_t(key.size());
    std::memcpy(shared_->blobs[number_] + blob_bytes - sizeof length, &length, sizeof length);
    barrier();
    std::vector<std::vector<char>> all;
    for (const auto& blob : shared_->blobs) {
      std::memcpy(&length, blob + blob_bytes - sizeof length, sizeof length);
      all.emplace_back(blob, blob + length);
    }
    barrier();
    return all;
  }

 private:
  int exchange(const void* mine, std::size_t bytes, void* all) {
    require(bytes <= blob_bytes, "too much to exchange");
    std::memcpy(shared_->blobs[number_], mine, bytes);
    const auto nothing = [this] { wait_a_little(); };
    wait_for_all(nothing);
    for (std::uint32_t p = 0; p < processes; ++p) {
      std::memcpy(static_cast<char*>(all) + p * bytes, shared_->blobs[p], bytes);
    }
    wait_for_all(nothing);
    return 0;
  }

  void wait_for_all(const std::function<void()>& meanwhile) {
    const std::uint32_t round = shared_->round;
    if (++shared_->waiting == processes) {
      shared_->waiting = 0;
      ++shared_->round;
    }
    while (shared_->round == round) meanwhile();
  }

  void wait_a_little() {
    require(!shared_->failed, "another process failed");
    require(std::chrono::steady_clock::now() < deadline_, "it takes too long");
    sched_yield();
  }

  void record(std::uint32_t kind, std::uint64_t cookie) {
    require(cookie < kinds_.size() && kinds_[cookie] == kind, "an event of an operation that was not begun");
    require(!is_done_[cookie], "an event came twice");
    is_done_[cookie] = true;
    --open_;
  }

  Shared* shared_;
  std::uint32_t number_;
  const char* plugin_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + patience;
  const headway_wire_functions* functions_ = nullptr;
  headway_wire* wire_ = nullptr;
  std::uint64_t arrived_ = 0;
  std::vector<std::uint32_t> kinds_;  // by cookie
  std::vector<bool> is_done_;
  std::size_t open_ = 0;
};

}  // namespace headway::wire
