// SPDX-License-Identifier: BSD-3-Clause
/// What L7's calls share.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/plan.hpp>
#include <headway/launch/attach.hpp>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "l7/l7.h"

namespace headway::l7 {

// A repeated set-up rebuilds the plan. Each exchange is rebuilt by the next update or push of its type: only that call
// gives the array.

/// A plan of L7_Setup, and its exchanges by the bytes of an element.
struct UpdatePlan {
  struct Update {
    void* data;  // the array of the last update
    halo::Exchange exchange;
    bool has_plan = true;  // false: it has an older one
  };
  std::uint64_t owned = 0, needed = 0;
  halo::Plan plan;
  std::map<std::size_t, Update> updates = {};
};

/// A plan of L7_Push_Setup. Elements go through memory of the plan: first those that leave, then those that arrive.
struct PushPlan {
  struct Piece {
    std::uint64_t from, to, count;
  };
  struct Push {
    std::vector<std::byte> memory;
    halo::Exchange exchange;
    bool has_plan = true;
  };
  std::vector<std::uint64_t> sent = {};  // indices of the elements that leave, in the order of the memory
  std::vector<Piece> arriving = {};      // from the memory behind `sent` to the caller's array
  std::uint64_t arrive = 0;
  halo::Plan plan;
  std::map<std::size_t, Push> pushes = {};
};

struct State {
  bool initialised = false;
  bool started_mpi = false;
  Pe* pe = nullptr;                                  // nullptr: L7_Init was told to use no other process
  std::vector<std::unique_ptr<UpdatePlan>> updates;  // plan `id` is at id - 1
  std::vector<std::unique_ptr<PushPlan>> pushes;

  bool alone() const { return pe == nullptr || pe->size() == 1; }
};

State& state();

/// An argument that this PE refuses before it has sent anything: the call returns an error.
struct BadArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void print_error(const char* call, const char* what);

/// Calls `body` after L7_Init. Other errors than BadArgument end the run, because other PEs may wait for this one.
template <class Body>
int guard(const char* call, Body body) noexcept {
  try {
    if (!state().initialised) throw BadArgument("L7_Init has not been called");
    body();
    if (state().pe != nullptr) settle(*state().pe);
    return L7_OK;
  } catch (const BadArgument& error) {
    print_error(call, error.what());
    return -1;
  } catch (const std::exception& error) {
    if (state().pe != nullptr)
      state().pe->engine().fail(report::FailureKind::failed, fmt::format("{}: {}", call, error.what()));
    print_error(call, error.what());
    return -1;
  }
}

/// Bytes of an element. Throws BadArgument.
std::size_t bytes_of(int type);

}  // namespace headway::l7
