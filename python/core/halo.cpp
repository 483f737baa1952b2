// SPDX-License-Identifier: BSD-3-Clause
/// headway.Halo: plans and exchanges of ghosts on arrays of numpy.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <headway/halo/exchange.hpp>
#include <headway/halo/plan.hpp>
#include <map>

#include "bytes.hpp"
#include "channel.hpp"
#include "run.hpp"

namespace headway::python {
namespace {

using Ids = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An exchange of arrays of elements of these sizes. `add`: sums of type T go from ghosts to owners.
struct HaloExchange final : Resource {
  HaloExchange(const halo::Plan& plan, std::vector<halo::FieldRef> fields)
      : exchange(Run::get().pe(), plan, std::move(fields)) {}
  halo::Exchange exchange;
};

template <std::size_t bytes>
halo::FieldRef field_of(WritableBytes& data) {
  using Element = Item<bytes>;
  return halo::field(std::span(reinterpret_cast<Element*>(data.data()), data.size() / bytes));
}

halo::FieldRef field_of(WritableBytes& data, std::size_t bytes) {
  switch (bytes) {
    case 1: return field_of<1>(data);
    case 2: return field_of<2>(data);
    case 4: return field_of<4>(data);
    case 8: return field_of<8>(data);
    case 12: return field_of<12>(data);
    case 16: return field_of<16>(data);
    case 24: return field_of<24>(data);
    case 32: return field_of<32>(data);
    case 40: return field_of<40>(data);
    case 48: return field_of<48>(data);
    case 64: return field_of<64>(data);
    default: break;
  }
  throw SettingError("elements of " + std::to_string(bytes) +
                     " bytes are not allowed; allowed are 1, 2, 4, 8, 12, 16, 24, 32, 40, 48 and 64");
}

struct HaloPlan {
  halo::Plan plan;
};
using HaloHandle = Handle<HaloExchange>;

HaloPlan make_plan(std::uint64_t owned, const Ids& ids, std::uint64_t n) {
  Pe& pe = Run::get().pe();
  const Waiting waiting;
  return {halo::Plan::needed(pe, owned, std::span(ids.data(), ids.size()), Block(n, pe.size()))};
}

HaloHandle make_exchange(const HaloPlan& plan, std::vector<WritableBytes> arrays,
                         const std::vector<std::size_t>& bytes) {
  std::vector<halo::FieldRef> fields;
  for (std::size_t i = 0; i < arrays.size(); ++i) fields.push_back(field_of(arrays[i], bytes[i]));
  const Waiting waiting;
  return Run::get().keep(std::make_unique<HaloExchange>(plan.plan, std::move(fields)));
}

HaloHandle make_sums(const HaloPlan& plan, char kind, std::size_t bytes, WritableBytes array) {
  return with_type(kind, bytes, [&]<class T>(T) -> HaloHandle {
    if constexpr (sizeof(T) >= 4) {
      std::vector<halo::FieldRef> fields = {
          halo::field(std::span(reinterpret_cast<T*>(array.data()), array.size() / sizeof(T)), std::plus<>())};
      const Waiting waiting;
      return Run::get().keep(std::make_unique<HaloExchange>(plan.plan.reverse(), std::move(fields)));
    } else {
      throw SettingError("sums of elements of " + std::to_string(bytes) +
                         " bytes are not allowed; allowed are 4 and 8");
    }
  });
}

}  // namespace

void add_halo(nb::module_& module) {
  nb::class_<HaloPlan>(module, "Plan").def("received", [](HaloPlan& h) { return h.plan.received(); });
  nb::class_<HaloHandle>(module, "HaloExchange")
      .def("begin",
           [](HaloHandle& h) {
             const Waiting waiting;
             h->exchange.begin();
           })
      .def("done",
           [](HaloHandle& h) {
             const Waiting waiting;
             return h->exchange.done();
           })
      .def("end",
           [](HaloHandle& h) {
             const Waiting waiting;
             h->exchange.end();
           })
      .def("run", [](HaloHandle& h) {
        const Waiting waiting;
        h->exchange();
      });
  module.def("make_plan", &make_plan);
  module.def("make_exchange", &make_exchange);
  module.def("make_sums", &make_sums);
}

}  // namespace headway::python
