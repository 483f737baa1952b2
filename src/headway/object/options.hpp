// SPDX-License-Identifier: BSD-3-Clause
/// Options of collections.
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

/// Options of a collection. All PEs give the same.
struct CollectionOptions {
  struct OfMethod {
    const void* tag;  // tag_of the method; overloads have different tags
    std::string name;
    AggregatorOptions options;
  };

  Placement placement = {};
  /// For the buffers that methods without an entry and the collection itself use.
  AggregatorOptions aggregation = {};
  /// Replaces the options of all entries of the class. For programs that let their user choose the options.
  std::optional<AggregatorOptions> override_all = {};
  /// Measures the time in each element's methods, for balance(). Reads the clock twice for each message.
  bool measure_load = false;
  /// Makes a dense collection without its elements; restart() makes them.
  bool empty = false;
  /// For reports and error texts.
  std::string_view name = {};
  /// Filled by set().
  std::vector<OfMethod> methods = {};

  /// Sets the options for the entry of `method`. They take precedence over all other options.
  template <auto method>
  CollectionOptions& set(const AggregatorOptions& options) {
    methods.push_back({object::tag_of<method>, object::name_of<method>(), options});
    return *this;
  }
};

}  // namespace headway
