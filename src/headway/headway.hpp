// SPDX-License-Identifier: BSD-3-Clause
/// All of Headway that programs use. Each layer can also be included, and linked, alone.
#pragma once

#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/layout.hpp>
#include <headway/am/epoch.hpp>
#include <headway/am/future.hpp>
#include <headway/am/phase.hpp>
#include <headway/am/task.hpp>
#include <headway/am/time.hpp>
#include <headway/am/wait.hpp>
#include <headway/call/calls.hpp>
#include <headway/call/rpc.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/collective/scan.hpp>
#include <headway/global/array.hpp>
#include <headway/global/memory.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/grid.hpp>
#include <headway/halo/plan.hpp>
#include <headway/launch/attach.hpp>
#include <headway/launch/run.hpp>
#include <headway/object/object.hpp>
#include <headway/rma/pooled_array.hpp>
#include <headway/transfer/transfer.hpp>
