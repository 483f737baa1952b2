// SPDX-License-Identifier: BSD-3-Clause
/// The interface of models of protocols: states, rules and invariants.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace headway::murphi {

/// A rule with its parameters, as a number below Model::rules.
using Rule = std::uint16_t;

/// A state as it travels and is stored. Two states are equal if their bytes are.
template <std::size_t bytes>
using Packed = std::array<std::byte, bytes>;

template <class State>
Packed<sizeof(State)> pack(const State& state) {
  Packed<sizeof(State)> packed;
  std::memcpy(packed.data(), &state, sizeof(State));
  return packed;
}

template <class State>
State unpack(const Packed<sizeof(State)>& packed) {
  State state;
  std::memcpy(&state, packed.data(), sizeof(State));
  return state;
}

/// A model has a State without padding, in which a field that has no meaning has one fixed value, and
///
///     for_each_initial(f)              f(state) for each initial state, each once
///     for_each_successor(state, f)     f(rule, successor) for each enabled rule, also if the state stays
///     violated(state)                  the name of an invariant that does not hold, or nullptr
///     rule_name(rule), describe(state) for people
template <class Model>
concept IsModel = std::is_trivially_copyable_v<typename Model::State> &&
    requires(const Model& model, const typename Model::State& state, Rule rule) {
  model.for_each_initial([](const typename Model::State&) {});
  model.for_each_successor(state, [](Rule, const typename Model::State&) {});
  { model.violated(state) } -> std::same_as<const char*>;
  { model.rule_name(rule) } -> std::same_as<std::string>;
  { model.describe(state) } -> std::same_as<std::string>;
};

}  // namespace headway::murphi
