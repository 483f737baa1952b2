// SPDX-License-Identifier: BSD-3-Clause
/// The calls as Headway makes them.
#pragma once

#include <headway/collective/team.hpp>
#include <memory>

#include "calls.hpp"

namespace values {

/// A call that is under way on this PE.
class Made {
 public:
  Made() = default;
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  virtual ~Made() = default;
  /// Waits for the outcome, as it lies in memory; empty where this PE has none.
  virtual Bytes take() = 0;
};

/// What this PE gives has been copied, or is kept, when it returns.
std::unique_ptr<Made> make(const headway::Team& team, const Call& call);

/// The same for the types of one file each.
std::unique_ptr<Made> make_small(const headway::Team& team, const Call& call);
std::unique_ptr<Made> make_wide(const headway::Team& team, const Call& call);
std::unique_ptr<Made> make_real(const headway::Team& team, const Call& call);

}  // namespace values
