// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/collective/operation.hpp>

namespace headway::collective {
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::reduce: return "reduce";
    case Kind::allreduce: return "allreduce";
    case Kind::broadcast: return "broadcast";
    case Kind::barrier: return "barrier";
    case Kind::scan: return "scan";
    case Kind::exclusive_scan: return "exclusive_scan";
    case Kind::gather: return "gather";
    case Kind::all_gather: return "all_gather";
    case Kind::scatter: return "scatter";
    case Kind::all_to_all: return "all_to_all";
    case Kind::reduce_scatter: return "reduce_scatter";
  }
  return "none";
}

namespace {

bool has_root(Kind kind) {
  return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather || kind == Kind::scatter;
}

}  // namespace

Operation::Operation(Kind kind, std::uint32_t hash, std::string (*type)(), std::string (*op)(),
                     ReduceBytes reduce_bytes)
    : kind_(kind), number_(hash & ~1u), type_(type), op_(op), reduction_(reduce_bytes), next_(first_) {
  while (find(number_) != nullptr) number_ += 2;
  first_ = this;
}

const Operation* Operation::find(std::uint32_t number) {
  const Operation* operation = first_;
  while (operation != nullptr && operation->number_ != (number & ~1u)) operation = operation->next_;
  return operation;
}

std::string Operation::place_among_namesakes() const {
  std::size_t place = 0, all = 0;
  for (const Operation* other = first_; other != nullptr; other = other->next_) {
    if (other->kind_ != kind_ || other->op_ == nullptr || other->type_() != type_() || other->op_() != op_()) continue;
    ++all;
    if (other == this) place = all;
  }
  return all == 1 ? "" : fmt::format(" ({} of {} of this name)", place, all);
}

std::string Operation::describe(std::uint32_t number, std::uint64_t count, std::uint32_t root) {
  const bool ordered = (number & 1) != 0;
  const Operation* const operation = find(number);
  if (operation == nullptr) return "none that this program has";
  if (operation->kind_ == Kind::barrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", name_of(operation->kind_), count, operation->type_());
  if (operation->op_ != nullptr)
    text += fmt::format(" with {}{}", operation->op_(), operation->place_among_namesakes());
  if (ordered) text += ", ordered";
  if (has_root(operation->kind_)) text += fmt::format(", root {}", root);
  return text;
}

}  // namespace headway::collective
