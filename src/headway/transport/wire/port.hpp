// SPDX-License-Identifier: BSD-3-Clause
/// One process's end of the wire: sends and receives the frames of its PEs, and bounds the memory that both take.
#pragma once

#include <headway/transport/wire/wire.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <headway/base/bytes.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/local/segment.hpp>
#include <headway/transport/services.hpp>
#include <headway/transport/wire/credit.hpp>
#include <headway/transport/wire/message.hpp>
#include <headway/transport/wire/receive_memory.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace headway::wire {

inline constexpr std::size_t default_posted_bytes = 256_KiB;

struct PortOptions {
  const headway_wire_functions* functions = nullptr;
  headway_wire* wire = nullptr;
  std::size_t process = 0, processes = 1;
  std::size_t pes = 1, pes_per_process = 1;         // of the run
  std::size_t credit_bytes = 0;                     // the same in every process: credit_for()
  std::size_t posted_bytes = default_posted_bytes;  // the same in every process: longer frames are announced
  std::size_t posted = 2;                           // posted receives: posted_for()
  std::size_t eager_bytes = 0;                      // the same in every process: headway_wire_functions::eager_bytes
  std::size_t sends_max = 512;                      // sends that are not done
  std::vector<std::string> hosts = {};              // names by process; empty if there is one host
  bool driven = false;                              // a CommunicationThread drives the wire
  bool pools = false;                               // every PE of the run has a pool of pool_bytes_min or more
};

/// The least pool for users of Services. Half of a pool is for common allocations of all PEs.
inline constexpr std::size_t pool_bytes_min = 256_MiB;

/// Credit of one pair of PEs in bytes: an equal share of two budgets, but enough for some frames.
std::size_t credit_for(std::size_t budget_bytes, std::size_t pes);

/// Number of posted receives: about as many as processes may send at once, because the library copies a message without
/// a receive once more; but few, so that their memory stays in the cache.
std::size_t posted_for(std::size_t processes);

/// Any thread of the process may call it. Frames to send lie in the segment, where their PEs have claimed them, and
/// return there as on the local transport.
class Port : public transport::Services {
 public:
  /// True after a call of the wire has failed because a process was lost.
  bool has_lost() const { return has_lost_.load(std::memory_order_relaxed); }

  struct Service {
    std::size_t process;
    std::vector<std::byte> bytes;
  };
  struct Counts {
    std::uint64_t frames_sent = 0, frames_received = 0, bytes_sent = 0, announced = 0, credits_sent = 0, reads = 0;
  };

  /// The segment outlives the port. The process's first PE is number `first_in_segment` of the segment.
  Port(const PortOptions& options, local::Segment& segment, std::size_t first_in_segment);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() override;

  std::size_t pes() const { return options_.pes; }
  std::size_t pes_per_process() const { return options_.pes_per_process; }
  std::size_t first_pe() const { return options_.process * options_.pes_per_process; }
  /// Largest frame that fits a posted receive and waits for no answer of the receiver, less the library's header.
  std::size_t eager_bytes() const {
    const std::size_t posted = options_.posted_bytes, eager = options_.eager_bytes;
    return (eager == 0 ? posted : std::clamp(eager, 2 * library_bytes, posted)) - library_bytes;
  }

  /// As Endpoint::try_post(), for PE `source` of this process to a target in another process.
  [[nodiscard]] transport::Endpoint::Posted try_post(std::size_t source, std::size_t target, transport::Frame* frame,
                                                     const std::byte* tail_end, bool claimed);

