// SPDX-License-Identifier: BSD-3-Clause
/// A run of one PE in this process, which no other process started or watches.
#pragma once

#include <functional>
#include <headway/base/settings.hpp>
#include <headway/launch/process_pes.hpp>
#include <headway/report/report_signals.hpp>
#include <headway/transport/local/segment.hpp>
#include <headway/transport/shared_by_process.hpp>
#include <memory>
#include <optional>

namespace headway::launch {

class LoneRun final : public ProcessPes {
 public:
  /// Throws SystemError.
  LoneRun(const base::Settings& settings, const std::function<int(Pe&)>& body);
  ~LoneRun() override;

  Pe& open() override { return open_pe(); }
  int close(int status) override;

 private:
  std::unique_ptr<transport::Endpoint> make_endpoint(std::size_t pe) override;
  am::Idle idle() const override { return am::Idle::sleep; }  // no other PE wakes it
  void while_waiting() override {}
  [[noreturn]] void end_failed(std::size_t pe) override;

  local::Segment segment_;
  transport::SharedByProcess shared_;
  std::optional<report::ReportSignals> signals_;
};

}  // namespace headway::launch
