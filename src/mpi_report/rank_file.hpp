// SPDX-License-Identifier: BSD-3-Clause
/// The file in which a rank counts. It is shared memory of this rank alone, so it holds all counts up to
/// the last call, however the rank ends. The `headway` of the same build reads it.
///
///     RankFile | Partner of rank 0 | Partner of rank 1 | ...    (sparse: untouched pages take no memory)
#pragma once

#include <cstddef>
#include <cstdint>

#include "functions.hpp"

namespace headway::mpi_report {

inline constexpr std::uint64_t rank_file_version = 0x4857'4d50'4952'0001;  // of the layout; raise it with each change
inline constexpr std::size_t size_classes = 48;                            // class c: [2^(c-1), 2^c) bytes; 0: empty
inline constexpr std::size_t lists_max = 256, lists_of_set = 4;
inline constexpr std::uint64_t frame_bytes = 16384;  // of an aggregator's buffer, by default
inline constexpr std::uint64_t idle_us = 50;         // a wait of this length posts the open buffers of a Headway PE

enum Kind { point_to_point, in_collectives, one_sided_kind, kinds };
enum Layout { named, contiguous, with_gaps, layouts };  // of the datatype of a message
inline constexpr const char* kind_names[] = {"point_to_point", "collectives", "one_sided"};
inline constexpr const char* layout_names[] = {"named", "contiguous", "with_gaps"};

struct FunctionRow {
  std::uint64_t calls, bytes, ticks;
};

/// One list of messages that an exchange sent: the same partners and bytes, in any order.
struct List {
  std::uint64_t fingerprint, partner_fingerprint;  // 0: the entry is empty
  std::uint64_t times, messages;                   // messages of one time
  std::uint32_t partners, sources, both;           // ranks sent to, received from, both
  std::uint32_t unused;
};

/// Messages of this rank to one other, and those that it received from it.
struct Partner {
  std::uint64_t messages, bytes;          // sent, point to point and by neighbourhood collectives
  std::uint64_t received;                 // messages of a known source
  std::uint64_t exchanges;                // exchanges with a message to this rank
  std::uint64_t frames;                   // buffers of frame_bytes that would hold the messages between two waits
  std::uint64_t answers, answers_to_any;  // messages that followed one from this rank; one that any source could send
  std::uint64_t one_sided, one_sided_bytes;
  std::uint64_t block_bytes;  // in MPI_Alltoallv and its like
  // State of the exchange and of the time between two waits that are under way.
  std::uint64_t open_bytes;         // a sum of hashes of lengths
  std::uint64_t tags, source_tags;  // a bit for each tag that the exchange has sent or received
  std::uint64_t phase_bytes;        // in the open frame
  std::uint32_t exchange, phase;    // numbers of those that `open_messages` and `phase_bytes` belong to
  std::uint32_t open_messages, open_sources;
  std::uint32_t sent_burst, source_burst;  // of the last message
  std::uint32_t first;                     // 1: the first message was sent, 2: it was received, 0: none yet
  std::uint32_t turn;                      // 1: the last message was received, 2: from any source, 0: it was sent
};

struct RankFile {
  std::uint64_t version, world;  // world: the same number in all ranks of one MPI_COMM_WORLD
  std::int32_t rank, size;
  std::uint32_t threads, finalized;  // MPI_Init_thread's level
  char mpi[16], host[64], program[256];
  std::uint64_t start_ticks, last_ticks;  // since MPI_Init; of the last call
  std::int64_t start_ns;                  // of the clock of this host
  double ticks_per_second;
  FunctionRow functions[function_count];
  std::uint64_t sizes[kinds][size_classes];  // messages by length
  std::uint64_t messages[kinds], bytes[kinds];
  std::uint64_t layout_messages[layouts], layout_bytes[layouts];
  std::uint64_t any_source;                             // receives and probes of any source
  std::uint64_t failed_tests;                           // tests and probes that found nothing
  std::uint64_t blocks, empty_blocks;                   // of MPI_Alltoallv and its like
  std::uint64_t reduced, reduced_small, reduced_bytes;  // reductions; of at most 8 KiB
  std::uint64_t exchanges, exchange_messages;           // exchanges that sent something
  std::uint64_t exchange_partners, exchange_sources, exchange_both;
  std::uint64_t repeated, repeated_partners;  // exchanges with a list, with a set of partners seen before
  std::uint64_t repeated_messages;            // in those with a list seen before
  std::uint64_t closed_by_collective;
  List lists[lists_max];
  std::uint64_t partner_sets[lists_max];  // fingerprints

  Partner* partners() { return reinterpret_cast<Partner*>(this + 1); }
  const Partner* partners() const { return reinterpret_cast<const Partner*>(this + 1); }
  static std::size_t bytes_of(std::size_t size) { return sizeof(RankFile) + size * sizeof(Partner); }
};

constexpr std::size_t size_class(std::uint64_t bytes) {
  const std::size_t bits = bytes == 0 ? 0 : std::size_t(64 - __builtin_clzll(bytes));
  return bits < size_classes ? bits : size_classes - 1;
}

}  // namespace headway::mpi_report
