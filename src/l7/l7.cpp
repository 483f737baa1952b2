// SPDX-License-Identifier: BSD-3-Clause
// Begin and end, updates and pushes.
#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/c/ranges.hpp>
#include <headway/launch/start.hpp>
#include <span>
#include <utility>

#include "state.hpp"

namespace headway::l7 {

State& state() {
  static State& one = *new State;
  return one;
}

void print_error(const char* call, const char* what) {
  const Pe* const pe = state().pe;
  std::fflush(stdout);
  std::fprintf(stderr, "headway: PE %zu: %s: %s\n", pe == nullptr ? std::size_t(0) : std::size_t(pe->id().value), call,
               what);
}

std::size_t bytes_of(int type) {
  switch (type) {
    case L7_BYTE:
    case L7_PACKED:
    case L7_CHAR:
    case L7_CHARACTER: return 1;
    case L7_SHORT: return sizeof(short);
    case L7_INT:
    case L7_FLOAT:
    case L7_LOGICAL:
    case L7_INTEGER4:
    case L7_REAL4: return 4;
    case L7_LONG: return sizeof(long);
    case L7_GENERIC8:
    case L7_LONG_LONG_INT:
    case L7_DOUBLE:
    case L7_INTEGER8:
    case L7_REAL8: return 8;
    default:
      throw BadArgument(fmt::format("type {} is none of enum L7_Datatype; allowed is {} to {}", type,
                                    int(L7_DATATYPE_MIN), int(L7_DATATYPE_MAX)));
  }
}

namespace {

template <class Function>
Function* mpi_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void init(int* mype, int* numpes, int* argc, char** argv) {
  State& mine = state();
  if (mine.initialised) throw BadArgument("it has been called before; call L7_Terminate before");
  const bool alone = numpes != nullptr && *numpes == -1;  // asks for no other process and no MPI
  if (!alone) {
    const bool ran = launch::mpi_flag("MPI_Initialized");
    mine.pe = &attach();
    // A program that nothing has launched may call MPI, too.
    auto* const start = mpi_function<int(int*, char***)>("MPI_Init");
    if (start != nullptr && mine.pe->size() == 1 && !launch::mpi_flag("MPI_Initialized")) start(argc, &argv);
    mine.started_mpi = !ran && launch::mpi_flag("MPI_Initialized");
  }
  mine.initialised = true;
  if (mype != nullptr) *mype = L7_Get_Rank();
  if (numpes != nullptr) *numpes = L7_Get_Numpes();
}

void terminate() {
  State& mine = state();
  if (!mine.initialised) throw BadArgument("L7_Init has not been called");
  mine.updates.clear();
  mine.pushes.clear();
  if (mine.pe != nullptr) detach();
  mine.pe = nullptr;
  mine.initialised = false;
  if (mine.started_mpi && !launch::mpi_flag("MPI_Finalized")) mpi_function<int()>("MPI_Finalize")();
}

/// Calls before L7_Init and after L7_Terminate.
template <class Body>
int guard_outside(const char* call, Body body) noexcept {
  try {
    body();
    return L7_OK;
  } catch (const std::exception& error) {
    print_error(call, error.what());
    return -1;
  }
}

template <class Plan>
Plan& plan_of(std::vector<std::unique_ptr<Plan>>& plans, int id) {
  if (id < 1 || std::size_t(id) > plans.size() || plans[std::size_t(id) - 1] == nullptr)
    throw BadArgument(fmt::format("id {} is no plan; the set-up gives it", id));
  return *plans[std::size_t(id) - 1];
}

/// Calls rebuild(plan) for the plan with this id. For id 0, and for one that has been freed, the plan is new, and kept
/// once rebuild() has returned.
template <class Plan, class Rebuild>
void set_up(std::vector<std::unique_ptr<Plan>>& plans, int* id, Rebuild rebuild) {
  if (*id != 0 && plans[std::size_t(*id) - 1] != nullptr) return rebuild(*plans[std::size_t(*id) - 1]);
  auto made = std::make_unique<Plan>(Plan{.plan = halo::Plan::both(*state().pe, {}, {})});
  rebuild(*made);
  if (*id == 0) {
    const auto unused = std::find(plans.begin(), plans.end(), nullptr);
    *id = int(unused - plans.begin()) + 1;
    if (unused == plans.end()) plans.emplace_back();
  }
  plans[std::size_t(*id) - 1] = std::move(made);
}

template <class Plan>
void require_id(const std::vector<std::unique_ptr<Plan>>& plans, const int* id) {
  if (id == nullptr) throw BadArgument("the id is NULL; expected an address");
  if (*id < 0 || std::size_t(*id) > plans.size())
    throw BadArgument(fmt::format("id {} is not allowed; expected 0 for a new plan, or the id of one", *id));
}

halo::FieldRef bytes_field(void* data, std::size_t bytes, std::uint64_t elements) {
  halo::FieldRef made;
  made.view = {static_cast<std::byte*>(data), bytes, bytes};
  made.elements = elements;
  made.type = fmt::format("{} bytes", bytes);
  return made;
}

/// Bases do not matter: only the distance from an owner's first id does.
template <class Id>
void setup(std::int64_t first, std::int64_t owned, const Id* needed, std::int64_t count, int* id) {
  State& mine = state();
  if (mine.alone()) return;
  require_id(mine.updates, id);
  if (owned < 0 || count < 0)
    throw BadArgument(fmt::format("{} elements owned and {} needed; expected 0 or more", owned, count));
  if (count != 0 && needed == nullptr) throw BadArgument("the array of needed ids is NULL; expected an address");
  std::vector<std::uint64_t> ids(needed, needed + count);
  const c::Ranges ranges(*mine.pe, std::uint64_t(first), std::uint64_t(owned), ids);
  set_up(mine.updates, id, [&](UpdatePlan& plan) {
    plan.plan.rebuild(*mine.pe, std::uint64_t(owned), ids, [&](std::uint64_t one) { return ranges.find(one); });
    plan.owned = std::uint64_t(owned);
    plan.needed = std::uint64_t(count);
    for (auto& [bytes, update] : plan.updates) update.has_plan = false;
  });
}

void update(void* data, int type, int id) {
  State& mine = state();
  const std::size_t bytes = bytes_of(type);
  if (mine.alone()) return;
  UpdatePlan& plan = plan_of(mine.updates, id);
  const auto field = [&] { return bytes_field(data, bytes, plan.owned + plan.needed); };
  const auto known = plan.updates.find(bytes);
  if (known == plan.updates.end()) {
    UpdatePlan::Update made{data, halo::Exchange(*mine.pe, plan.plan, {field()})};
    plan.updates.emplace(bytes, std::move(made)).first->second.exchange();
    return;
  }
  UpdatePlan::Update& update = known->second;
  if (!update.has_plan)
    update.exchange.rebuild(plan.plan, {field()});
  else if (update.data != data)
    update.exchange.rebind({field()});
  update.has_plan = true;
  update.data = data;
  update.exchange();
}

/// Arrived elements lie behind those that leave, by rising rank of the sender. The caller wants them in the order of
/// its partners.
void place_arriving(PushPlan& plan, std::span<const int> partners) {
  std::map<std::size_t, PushPlan::Piece> by_sender;
  plan.arriving.clear();
  plan.arrive = 0;
  for (const halo::Partner& one : plan.plan.receives()) {
    by_sender[one.pe] = {plan.sent.size() + plan.arrive, 0, one.list.size()};
    plan.arrive += one.list.size();
  }
  std::uint64_t at = 0;
  const auto place = [&](PushPlan::Piece piece) {
    piece.to = at;
    at += piece.count;
    plan.arriving.push_back(piece);
  };
  for (const int partner : partners) {
    const auto piece = by_sender.extract(std::size_t(partner));
    if (!piece.empty()) place(piece.mapped());
  }
  for (const auto& [sender, piece] : by_sender) place(piece);  // senders to which this PE sends nothing
}

void push_setup(int partners, const int* partner, const int* count, const int* const* lists, int* total, int* id) {
  State& mine = state();
  if (total != nullptr) *total = 0;
  if (mine.alone()) return;
  require_id(mine.pushes, id);
  if (partners < 0) throw BadArgument(fmt::format("{} partners; expected 0 or more", partners));
  std::vector<halo::PartnerIndices> sends;
  std::vector<std::uint64_t> sent;
  for (int p = 0; p != partners; ++p) {
    if (partner[p] < 0 || std::size_t(partner[p]) >= mine.pe->size()) {
      throw BadArgument(
          fmt::format("partner {} is not there; this run has PEs 0 to {}", partner[p], mine.pe->size() - 1));
    }
    halo::PartnerIndices list{PeId(std::size_t(partner[p])), {}};
    for (int i = 0; i < count[p]; ++i) {
      if (lists[p][i] < 0)
        throw BadArgument(fmt::format("index {} for partner {}; expected 0 or more", lists[p][i], partner[p]));
      list.indices.push_back(sent.size());
      sent.push_back(std::uint64_t(lists[p][i]));
    }
    sends.push_back(std::move(list));
  }
  set_up(mine.pushes, id, [&](PushPlan& plan) {
    plan.plan.rebuild(*mine.pe, sent.size(), sends);
    plan.sent = std::move(sent);
    place_arriving(plan, {partner, std::size_t(partners)});
    for (auto& [bytes, push] : plan.pushes) push.has_plan = false;
    if (total != nullptr) *total = int(plan.arrive);
  });
}

template <std::size_t bytes>
void gather(const std::byte* from, std::span<const std::uint64_t> indices, std::byte* to) {
  for (const std::uint64_t index : indices) {
    std::memcpy(to, from + index * bytes, bytes);
    to += bytes;
  }
}

void push_update(const void* in, void* out, int type, int id) {
  State& mine = state();
  const std::size_t bytes = bytes_of(type);
  if (mine.alone()) return;
  PushPlan& plan = plan_of(mine.pushes, id);
  const std::uint64_t elements = plan.sent.size() + plan.arrive;
  auto known = plan.pushes.find(bytes);
  if (known == plan.pushes.end()) {
    std::vector<std::byte> memory(elements * bytes);
    halo::Exchange exchange(*mine.pe, plan.plan, {bytes_field(memory.data(), bytes, elements)});
    known = plan.pushes.emplace(bytes, PushPlan::Push{std::move(memory), std::move(exchange)}).first;
  }
  PushPlan::Push& push = known->second;
  if (!push.has_plan) {
    push.memory.resize(elements * bytes);
    push.exchange.rebuild(plan.plan, {bytes_field(push.memory.data(), bytes, elements)});
    push.has_plan = true;
  }
  std::byte* const memory = push.memory.data();
  const auto* const from = static_cast<const std::byte*>(in);
  switch (bytes) {
    case 1: gather<1>(from, plan.sent, memory); break;
    case 2: gather<2>(from, plan.sent, memory); break;
    case 4: gather<4>(from, plan.sent, memory); break;
    default: gather<8>(from, plan.sent, memory); break;
  }
  push.exchange();
  for (const PushPlan::Piece& piece : plan.arriving)
    std::memcpy(static_cast<std::byte*>(out) + piece.to * bytes, memory + piece.from * bytes, piece.count * bytes);
}

}  // namespace
}  // namespace headway::l7

