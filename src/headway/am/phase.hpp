// SPDX-License-Identifier: BSD-3-Clause
/// Phases of a program, for the counts and traces of its runs.
#pragma once

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/transport/observer.hpp>
#include <string_view>

namespace headway {

/// From its making to its end this PE is in a phase. It lives in one block, without a `co_await` in it: the phase that
/// began last ends first.
class [[nodiscard]] PhaseScope {
 public:
  PhaseScope(Pe& pe, std::string_view name) {
    if (transport::is_observed()) [[unlikely]]
      begin(pe, name);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope() {
    if (observer_ != nullptr) [[unlikely]]
      observer_->end_phase();
  }

 private:
  void begin(Pe& pe, std::string_view name) {
    observer_ = pe.engine().endpoint().observer();
    if (observer_ != nullptr) observer_->begin_phase(name);
  }

  transport::Observer* observer_ = nullptr;
};

/// `const auto sweep = headway::phase(pe, "sweep");` A phase in another one lies in it; the same name may come again.
/// Each PE has its own phases, and names may differ. A run that is neither counted (HEADWAY_COUNTS) nor traced
/// (HEADWAY_TRACE) does nothing here. Names of more than 59 bytes are cut.
inline PhaseScope phase(Pe& pe, std::string_view name) { return {pe, name}; }

}  // namespace headway
