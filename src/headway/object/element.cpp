#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/collection.hpp>
#include <headway/object/element.hpp>
#include <string>
#include <string_view>

namespace headway::object {

void throw_wrong_place() {
  throw SettingError(
      "place<Name>() is for other names than the collection's: give it the collection's Name (Index<d>, the key)");
}

void throw_place_of_sparse() {
  throw SettingError(
      "elements of a sparse array have no numbers for block() or cyclic(): place them by hashed() or place<Key>()");
}

[[noreturn]] static void throw_no_entry(std::string_view method) {
  throw SettingError(
      fmt::format("options are set for a method that the class lists in no entry of its aggregation: {}", method));
}

void throw_key_exists() { throw UsageError("an element is inserted whose key has one already: erase() that before"); }

void throw_late_step(std::int64_t step, std::int64_t current) {
  throw UsageError(fmt::format(
      "a message of step {} came where step {} is the current one: more came than were expected", step, current));
}

void throw_nothing_expected(std::int64_t step) {
  throw UsageError(fmt::format("a trigger expects no messages in step {}: it must expect at least one", step));
}

void throw_waits_already(std::int64_t step) {
  throw UsageError(
      fmt::format("when(): a coroutine of this element waits for the same method already, in step {}", step));
}

void throw_bytes_left(std::size_t bytes, std::size_t left) {
  throw FormatError(fmt::format("serialize() of an element wrote {} and read {}: it must read all that it writes",
                                counted(bytes, "byte"), bytes - left));
}

void throw_name_exists() { throw FormatError("two elements have the same name"); }

void check_restored(RareState& rare) {
  for (const StepCounter& counter : rare.counters) {
    if (!counter.delayed.empty()) {
      throw FormatError(fmt::format("an element was checkpointed while {} of later steps waited in it: none may wait",
                                    counted(counter.delayed.size(), "message")));
    }
  }
  rare.contributions.clear();
}

void choose_options(std::vector<AggregatorOptions>& chosen, const CollectionOptions& options,
                    std::span<const std::size_t> entries) {
  if (options.override_all) std::fill(chosen.begin(), chosen.end(), *options.override_all);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == no_entry) throw_no_entry(options.methods[i].name);
    chosen[entries[i]] = options.methods[i].options;
  }
  for (AggregatorOptions& of : chosen) {
    if (of.name.empty()) of.name = options.name;
  }
}

void throw_not_made_by_collection() {
  throw UsageError("an element is made by its collection only: it has no place of its own");
}

void throw_no_collection(std::uint32_t number) {
  throw UsageError(number == ~std::uint32_t(0)
                       ? std::string("a Proxy that was made from no collection names none")
                       : fmt::format("a Proxy names collection number {}, which this PE has not made", number));
}

void throw_no_such_pe(std::size_t pe, std::size_t pes) {
  throw UsageError(fmt::format("an element cannot migrate to PE {}: this run has {}", pe, counted(pes, "PE")));
}

}  // namespace headway::object
