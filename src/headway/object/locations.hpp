// SPDX-License-Identifier: BSD-3-Clause
/// The names of a collection's elements, their addresses in messages, their homes, and where they are.
#pragma once

#include <any>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/call/rpc.hpp>
#include <headway/object/directory.hpp>
#include <headway/object/index.hpp>
#include <headway/object/options.hpp>
#include <headway/object/placement.hpp>
#include <string>
#include <type_traits>

namespace headway::object {

[[noreturn]] void throw_wrong_place(const std::string& expected);
[[noreturn]] void throw_place_of_sparse();

template <class Naming>
inline constexpr bool is_named_by_number = std::is_base_of_v<NamingByNumber, NamingOf<Naming>>;
template <class Naming>
using HomesOf =
    std::conditional_t<NamingOf<Naming>::sparse, SparseHomes<typename NamingOf<Naming>::Address>, DenseHomes>;
/// A sparse collection has one that is not used.
template <class Naming>
using FormOf = Form<NamingOf<Naming>::dense ? NamingOf<Naming>::dimensions : 1>;

/// The form of a collection that is constructed without extents.
template <class Naming>
FormOf<Naming> number_form(Pe& pe) {
  std::size_t size = 0;
  if constexpr (std::is_same_v<Naming, PerPe>) size = pe.size();
  if constexpr (std::is_same_v<Naming, Single>) size = 1;
  if constexpr (std::is_same_v<Naming, PerProcess>) {
    const std::size_t each = pe.engine().endpoint().host_map().pes_per_process;
    size = (pe.size() + each - 1) / each;
  }
  return FormOf<Naming>({std::int32_t(size)});
}

template <class Naming>
HomesOf<Naming> homes_of(Pe& pe, const CollectionOptions& options, const FormOf<Naming>& form) {
  using Traits = NamingOf<Naming>;
  using Name = typename Traits::Name;
  using Homes = HomesOf<Naming>;
  using Kind = Placement::Kind;
  std::function<PeId(const Name&)> own;
  if (options.placement.kind == Kind::own) {
    const auto* const function = std::any_cast<std::function<PeId(const Name&)>>(&options.placement.function);
    if (function == nullptr) throw_wrong_place(aggregate::type_name<Name>());
    own = *function;
  }
  if constexpr (Traits::sparse) {
    if (options.placement.kind == Kind::block || options.placement.kind == Kind::cyclic) throw_place_of_sparse();
    return Homes(pe.size(), own);
  } else if constexpr (std::is_same_v<Naming, PerPe>) {
    return Homes(form.size(), pe.size(), Kind::block, {});
  } else if constexpr (std::is_same_v<Naming, PerProcess>) {
    const std::size_t each = pe.engine().endpoint().host_map().pes_per_process;
    return Homes(form.size(), pe.size(), Kind::own, [each](std::uint32_t process) { return PeId(process * each); });
  } else if constexpr (std::is_same_v<Naming, Single>) {
    if (!own) return Homes(1, pe.size(), Kind::block, {});
    return Homes(1, pe.size(), Kind::own, [own](std::uint32_t number) { return own(number); });
  } else {
    return Homes(form.size(), pe.size(), options.placement.kind, [own, form](std::uint32_t number) {
      Name name;
      name.at = form.index(number);
      return own(name);
    });
  }
}

template <class Naming>
class Locations : public Directory<typename NamingOf<Naming>::Address, HomesOf<Naming>> {
 public:
  using Traits = NamingOf<Naming>;
  using Name = typename Traits::Name;
  using Address = typename Traits::Address;
  using Base = Directory<Address, HomesOf<Naming>>;

  Locations(Pe& pe, const CollectionOptions& options, const FormOf<Naming>& form)
      : Base(homes_of<Naming>(pe, options, form), pe.id(), !options.measure_load), form_(form) {}

  Address address_of(const Name& name) const {
    if constexpr (Traits::sparse) {
      return name;
    } else if constexpr (is_named_by_number<Naming>) {
      return form_.number({coordinate(name)});
    } else {
      return form_.number(name.at);
    }
  }
  Name name_of(const Address& address) const {
    if constexpr (Traits::sparse || is_named_by_number<Naming>) {
      return address;
    } else {
      Name name;
      name.at = form_.index(address);
      return name;
    }
  }
  Name extents() const {
    if constexpr (is_named_by_number<Naming>) {
      return form_.size();
    } else {
      Name extents;
      extents.at = form_.extents();
      return extents;
    }
  }

  /// Calls f(number) for each element of a dense collection that has its home on `pe`.
  template <class F>
  void for_each_home(std::size_t pe, F f) const {
    const DenseHomes& homes = this->homes();
    if (homes.is_block() && form_.size() != 0) {
      for (std::uint32_t number = homes.first(pe), end = homes.first(pe + 1); number < end; ++number) f(number);
      return;
    }
    for (std::uint32_t number = 0; number < form_.size(); ++number) {
      if (homes(number) == pe) f(number);
    }
  }

 private:
  FormOf<Naming> form_;
};

}  // namespace headway::object
