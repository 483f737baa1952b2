/// The run's settings. This is the one place that reads the environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <headway/base/launcher.hpp>
#include <headway/base/size_constants.hpp>
#include <optional>
#include <string>

namespace headway {

/// Limits of the settings, for messages and tests.
inline constexpr std::size_t pes_max = 4096;  // at most 65536: a frame's header names its source in 16 bits
inline constexpr std::size_t budget_bytes_min = std::size_t(1) << 20;
inline constexpr std::size_t budget_bytes_max = std::size_t(1) << 38;
inline constexpr std::size_t buffer_bytes_min = 256;
inline constexpr std::size_t buffer_bytes_max = std::size_t(1) << 28;

/// Whether this build has the sim transport.
#if defined(HEADWAY_SIM)
inline constexpr bool has_simulation = true;
#else
inline constexpr bool has_simulation = false;
#endif

enum class Bind { core, none };
enum class Launchers { recognised, ignored };

/// Among which processes of a launcher memory is shared.
enum class Share { host, process };

/// Replaces what aggregators derive, not what the program gives them. What is not set is derived.
struct AggregationSettings {
  std::optional<std::size_t> buffer_bytes = {};
  std::optional<std::string> topology = {};  // as aggregators read it
  std::optional<double> threshold = {}, cutoff = {};
  std::optional<std::chrono::nanoseconds> timeout = {};  // max(): none

  /// HEADWAY_BUFFER_BYTES, _TOPOLOGY, _THRESHOLD, _CUTOFF, _TIMEOUT. Throws SettingError for what is not
  /// allowed.
  static AggregationSettings from_environment();
};

/// By which way the content of buffers moves between PEs: HEADWAY_TRANSFER.
enum class TransferPath {
  fastest,  // whichever of these has been fastest for that size
  mapped,   // memory that both have mapped; else by frames
  cma,      // the receiver copies it out of the sender's memory (process_vm_readv); else by frames
  network,  // between hosts the network copies it (wire.h), which `fastest` does not try; else by frames
  frames,   // in pieces, by frames
};

struct TransferSettings {
  TransferPath path = TransferPath::fastest;
  // HEADWAY_CHECK: that nobody changes a buffer before it may be changed, and that words of others lie in their memory.
  bool check = false;

  /// Throws SettingError for what is not allowed.
  static TransferSettings from_environment();
};

/// How reductions and barriers of all PEs go: HEADWAY_COLLECTIVES.
enum class CollectiveStrategy {
  best,      // the better of the two
  messages,  // along a tree
  shared,    // in memory that all PEs share, where they do; else along a tree
};

/// Throws SettingError for what is not allowed.
CollectiveStrategy collective_strategy_from_environment();

/// HEADWAY_TEST_SIZES: normal_sizes or small_sizes. Throws SettingError for what is not allowed.
SizeConstants size_constants_from_environment();

/// Which threads move frames between hosts: HEADWAY_PROGRESS.
enum class Progress {
  polling,  // PEs, when they call the library
  helper,   // PEs, which sleep as soon as they wait; while they compute, a thread of each process that sleeps in between
  both,     // the same, but PEs poll while they wait
  thread,   // one thread of each process, always
};

struct Settings {
  std::size_t pes = 1;              // PEs in all, 1 to pes_max
  std::size_t pes_per_process = 1;  // PEs as threads of one process; the last process may hold fewer
  std::string transport = "local";  // "sim": all PEs are fibers of one process; "mpi" and names of MPIs: a launcher's
  bool transport_given = false;      // not chosen for the launcher
  std::optional<Launcher> launcher;  // that has started this process; only where the transport is that of its processes
  Share share = Share::host;         // likewise
  Progress progress = Progress::polling;  // likewise
  std::string plugin_dir;            // where plug-ins are looked for first; empty: only where they are installed
  std::string sim;                  // what a simulated network is like; see transport/sim/conditions.hpp
  std::size_t budget_bytes = 0;     // frame memory of one PE; a power of two
  std::size_t spill_bytes = 0;      // cap on one PE's memory for what its handlers send beyond the budget
  Bind bind = Bind::core;
  std::chrono::nanoseconds stall = std::chrono::seconds(60);  // nothing moved for this long: report and end; 0: never
  std::uint64_t seed = 1;
  AggregationSettings aggregation;
  TransferSettings transfer;
  CollectiveStrategy collectives = CollectiveStrategy::best;
  SizeConstants sizes = normal_sizes;

  bool simulated() const { return transport == "sim"; }
  /// Whether frames travel between processes that a launcher has started.
  bool on_wire() const {
    return transport == "mpi" || transport == "openmpi" || transport == "mpich" || transport == "mpi-abi" ||
           transport == "ucx";
  }
  /// Whether this process is to start the processes of such a run.
  bool starts_wire() const { return transport == "ucx" && !launcher; }
  std::size_t processes() const { return (pes + pes_per_process - 1) / pes_per_process; }

  /// HEADWAY_PES, _PES_PER_PROCESS, _TRANSPORT, _BUDGET, _SPILL, _BIND, _STALL, _SEED, _SIM and those of
  /// AggregationSettings, TransferSettings, CollectiveStrategy and SizeConstants, with derived values for what is not
  /// set. Under a launcher the number of processes is the launcher's. Throws SettingError for a value that is not
  /// allowed and for a HEADWAY_ variable that does not exist.
  static Settings from_environment(Launchers launchers = Launchers::recognised);
};

/// HEADWAY_PLUGIN_DIR: where plug-ins are looked for first; or empty.
std::string plugin_dir();

/// How this process was started: empty unless `headway run` did (or a run that forked), then "fd:process:processes".
/// Removed from the environment by this call, so that programs started by this one do not attach.
std::string take_launch_descriptor();

/// The variable that carries it.
inline constexpr const char* launch_variable = "HEADWAY_LAUNCH";

/// The variable by which a process that `headway run` has started for a wire finds the others: see wire::Invitation.
inline constexpr const char* meeting_variable = "HEADWAY_MEETING";
/// Its value, or empty.
std::string meeting();

}  // namespace headway
