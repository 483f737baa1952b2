// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <headway/c/halo.h>

#include <algorithm>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/c/ranges.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/launch/attach.hpp>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct headway_plan {
  headway::halo::Plan plan;
};
struct headway_exchange {
  headway::halo::Exchange exchange;
};

namespace {

namespace halo = headway::halo;
using headway::UsageError;

thread_local std::string error_text;  // of the last error

/// All that the program has made and not freed: headway_detach() frees it, and other addresses are refused.
std::set<const headway_plan*> plans;
std::set<const headway_exchange*> exchanges;

int fail(int code, const char* text) noexcept {
  try {
    error_text = text;
  } catch (...) {  // no memory for the text
    error_text.clear();
  }
  return code;
}

/// Calls `body`, and returns a code for its exception.
template <class Body>
int guard(const char* call, Body body) noexcept {
  try {
    body();
    return HEADWAY_OK;
  } catch (const headway::SettingError& error) {
    return fail(HEADWAY_BAD_SETTING, error.what());
  } catch (const UsageError& error) {
    return fail(HEADWAY_BAD_CALL, error.what());
  } catch (const headway::SystemError& error) {
    return fail(HEADWAY_SYSTEM, error.what());
  } catch (const std::bad_alloc&) {
    return fail(HEADWAY_SYSTEM, call);
  } catch (const std::exception& error) {
    return fail(HEADWAY_FAILED, error.what());
  } catch (...) {
    return fail(HEADWAY_FAILED, call);
  }
}

headway::Pe& pe_of(const char* call) {
  headway::Pe* const pe = headway::attached();
  if (pe == nullptr) throw UsageError(fmt::format("{}() without headway_attach(): call it before", call));
  return *pe;
}

template <class T>
T& known(const std::set<const std::remove_const_t<T>*>& all, T* one, const char* call, const char* what) {
  if (one == nullptr || !all.contains(one))
    throw UsageError(fmt::format("{}(): {} is no {} of this program, or was freed", call, fmt::ptr(one), what));
  return *one;
}

void require(const void* argument, const char* call, const char* name) {
  if (argument == nullptr) throw UsageError(fmt::format("{}(): {} is NULL; expected an address", call, name));
}

void keep(headway_plan** result, halo::Plan plan) {
  auto made = std::make_unique<headway_plan>(headway_plan{std::move(plan)});
  plans.insert(made.get());
  *result = made.release();
}

headway::PeId pe_id(int pe, std::size_t pes, const char* call) {
  if (pe < 0 || std::size_t(pe) >= pes)
    throw UsageError(fmt::format("{}(): PE {} is not there; this run has PEs 0 to {}", call, pe, pes - 1));
  return headway::PeId(std::size_t(pe));
}

/// Elements of a program for partners, or from them: one list after the other.
struct Lists {
  std::size_t partners;
  const int* pes;
  const std::size_t* counts;
  const std::uint64_t* indices;

  std::vector<halo::PartnerIndices> lists(std::size_t pes_in_all, const char* call) const {
    if (partners != 0) {
      require(pes, call, "the array of PEs");
      require(counts, call, "the array of counts");
    }
    std::vector<halo::PartnerIndices> made;
    const std::uint64_t* next = indices;
    for (std::size_t p = 0; p != partners; ++p) {
      if (counts[p] != 0) require(indices, call, "the array of indices");
      made.push_back({pe_id(pes[p], pes_in_all, call), {next, next + counts[p]}});
      next += counts[p];
    }
    return made;
  }
};

// The arguments of the calls that make and rebuild plans, one struct for each kind of plan. rebuild() is collective.

struct Needed {
  std::uint64_t first, owned;
  std::size_t count;
  const std::uint64_t* ids;

  void rebuild(headway::Pe& pe, const char* call, halo::Plan& plan) const {
    if (count != 0) require(ids, call, "ids");
    const headway::c::Ranges ranges(pe, first, owned, {ids, count});
    plan.rebuild(pe, owned, {ids, count}, [&](std::uint64_t id) { return ranges.find(id); });
  }
};

struct Receiving {
  std::uint64_t owned;
  std::size_t count;
  const int* pes;
  const std::uint64_t* indices;

