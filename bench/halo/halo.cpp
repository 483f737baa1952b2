// SPDX-License-Identifier: BSD-3-Clause
/// Halo exchanges by a plan, verified: Headway's exchange, or the packing loop alone.
#include <fmt/format.h>

#include <cstdio>
#include <halo/lists.hpp>
#include <halo/measure.hpp>
#include <halo/packing.hpp>
#include <halo/values.hpp>
#include <halo/work.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/plan.hpp>
#include <headway/headway.hpp>
#include <iostream>
#include <memory>
#include <options.hpp>
#include <set>
#include <sstream>
#include <utility>

namespace headway::bench {
namespace {

struct Arguments {
  HaloWork work;
  std::string mode = halo_modes.front(), memory = halo_memories.front();
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("Halo exchanges by a plan, or the packing loop alone; verified.", "headway-halo");
  add_halo_options(app, arguments.work);
  app.add_choice("--mode", "NAME",
                 "halo, or pack (all elements that a PE sends are packed into one buffer, not sent) [halo]",
                 arguments.mode, halo_modes);
  app.add_choice("--memory", "NAME",
                 "of the arrays: heap, or field (halo::Field, which other PEs of the host may write to) [heap]",
                 arguments.memory, halo_memories);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] {
    arguments.work.seed = base::Settings::from_environment().seed;
    arguments.work.complete();
  });
}

/// The paths that set-up has chosen for the partners of this PE, each once.
std::vector<std::string> paths_of(const std::string& description) {
  std::set<std::string> paths;
  std::istringstream lines(description);
  for (std::string line; std::getline(lines, line);) paths.insert(line.substr(line.rfind(", ") + 2));
  return {paths.begin(), paths.end()};
}

std::vector<halo::PartnerIndices> indices_of(const std::vector<HaloPartner>& partners) {
  std::vector<halo::PartnerIndices> all;
  all.reserve(partners.size());
  for (const HaloPartner& one : partners) all.push_back({one.pe, one.indices});
  return all;
}

/// A method, see measure.hpp.
template <class T>
class Exchanged {
 public:
  Exchanged(Pe& pe, const HaloLists& lists, const HaloArrays<T>& arrays)
      : lists_(&lists),
        arrays_(&arrays),
        exchange_(pe, halo::Plan::both(pe, indices_of(lists.sends), indices_of(lists.receives)), fields_of(arrays)) {}

  void exchange(NoHaloClock& clock) {
    if (!clock.computes()) return exchange_();
    exchange_.begin();
    clock.compute();
    exchange_.end();
  }
  void exchange(HaloClock& clock) {
    exchange_.begin();
    clock.phase("begin");
    clock.compute();
    exchange_.end();
    clock.phase("end");
  }
  std::uint64_t errors(std::uint64_t round) const { return count_halo_errors(*lists_, *arrays_, round); }
  void corrupt() { corrupt_halo(*lists_, *arrays_); }
  /// Once it has exchanged: partners then know one another's arrays.
  std::vector<std::string> paths() const { return paths_of(exchange_.description()); }

 private:
  static std::vector<halo::FieldRef> fields_of(const HaloArrays<T>& arrays) {
    std::vector<halo::FieldRef> fields;
    for (const std::span<T> array : arrays) fields.push_back(halo::field(array));
    return fields;
  }

  const HaloLists* lists_;
  const HaloArrays<T>* arrays_;
  halo::Exchange exchange_;
};

/// A method that only packs.
template <class T>
class Packed {
 public:
  Packed(const HaloLists& lists, const HaloArrays<T>& arrays, std::size_t me)
      : lists_(&lists), arrays_(&arrays), me_(me), side_(lists.sends, arrays.size()) {}

