// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/collection.hpp>
#include <headway/object/element.hpp>
#include <string>
#include <string_view>

namespace headway::object {

void throw_wrong_place(const std::string& expected) {
  throw SettingError(
      fmt::format("the placement of a collection was made by place<Name>() for another type of names: this "
                  "collection needs place<{}>()",
                  expected));
}

void throw_place_of_sparse() {
  throw SettingError(
      "the placement of a sparse array is block() or cyclic(), which need numbers: allowed are hashed() and "
      "place<Key>()");
}

namespace {

[[noreturn]] void throw_no_entry(std::string_view method) {
  throw SettingError(
      fmt::format("options are set for {}, which has no entry in its class: list it in `aggregation`", method));
}

}  // namespace

void throw_key_exists() {
  throw UsageError("insert(): the sparse array has an element with this key already: erase() it before");
}

void throw_late_step(std::int64_t step, std::int64_t current) {
  throw UsageError(
      fmt::format("a message of step {} arrived when step {} was the current one: the element got more messages "
                  "of its step than it expected",
                  step, current));
}

void throw_nothing_expected(std::int64_t step) {
  throw UsageError(fmt::format("a trigger expects 0 messages in step {}: it must expect at least 1", step));
}

void throw_waits_already(std::int64_t step) {
  throw UsageError(fmt::format(
      "when(): another coroutine of the element awaits messages of step {} of the same method: one may wait at a time",
      step));
}

void throw_bytes_left(std::size_t bytes, std::size_t left) {
  throw FormatError(fmt::format("serialize() of an element wrote {} and read {}: it must read all that it writes",
                                base::counted(bytes, "byte"), bytes - left));
}

void throw_delayed_length(const DelayedMessage& message, std::size_t bytes_min) {
  throw FormatError(fmt::format(
      "a message of step {} that waited in an element has {} in {}: its arguments take at least {}", message.step,
      base::counted(message.bytes, "byte"), base::counted(message.words.size(), "word"), bytes_min));
}

void throw_name_exists() {
  throw FormatError("the checkpoint has two elements of the same name: each must occur once");
}

void check_restored(RareState& rare) {
  for (const StepCounter& counter : rare.counters) {
    if (!counter.delayed.empty()) {
      throw FormatError(fmt::format("an element was checkpointed while {} of later steps waited in it: none may wait",
                                    base::counted(counter.delayed.size(), "message")));
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
  throw UsageError("an element is constructed outside of a collection: only its collection may construct it");
}

void throw_no_collection(std::uint32_t number) {
  throw UsageError(number == ~std::uint32_t(0)
                       ? std::string("a Proxy is used that was made without a collection")
                       : fmt::format("a Proxy names collection number {}, which this PE has not made yet", number));
}

void throw_no_such_pe(std::size_t pe, std::size_t pes) {
  throw UsageError(fmt::format("migrate_to({}): there is no such PE: this run has {}", pe, base::counted(pes, "PE")));
}

}  // namespace headway::object
