// SPDX-License-Identifier: BSD-3-Clause
/// Computation of the programs of the study of 1998 on simulated machines: so much for each unit of work, in every run
/// the same.
#pragma once

#include <fmt/format.h>

#include <headway/headway.hpp>
#include <record/command_line.hpp>
#include <string>

namespace headway::apps {

/// Adds --work US. `unit` names what takes so long, such as "interaction of two bodies".
inline void add_work(bench::CommandLine& app, const std::string& unit, double& us) {
  app.add_number("--work", "US", fmt::format("charge a simulated PE so many us for each {} [0]", unit), us, 0, 1e6);
}

/// Charges one PE. Without --work, and on transports that are not simulated, it does nothing.
class Work {
 public:
  Work(Pe& pe, double us) : pe_(&pe), seconds_(us * 1e-6) {}

  explicit operator bool() const { return seconds_ > 0; }
  void done(double units) const {
    if (seconds_ > 0) charge(*pe_, units * seconds_);
  }

 private:
  Pe* pe_;
  double seconds_;  // of a unit
};

}  // namespace headway::apps