  /// Moves messages, unless another thread does so now. True if any moved. Throws SystemError.
  bool progress();
  /// The same, for the helper thread: polls() does not count it.
  bool help() { return move(); }
  /// Calls of progress(), about.
  std::uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }

  /// True if a thread moves frames while the PEs compute.
  bool is_driven() const { return options_.driven; }

  /// Makes the PEs' next progress() throw `failure`, which another thread's progress() has thrown.
  void fail(std::exception_ptr failure);

  /// Waits in the wire until a message may have arrived, at most `ns_max`. False, at once, if the wire cannot wait.
  bool wait(std::int64_t ns_max);

  /// True if frames have arrived for PE `pe` of this process, or reads are done. take_arrived() takes both: it appends
  /// the frames to `blocks` in their order, and returns the functions to call for the reads.
  bool has_arrived(std::size_t pe) const { return inboxes_[pe].count.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::vector<std::function<void()>> take_arrived(std::size_t pe, std::deque<Block*>& blocks);
  void release(std::size_t pe, Block* block);

  /// As in NetworkMemory. read() is for PE `reader` of this process.
  bool reads_memory() const { return options_.functions->get != nullptr; }
  [[nodiscard]] transport::ExposedMemory* expose(std::span<const std::byte> memory, std::vector<std::byte>& key);
  void withdraw(transport::ExposedMemory* exposed);
  [[nodiscard]] bool read(std::size_t reader, std::size_t pe, std::span<const std::byte> key, std::byte* to,
                          std::size_t bytes, std::function<void()> done);

  /// Sends a service message: in no order, without credit, at most service_bytes_max() long. Only few are in flight.
  void send_service(std::size_t process, std::span<const std::byte> bytes) { send_service(process, bytes, of_watch); }
  std::vector<Service> take_services();
  std::size_t service_bytes_max() const { return options_.posted_bytes - transport::frame_overhead; }

  // Services
  void send(std::size_t process, std::span<const std::byte> bytes) override { send_service(process, bytes, of_layers); }
  void set_take(Take take) override;
  void wake_host() override;
  bool has_pools() const { return options_.pools; }

  /// Collective, after the PEs of this process have ended: returns when all messages to and from this process have
  /// arrived. Drops unread frames.
  void close();

  Counts counts() const { return counts_; }
  std::size_t receive_bytes_peak() const { return memory_.bytes_peak(); }
  const CreditTaken::Terms& terms() const { return terms_; }

 private:
  mutable std::atomic<bool> has_lost_{false};
  static constexpr std::size_t slot_bytes =
      transport::frame_overhead + transport::by_value_bytes_most;  // a power of two
  static constexpr int events_max = 32;
  static constexpr std::size_t library_bytes = 1_KiB;
  static constexpr unsigned progress_calls_max = 16;  // in one move(): messages without a frame may precede a frame

  struct Inbox {
    std::atomic<std::size_t> count{0};
    std::deque<Block*> blocks;
    std::vector<std::function<void()>> reads;  // functions of finished reads
  };
  struct Read {
    std::size_t reader;
    headway_wire_remote* remote;
    std::function<void()> done;
  };
  /// Frames of one process that wait for a large frame before them.
  struct Source {
    std::deque<Block*> waiting;  // begins with a large frame that has not arrived
  };
  struct Owed {
    std::size_t pe, source;
  };

  // User of a service message, in place of a PE's number.
  static constexpr std::size_t of_watch = 0, of_layers = 1;

  int check(int result) const;
  void send_service(std::size_t process, std::span<const std::byte> bytes, std::size_t whose);
  bool move();
  bool handle_services();
  bool progress_locked();
  void post_receive();
  void send_raw(std::size_t process, std::span<const std::byte> bytes);
  transport::Endpoint::Posted send_copy(std::size_t process, const transport::Frame& frame, const std::byte* tail_end,
                                        std::uint64_t link);
  transport::Endpoint::Posted send_in_place(std::size_t process, transport::Frame& frame, std::size_t bytes,
                                            bool is_own);
  void return_to_owner(transport::Frame& frame);
  void sent(std::uint64_t cookie);
  void received(Block* block);
  void announced(Block* announcement);
  void large_arrived(Block* block);
  void take_credit(const Block& block);
  void deliver(Block* block);
  void end_read(std::uint64_t cookie);
  void send_credit(std::size_t pe, std::size_t source);
  void send_credits_due();
  std::byte* slot();

  PortOptions options_;
  local::Segment* segment_;
  std::size_t first_in_segment_;
  std::size_t own_pes_;
  CreditTaken::Terms terms_;
  std::mutex mutex_;
  ReceiveMemory memory_;
  std::vector<Inbox> inboxes_;                     // by PE of this process
  std::vector<Source> sources_;                    // by process
  std::vector<CreditTaken> taken_;                 // own PE * PEs + target
  std::vector<CreditOwed> owed_;                   // own PE * PEs + source
  std::vector<Owed> unreported_;                   // credit that is due, but not sent: too many sends are open
  std::unordered_map<std::uint64_t, Read> reads_;  // open, by cookie
  std::uint64_t next_read_ = 0;
  std::vector<Service> services_;
  std::vector<Service> of_layers_;
  std::atomic<std::size_t> of_layers_count_{0};  // size of of_layers_
  std::atomic<std::uint64_t> polls_{0};
  std::mutex taking_;  // locked before mutex_
  Take take_;
  std::vector<std::byte*> slots_;
  std::size_t sends_ = 0, larges_ = 0;  // sends, and receives of large frames, that are not done
  std::uint64_t received_ = 0;          // messages, on both channels
  bool closing_ = false;
  Counts counts_;
  std::exception_ptr failure_;
};

}  // namespace headway::wire
