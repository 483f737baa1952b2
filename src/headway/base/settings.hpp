// SPDX-License-Identifier: BSD-3-Clause
/// The run's settings. Only settings.cpp and launcher.cpp read the HEADWAY_ variables.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <headway/base/launcher.hpp>
#include <headway/base/size_constants.hpp>
#include <optional>
#include <string>

namespace headway::base {

/// Limits of the settings, for messages and tests.
inline constexpr std::size_t pes_max = 4096;  // at most 65536: a frame's header names its source in 16 bits
inline constexpr std::size_t budget_bytes_min = std::size_t(1) << 20;
inline constexpr std::size_t budget_bytes_max = std::size_t(1) << 38;
inline constexpr std::size_t buffer_bytes_min = 256;
inline constexpr std::size_t buffer_bytes_max = std::size_t(1) << 28;

/// True if this build has the sim transport.
#if defined(HEADWAY_SIM)
inline constexpr bool has_simulation = true;
#else
inline constexpr bool has_simulation = false;
#endif

enum class Bind { core, none };
enum class Launchers { recognised, ignored };

/// Processes of a launcher that share memory: those of one host, or none.
enum class Share { host, process };

/// Replaces options that aggregators derive, but not options that the program gives. Empty: derived.
struct AggregationSettings {
  std::optional<std::size_t> buffer_bytes = {};
  std::optional<std::string> topology = {};  // as aggregators read it
  std::optional<double> threshold = {}, cutoff = {};
  std::optional<std::chrono::nanoseconds> timeout = {};  // max(): none

  /// HEADWAY_BUFFER_BYTES, _TOPOLOGY, _THRESHOLD, _CUTOFF, _TIMEOUT. Throws SettingError.
  static AggregationSettings from_environment();
};

/// The path of content between PEs: HEADWAY_TRANSFER.
enum class TransferPath {
  fastest,  // the path that was measured as the fastest for that size; never `network`
  mapped,   // memory that both PEs have mapped; else frames
  cma,      // cross-memory attach: the receiver reads the sender's memory (process_vm_readv); else frames
  network,  // between hosts the network reads the owner's memory (wire.h); else frames
  frames,   // pieces in frames
};

struct TransferSettings {
  TransferPath path = TransferPath::fastest;
  // HEADWAY_CHECK: checks that buffers do not change too early, and that offsets lie in the other PE's memory.
  bool check = false;

  /// Throws SettingError.
  static TransferSettings from_environment();
};

/// The strategy of reductions and barriers of all PEs: HEADWAY_COLLECTIVES.
enum class CollectiveStrategy {
  best,      // shared memory where it is faster, else messages
  messages,  // messages along a tree
  shared,    // shared memory within a host; messages between PEs that share none
};

/// Throws SettingError.
CollectiveStrategy collective_strategy_from_environment();

/// HEADWAY_TEST_SIZES: normal_sizes or small_sizes. Throws SettingError.
SizeConstants size_constants_from_environment();

/// Threads that move frames between hosts: HEADWAY_PROGRESS.
enum class Progress {
  polling,  // PEs in calls of the library; waiting PEs poll
  helper,   // PEs, and while they compute a helper thread of each process; waiting PEs sleep at once
  both,     // PEs, and the helper thread; waiting PEs poll
  thread,   // one thread of each process, always
};

struct Settings {
  std::size_t pes = 1;               // PEs in all, 1 to pes_max
  std::size_t pes_per_process = 1;   // PEs as threads of one process; the last process may hold fewer
  std::string transport = "local";   // "sim": all PEs are fibers of one process; "mpi" and names of MPIs: a launcher's
  bool transport_given = false;      // HEADWAY_TRANSPORT is set
  std::optional<Launcher> launcher;  // that has started this process; only if the transport connects its processes
  Share share = Share::host;         // with a launcher
  Progress progress = Progress::polling;  // with a launcher
  std::string plugin_dir;                 // first folder of the search for plug-ins; empty: only the usual folders
  std::string sim;                        // properties of the simulated network: transport/sim/conditions.hpp
  std::size_t budget_bytes = 0;           // frame memory of one PE; a power of two
  std::size_t spill_bytes = 0;  // limit of one PE's memory for frames that its handlers send beyond the budget
  Bind bind = Bind::core;
  std::chrono::nanoseconds stall =
      std::chrono::seconds(60);  // without progress for this long the run reports and ends; 0: never
  std::uint64_t seed = 1;
  AggregationSettings aggregation;
  TransferSettings transfer;
  CollectiveStrategy collectives = CollectiveStrategy::best;
  SizeConstants sizes = normal_sizes;

  bool simulated() const { return transport == "sim"; }
  /// True if frames travel between processes of a launcher.
  bool on_wire() const {
    return transport == "mpi" || transport == "openmpi" || transport == "mpich" || transport == "mpi-abi" ||
           transport == "ucx";
  }
  /// True if this process must start the processes of such a run.
  bool starts_wire() const { return transport == "ucx" && !launcher; }
  std::size_t processes() const { return (pes + pes_per_process - 1) / pes_per_process; }

  /// Reads all HEADWAY_ variables, and derives values for those that are not set. Under a launcher the number of
  /// processes is the launcher's. Throws SettingError for a value that is not allowed and for an unknown HEADWAY_
  /// variable.
  static Settings from_environment(Launchers launchers = Launchers::recognised);
};

/// HEADWAY_PLUGIN_DIR: the first folder of the search for plug-ins; or empty.
std::string plugin_dir();

/// "fd:process:processes" if `headway run`, or a run that forked, has started this process; else empty. Removes the
/// variable, so that programs that this process starts do not attach to the run.
std::string take_launch_descriptor();

/// The variable with that text.
inline constexpr const char* launch_variable = "HEADWAY_LAUNCH";

/// The variable by which a process that `headway run` has started for a wire finds the others: wire::Invitation.
inline constexpr const char* meeting_variable = "HEADWAY_MEETING";
/// Its value, or empty.
std::string meeting();

}  // namespace headway::base