  void rebuild(headway::Pe& pe, const char* call, halo::Plan& plan) const {
    if (count != 0) {
      require(pes, call, "pes");
      require(indices, call, "indices");
    }
    std::vector<halo::Place> places;
    for (std::size_t i = 0; i != count; ++i) places.push_back({pe_id(pes[i], pe.size(), call), indices[i]});
    plan.rebuild(pe, owned, places);
  }
};

struct Sending {
  std::uint64_t owned;
  Lists to;

  void rebuild(headway::Pe& pe, const char* call, halo::Plan& plan) const {
    plan.rebuild(pe, owned, to.lists(pe.size(), call));
  }
};

struct Both {
  Lists to, from;

  void rebuild(headway::Pe& pe, const char* call, halo::Plan& plan) const {
    plan.rebuild(pe, to.lists(pe.size(), call), from.lists(pe.size(), call));
  }
};

template <class Given>
int make_plan(const char* call, headway_plan** plan, const Given& given) noexcept {
  return guard(call, [&] {
    headway::Pe& pe = pe_of(call);
    require(plan, call, "plan");
    halo::Plan made = halo::Plan::both(pe, {}, {});
    given.rebuild(pe, call, made);
    keep(plan, std::move(made));
    headway::settle(pe);
  });
}

template <class Given>
int rebuild_plan(const char* call, headway_plan* plan, const Given& given) noexcept {
  return guard(call, [&] {
    headway::Pe& pe = pe_of(call);
    given.rebuild(pe, call, known(plans, plan, call, "plan").plan);
    headway::settle(pe);
  });
}

template <class T, class Op>
halo::CombineList combine_by(std::uint64_t components, Op op) {
  return [components, op](const halo::IndexList& list, std::size_t first, std::size_t count, const std::byte* arrived,
                          const halo::FieldView& view) {
    list.combine(first, count, arrived, view, [&](std::byte* element, const std::byte* from) {
      for (std::uint64_t i = 0; i != components; ++i, element += sizeof(T), from += sizeof(T)) {
        T a, e;
        std::memcpy(&e, element, sizeof e);
        std::memcpy(&a, from, sizeof a);
        e = op(e, a);
        std::memcpy(element, &e, sizeof e);
      }
    });
  };
}

template <class T>
halo::FieldRef field_of(const headway_field& given, const char* type) {
  halo::FieldRef made;
  const std::uint64_t bytes = given.components * sizeof(T);
  made.view = {static_cast<std::byte*>(given.data), bytes, given.stride == 0 ? bytes : given.stride};
  made.elements = given.elements;
  made.type = given.components == 1 ? type : fmt::format("{}[{}]", type, given.components);
  switch (given.combine) {
    case HEADWAY_SUM: made.combine = combine_by<T>(given.components, [](T e, T a) { return T(e + a); }); break;
    case HEADWAY_MIN: made.combine = combine_by<T>(given.components, [](T e, T a) { return std::min(e, a); }); break;
    case HEADWAY_MAX: made.combine = combine_by<T>(given.components, [](T e, T a) { return std::max(e, a); }); break;
    default: break;
  }
  return made;
}

halo::FieldRef field_of(const headway_field& given, const char* call, std::size_t number) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("{}(): field {}: {}", call, number, what));
  };
  if (given.components == 0) refuse("components is 0; expected 1 or more");
  if (given.combine < HEADWAY_REPLACE || given.combine > HEADWAY_MAX)
    refuse(fmt::format("combine is {}; expected {} to {}", given.combine, int(HEADWAY_REPLACE), int(HEADWAY_MAX)));
  if (given.type < HEADWAY_BYTES || given.type > HEADWAY_DOUBLE)
    refuse(fmt::format("type is {}; expected {} to {}", given.type, int(HEADWAY_BYTES), int(HEADWAY_DOUBLE)));
  if (given.type == HEADWAY_BYTES && given.combine != HEADWAY_REPLACE)
    refuse("HEADWAY_BYTES can only replace; expected a type of numbers, or HEADWAY_REPLACE");
  if (given.data == nullptr && given.elements != 0)
    refuse(fmt::format("data is NULL, and it has {}", headway::base::counted(given.elements, "element")));
  halo::FieldRef made;
  switch (given.type) {
    case HEADWAY_INT32: made = field_of<std::int32_t>(given, "int32_t"); break;
    case HEADWAY_INT64: made = field_of<std::int64_t>(given, "int64_t"); break;
    case HEADWAY_FLOAT: made = field_of<float>(given, "float"); break;
    case HEADWAY_DOUBLE: made = field_of<double>(given, "double"); break;
    default: made = field_of<char>(given, "byte"); break;
  }
  if (made.view.stride < made.view.bytes)
    refuse(fmt::format("stride is {}, and an element has {}", given.stride,
                       headway::base::counted(made.view.bytes, "byte")));
  return made;
}

