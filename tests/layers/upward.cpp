// SPDX-License-Identifier: BSD-3-Clause
// Compiles in the aggregate layer, must not compile in am, which lies below it.
#include <headway/aggregate/aggregator.hpp>
