/// What a collection may be told when it is made.
#pragma once

#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/object/entry.hpp>
#include <headway/object/placement.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// Options of a collection; all PEs give the same.
struct CollectionOptions {
  struct OfMethod {
    const void* tag;  // of the method: no other has it, overloads of one name neither
    std::string name;
    AggregatorOptions options;
  };

  Placement placement = {};
  /// For methods that the class lists in no entry, and for what the collection itself sends.
  AggregatorOptions aggregation = {};
  /// In the place of what the class declares, for all its entries: for programs that are told how to aggregate.
  std::optional<AggregatorOptions> override_all = {};
  /// Time spent in each element's methods is measured, for balance(): two looks at the clock for each message.
  bool measure_load = false;
  /// A dense collection is made without its elements, which restart() brings.
  bool empty = false;
  /// For messages to people.
  std::string_view name = {};
  /// Filled by set().
  std::vector<OfMethod> methods = {};

  /// For the entry that lists `method`, before all other options.
  template <auto method>
  CollectionOptions& set(const AggregatorOptions& options) {
    methods.push_back({object::tag_of<method>, object::name_of<method>(), options});
    return *this;
  }
};

}  // namespace headway