std::vector<halo::FieldRef> fields_of(std::size_t count, const headway_field* given, const char* call) {
  if (count != 0) require(given, call, "the array of fields");
  std::vector<halo::FieldRef> fields;
  for (std::size_t i = 0; i != count; ++i) fields.push_back(field_of(given[i], call, i));
  return fields;
}

}  // namespace

extern "C" {

const char* headway_error_text(void) { return error_text.c_str(); }

int headway_attach(void) {
  return guard(__func__, [] { headway::attach(); });
}

int headway_detach(void) {
  return guard(__func__, [call = __func__] {
    pe_of(call);
    for (const headway_exchange* one : exchanges) delete one;
    exchanges.clear();
    for (const headway_plan* one : plans) delete one;
    plans.clear();
    if (const int status = headway::detach())
      throw std::runtime_error(fmt::format("a PE ended with status {}", status));
  });
}

int headway_rank(void) {
  headway::Pe* const pe = headway::attached();
  return pe == nullptr ? -1 : int(pe->id().value);
}

int headway_size(void) {
  headway::Pe* const pe = headway::attached();
  return pe == nullptr ? -1 : int(pe->size());
}

int headway_plan_needed(uint64_t first, uint64_t owned, size_t count, const uint64_t* ids, headway_plan** plan) {
  return make_plan(__func__, plan, Needed{first, owned, count, ids});
}

int headway_plan_receiving(uint64_t owned, size_t count, const int* pes, const uint64_t* indices, headway_plan** plan) {
  return make_plan(__func__, plan, Receiving{owned, count, pes, indices});
}

int headway_plan_sending(uint64_t owned, size_t partners, const int* pes, const size_t* counts, const uint64_t* indices,
                         headway_plan** plan) {
  return make_plan(__func__, plan, Sending{owned, {partners, pes, counts, indices}});
}

int headway_plan_both(size_t to_partners, const int* to_pes, const size_t* to_counts, const uint64_t* to_indices,
                      size_t from_partners, const int* from_pes, const size_t* from_counts,
                      const uint64_t* from_indices, headway_plan** plan) {
  return make_plan(
      __func__, plan,
      Both{{to_partners, to_pes, to_counts, to_indices}, {from_partners, from_pes, from_counts, from_indices}});
}

int headway_plan_rebuild_needed(headway_plan* plan, uint64_t first, uint64_t owned, size_t count, const uint64_t* ids) {
  return rebuild_plan(__func__, plan, Needed{first, owned, count, ids});
}

int headway_plan_rebuild_receiving(headway_plan* plan, uint64_t owned, size_t count, const int* pes,
                                   const uint64_t* indices) {
  return rebuild_plan(__func__, plan, Receiving{owned, count, pes, indices});
}

int headway_plan_rebuild_sending(headway_plan* plan, uint64_t owned, size_t partners, const int* pes,
                                 const size_t* counts, const uint64_t* indices) {
  return rebuild_plan(__func__, plan, Sending{owned, {partners, pes, counts, indices}});
}

int headway_plan_rebuild_both(headway_plan* plan, size_t to_partners, const int* to_pes, const size_t* to_counts,
                              const uint64_t* to_indices, size_t from_partners, const int* from_pes,
                              const size_t* from_counts, const uint64_t* from_indices) {
  return rebuild_plan(
      __func__, plan,
      Both{{to_partners, to_pes, to_counts, to_indices}, {from_partners, from_pes, from_counts, from_indices}});
}

int headway_plan_reverse(const headway_plan* plan, headway_plan** reversed) {
  return guard(__func__, [=, call = __func__] {
    require(reversed, call, "reversed");
    keep(reversed, known(plans, plan, call, "plan").plan.reverse());
  });
}

int headway_plan_free(headway_plan* plan) {
  return guard(__func__, [=, call = __func__] {
    if (plan == nullptr) return;
    known(plans, plan, call, "plan");
    plans.erase(plan);
    delete plan;
  });
}

int headway_plan_sizes(const headway_plan* plan, uint64_t* extent, uint64_t* received) {
  return guard(__func__, [=, call = __func__] {
    const halo::Plan& one = known(plans, plan, call, "plan").plan;
    if (extent != nullptr) *extent = one.extent();
    if (received != nullptr) *received = one.received();
  });
}

int headway_exchange_make(const headway_plan* plan, size_t count, const headway_field* fields, int fixed_order,
                          headway_exchange** exchange) {
  return guard(__func__, [=, call = __func__] {
    headway::Pe& pe = pe_of(call);
    require(exchange, call, "exchange");
    const halo::Plan& by = known(plans, plan, call, "plan").plan;
    auto made = std::unique_ptr<headway_exchange>(
        new headway_exchange{halo::Exchange(pe, by, fields_of(count, fields, call),
                                            fixed_order != 0 ? halo::CombineOrder::fixed : halo::CombineOrder::any)});
    exchanges.insert(made.get());
    *exchange = made.release();
    headway::settle(pe);
  });
}

int headway_exchange_begin(headway_exchange* exchange) {
  return guard(__func__, [=, call = __func__] { known(exchanges, exchange, call, "exchange").exchange.begin(); });
}

int headway_exchange_done(headway_exchange* exchange, int* done) {
  return guard(__func__, [=, call = __func__] {
    halo::Exchange& begun = known(exchanges, exchange, call, "exchange").exchange;
    require(done, call, "done");
    pe_of(call).progress();
    *done = begun.done() ? 1 : 0;
  });
}

int headway_exchange_end(headway_exchange* exchange) {
  return guard(__func__, [=, call = __func__] {
    known(exchanges, exchange, call, "exchange").exchange.end();
    headway::settle(pe_of(call));
  });
}

int headway_exchange_run(headway_exchange* exchange) {
  return guard(__func__, [=, call = __func__] {
    known(exchanges, exchange, call, "exchange").exchange();
    headway::settle(pe_of(call));
  });
}

int headway_exchange_rebind(headway_exchange* exchange, size_t count, const headway_field* fields) {
  return guard(__func__, [=, call = __func__] {
    known(exchanges, exchange, call, "exchange").exchange.rebind(fields_of(count, fields, call));
  });
}

int headway_exchange_rebuild(headway_exchange* exchange, const headway_plan* plan, size_t count,
                             const headway_field* fields) {
  return guard(__func__, [=, call = __func__] {
    headway::Pe& pe = pe_of(call);
    halo::Exchange& rebuilt = known(exchanges, exchange, call, "exchange").exchange;
    rebuilt.rebuild(known(plans, plan, call, "plan").plan, fields_of(count, fields, call));
    headway::settle(pe);
  });
}

int headway_exchange_divide(headway_exchange* exchange, size_t parts, headway_part_rule rule, void* context) {
  return guard(__func__, [=, call = __func__] {
    halo::Exchange& divided = known(exchanges, exchange, call, "exchange").exchange;
    if (rule == nullptr) throw UsageError(fmt::format("{}(): rule is NULL; expected a function", call));
    divided.divide(parts, [=](std::uint64_t index) { return rule(index, context); });
  });
}

int headway_exchange_begin_parts(headway_exchange* exchange) {
  return guard(__func__, [=, call = __func__] { known(exchanges, exchange, call, "exchange").exchange.begin_parts(); });
}

// Other threads call these two while the PE's thread may change `exchanges`.

int headway_exchange_ready(headway_exchange* exchange, size_t part) {
  return guard(__func__, [=, call = __func__] {
    require(exchange, call, "exchange");
    exchange->exchange.ready(part);
  });
}

int headway_exchange_arrived(const headway_exchange* exchange, int pe, int* arrived) {
  return guard(__func__, [=, call = __func__] {
    require(exchange, call, "exchange");
    require(arrived, call, "arrived");
    *arrived = exchange->exchange.arrived(pe_id(pe, pe_of(call).size(), call)) ? 1 : 0;
  });
}

int headway_exchange_free(headway_exchange* exchange) {
  return guard(__func__, [=, call = __func__] {
    if (exchange == nullptr) return;
    known(exchanges, exchange, call, "exchange");
    exchanges.erase(exchange);
    delete exchange;
  });
}

}  // extern "C"
