// SPDX-License-Identifier: BSD-3-Clause
/// Compares collectives of Headway with those that an MPI gave in another run (beside_mpi.cpp): over transports without
/// MPI.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <headway/launch/run.hpp>
#include <stdexcept>

#include "compare.hpp"

namespace {

using namespace values;

class Record final : public Oracle {
 public:
  Record(const Options& options, std::size_t pes, std::size_t pe)
      : pes_(pes), pe_(pe), file_(record_of(options.folder, options.which, pes, pe), std::ios::binary) {
    if (!file_) {
      throw std::runtime_error(fmt::format("no record of PE {} of {} in {}", pe, pes, options.folder.string()));
    }
  }

  void find_out(std::span<const Call> calls) override {
    calls_ = calls;
    digests_.assign(calls.size(), 0);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!is_member(calls[i])) continue;
      file_.read(reinterpret_cast<char*>(&digests_[i]), sizeof digests_[i]);
      if (!file_) throw std::runtime_error("the record ends early");
    }
  }
  std::string complaint(std::size_t i, const Bytes& outcome) override {
    return digest(calls_[i], outcome) == digests_[i] ? "" : fmt::format("on PE {} it is not what MPI has", pe_);
  }

 private:
  bool is_member(const Call& call) const {
    for (const std::vector<std::size_t>& team : teams_of(call.family, pes_)) {
      for (const std::size_t pe : team) {
        if (pe == pe_) return true;
      }
    }
    return false;
  }

  std::size_t pes_, pe_;
  std::ifstream file_;
  std::span<const Call> calls_;
  std::vector<std::uint64_t> digests_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = options_of(argc, argv);
    return headway::run(argc, argv, [&](headway::Pe& pe) {
      Record record(options, pe.size(), pe.id());
      compare(pe, options, record);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
