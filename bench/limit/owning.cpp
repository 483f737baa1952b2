// SPDX-License-Identifier: BSD-3-Clause
/// Messages with memory of their own, over the rings.
#include "owning.hpp"

#include "formulation.hpp"

namespace headway::limit {
namespace {

template <class Messages, class Apply>
void add_deliveries(std::vector<NamedDeliver>& all, const std::string& name) {
  all.push_back({name, Messages::template one_by_one<Apply>, Messages::template one_by_one<Compare>});
  if constexpr (std::is_same_v<Apply, Update>) {
    const Deliver check = Messages::template prefetching<Compare>;
    all.push_back({name + ", prefetching", Messages::template prefetching<Apply>, check});
  }
}

template <class Type, template <class> class Where, class Apply>
Kind owning_kind(const Options& options) {
  Kind kind{Where<Type>::name, Format::owning, {}, {}, Where<Type>::needed(options.bytes)};
  const auto add_build = [&]<class Copy>(Copy) {
    kind.builds.push_back({Copy::name, SendOwning<Type, Where, Copy>::send});
  };
  add_build(CopyWords());
  add_build(CopyEnds());
  add_build(CopyEndsLibc());
  add_build(CopyLibc());
  const auto add_set = [&]<class Set>(Set) {
    add_deliveries<DeliverOwning<Type, Where<Type>, Set>, Apply>(kind.deliveries, Set::name);
  };
  add_set(Assigned());
  add_set(Resized<CopyBranches>());
  add_set(Resized<CopyWide>());
  add_set(Resized<CopyLibc>());
  return kind;
}

template <class Type>
std::vector<Kind> owning_kinds_of(const Options& options) {
  if (options.table_log2 > 0) {
    return {owning_kind<Type, BeforeEach, Update>(options), owning_kind<Type, AtEnd, Update>(options)};
  }
  return {owning_kind<Type, BeforeEach, Sum>(options), owning_kind<Type, AtEnd, Sum>(options)};
}

}  // namespace

std::vector<Kind> owning_kinds(const Options& options) {
  return options.type == Type::vector ? owning_kinds_of<VectorType>(options) : owning_kinds_of<PartsType>(options);
}

}  // namespace headway::limit
