// SPDX-License-Identifier: BSD-3-Clause
/// Comes before every source of a build for SMPI (HeadwaySmpi.cmake): what tells time or lets it pass is the
/// simulation's. SimGrid's own header for that takes more names, also those of members, and so does not compile with
/// this project.
#pragma once

#include <time.h>
#include <unistd.h>

extern "C" {
int smpi_clock_gettime(clockid_t clock, struct timespec* time);
int smpi_nanosleep(const struct timespec* time, struct timespec* left);
int smpi_usleep(useconds_t microseconds);
}

#define clock_gettime smpi_clock_gettime
#define nanosleep smpi_nanosleep
#define usleep smpi_usleep