using namespace headway::l7;

extern "C" {

int L7_Init(int* mype, int* numpes, int* argc, char** argv, int, int) {
  return guard_outside(__func__, [=] { init(mype, numpes, argc, argv); });
}
int L7_Terminate(void) { return guard_outside(__func__, terminate); }

int L7_Get_Rank(void) { return state().pe == nullptr ? 0 : int(state().pe->id().value); }
int L7_Get_Numpes(void) { return state().pe == nullptr ? 1 : int(state().pe->size()); }
double L7_Wtime(void) { return double(headway::base::monotonic_ns()) * 1e-9; }
int L7_Get_Timeout_Signal(void) { return SIGURG; }
long long L7_Address(void* var) { return static_cast<long long>(reinterpret_cast<std::intptr_t>(var)); }

int L7_Setup(const int, const int my_start_index, const int num_indices_owned, int* indices_needed,
             const int num_indices_needed, int* l7_id) {
  return guard(__func__, [=] { setup(my_start_index, num_indices_owned, indices_needed, num_indices_needed, l7_id); });
}
int L7_Setup_Int8(const int, const long long my_start_index, const long long num_indices_owned,
                  const long long* indices_needed, const long long num_indices_needed, int* l7_id) {
  return guard(__func__, [=] { setup(my_start_index, num_indices_owned, indices_needed, num_indices_needed, l7_id); });
}
int L7_Update(void* data_buffer, const enum L7_Datatype l7_datatype, const int l7_id) {
  return guard(__func__, [=] { update(data_buffer, int(l7_datatype), l7_id); });
}
int L7_Free(const int* l7_id) {
  return guard(__func__, [=] {
    if (state().alone()) return;
    const int id = l7_id == nullptr ? -1 : *l7_id;
    plan_of(state().updates, id);
    state().updates[std::size_t(id) - 1].reset();
  });
}
int L7_Get_Num_Indices(const int l7_id) {
  std::uint64_t count = 0;
  const int result = guard(__func__, [&] {
    if (state().alone()) return;
    for (const headway::halo::Partner& one : plan_of(state().updates, l7_id).plan.sends()) count += one.list.size();
  });
  return result == L7_OK ? int(count) : result;
}
int L7_Get_Local_Indices(const int l7_id, int* local_indices) {
  return guard(__func__, [=, at = std::size_t(0)]() mutable {
    if (state().alone()) return;
    for (const headway::halo::Partner& one : plan_of(state().updates, l7_id).plan.sends()) {
      for (std::size_t i = 0; i != one.list.size(); ++i) local_indices[at++] = int(one.list[i]);
    }
  });
}

int L7_Push_Setup(const int num_comm_partners, const int* comm_partner, const int* send_buffer_count,
                  int** send_database, int* receive_count_total, int* l7_push_id) {
  return guard(__func__, [=] {
    push_setup(num_comm_partners, comm_partner, send_buffer_count, send_database, receive_count_total, l7_push_id);
  });
}
int L7_Push_Update(const int* array, int* return_array, const int l7_push_id) {
  return guard(__func__, [=] { push_update(array, return_array, L7_INT, l7_push_id); });
}
int L7_Push_Update_Type(const void* array, void* return_array, const enum L7_Datatype l7_datatype,
                        const int l7_push_id) {
  return guard(__func__, [=] { push_update(array, return_array, int(l7_datatype), l7_push_id); });
}
int L7_Push_Free(const int* l7_push_id) {
  return guard(__func__, [=] {
    if (state().alone()) return;
    const int id = l7_push_id == nullptr ? -1 : *l7_push_id;
    plan_of(state().pushes, id);
    state().pushes[std::size_t(id) - 1].reset();
  });
}

int L7_Dev_Init(void) { return L7_OK; }
int L7_Dev_Setup(const int num_base, const int my_start_index, const int num_indices_owned, int* indices_needed,
                 const int num_indices_needed, int* l7_id) {
  return L7_Setup(num_base, my_start_index, num_indices_owned, indices_needed, num_indices_needed, l7_id);
}
int L7_Dev_Free(void) { return L7_OK; }

}  // extern "C"