  template <class Clock>
  void exchange(Clock& clock) {
    clock.compute();
    for (std::size_t i = 0; i < side_.lists.size(); ++i) side_.lists[i].pack(*arrays_, side_.of(i));
    asm volatile("" : : "r"(side_.buffer.data()) : "memory");  // the program does not read it otherwise
    clock.phase("pack");
  }
  std::uint64_t errors(std::uint64_t round) const {
    std::uint64_t errors = 0;
    std::size_t at = 0;
    for (const HaloPartner& to : lists_->sends) {
      for (std::size_t field = 0; field < arrays_->size(); ++field) {
        for (const std::uint64_t index : to.indices)
          errors += side_.buffer[at++] != halo_value<T>(me_, field, index, round);
      }
    }
    return errors;
  }
  void corrupt() {
    if (!side_.buffer.empty()) side_.buffer.back().word.back() ^= 1;
  }

 private:
  const HaloLists* lists_;
  const HaloArrays<T>* arrays_;
  std::size_t me_;
  HandPackedSide<T> side_;
};

HaloWorld world_of(Pe& pe) {
  return {.me = pe.id(),
          .pes = pe.size(),
          .meet = [&pe] { barrier(pe); },
          .now_ns = [&pe] { return pe.engine().now(); },
          .sum = [&pe](double value) { return allreduce(pe, value, std::plus<double>()); },
          .most = [&pe](double value) { return max_over_pes(pe, value); }};
}

template <class T>
HaloResult measure(Pe& pe, const Arguments& arguments, const HaloLists& lists, std::vector<std::string>& paths) {
  std::vector<std::vector<T>> heap;
  std::vector<halo::Field<T>> mapped;  // both outlive the exchanges
  HaloArrays<T> arrays;
  for (std::size_t field = 0; field < arguments.work.fields; ++field) {
    if (arguments.memory == "field") {
      auto& memory = mapped.emplace_back(pe, lists.elements);
      arrays.emplace_back(memory.data(), memory.size());
    } else {
      arrays.emplace_back(heap.emplace_back(lists.elements));
    }
  }
  const HaloWorld world = world_of(pe);
  if (arguments.mode == "pack") {
    return measure_halo(arguments.work, world, lists, arrays,
                        [&] { return std::make_unique<Packed<T>>(lists, arrays, pe.id()); });
  }
  return measure_halo(
      arguments.work, world, lists, arrays, [&] { return std::make_unique<Exchanged<T>>(pe, lists, arrays); },
      [&](const Exchanged<T>& method) { paths = method.paths(); });
}

int measure(Pe& pe, const Arguments& arguments) {
  const HaloWork& work = arguments.work;
  HaloLists lists;
  try {
    lists = make_halo_lists(work, pe.id(), pe.size());
  } catch (const SettingError& error) {
    if (pe.id() == 0) std::cerr << "headway-halo: " << error.what() << '\n';
    return exit_status::unusable_arguments;
  }
  if (sum_over_pes(pe, lists.received()) == 0) {
    if (pe.id() == 0) {
      std::cerr << fmt::format("headway-halo: case {} has nothing to exchange on {}; use more PEs\n", work.name,
                               base::counted(pe.size(), "PE"));
    }
    return exit_status::unusable_arguments;
  }
  std::vector<std::string> paths;
  const HaloResult result = with_halo_element(
      work.bytes, [&]<class T>(std::type_identity<T>) { return measure<T>(pe, arguments, lists, paths); });
  if (pe.id() == 0) {
    const Case measured = make_case(pe, "halo", {}, result.message_bytes, result.messages * result.exchanges);
    Json record = make_record(measured, result.seconds, result.errors == 0);
    record["mode"] = arguments.mode;
    record["memory"] = arguments.memory;
    if (!paths.empty()) record["way"] = fmt::format("{}", fmt::join(paths, ", "));
    add_halo_result(record, work, result);
    if (!arguments.json.empty()) {
      write_json(arguments.json, record);
    } else {
      const std::string line =
          fmt::format("halo {}: {}, {}, {}, {}\n", arguments.mode, base::counted(pe.size(), "PE"), halo_title(work),
                      speed_of(record), result.errors == 0 ? "verified" : "WRONG");
      std::fwrite(line.data(), 1, line.size(), stdout);
      std::fflush(stdout);
    }
  }
  return result.errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
