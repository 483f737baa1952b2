// SPDX-License-Identifier: BSD-3-Clause
/// The time of a run, for programs that measure it, and computation that is simulated.
#pragma once

#include <headway/am/pe.hpp>

namespace headway {

/// Seconds since an arbitrary time on the clock of the run: simulated time on the sim transport and under SMPI, else
/// monotonic time of the PE's host. PEs of one host, and all simulated PEs, have one clock. A call costs 5 ns of
/// simulated time on sim, so that loops that wait for a time end.
double wtime(Pe& pe);

/// States that this PE computes for `seconds`, from 0 to 10^6, that the program does not spend. On the sim transport
/// the PE's clock advances by them, or by more on a PE that HEADWAY_SIM slows down. Meanwhile other PEs run, and frames
/// arrive; this PE handles them afterwards. The calling PE is charged, also in a handler. On all other transports the
/// call does nothing. UsageError for a value out of range.
void charge(Pe& pe, double seconds);

}  // namespace headway
