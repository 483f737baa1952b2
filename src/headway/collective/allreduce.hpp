// SPDX-License-Identifier: BSD-3-Clause
/// Blocking `allreduce` and `barrier` of all PEs: the fastest calls for a program that waits at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/am/pe.hpp>
#include <headway/base/sendable.hpp>
#include <span>
#include <type_traits>

namespace headway {

/// Of reductions.
struct ReduceOptions {
  /// Contributions are combined in the order of ranks, always with the same brackets. The result is then the same to
  /// the bit in every run with as many members, and the operator need not commute. Costs one message more where the
  /// root is not rank 0, and a copy of each contribution that arrives before its turn.
  bool ordered = false;
};

namespace collective {

/// running = op(running, other).
using Combine = std::function<void(std::byte* running, const std::byte* other)>;

/// Combines `bytes` of `value` with those of all PEs, in place.
void allreduce(Pe& pe, std::span<std::byte> value, const Combine& combine);

inline constexpr std::size_t value_bytes_max = 64 * 1024;

/// Values that travel by boards or by control messages.
template <class T>
concept ShortValue = FixedSize<T> && sizeof(T) <= value_bytes_max;

}  // namespace collective

/// Collective, of all PEs: returns op(op(v0, v1), ...) over the values of all PEs, the same on every PE. Waits, and
/// runs handlers meanwhile; UsageError inside a handler. `op` is associative and may have captures. It takes and
/// returns what converts to T. Contributions are always combined in the order of PEs. T is trivially copyable, carries
/// no address and has at most 64 KiB; reduce.hpp has the overload for other values and for teams.
template <class T, class Op>
requires collective::ShortValue<std::remove_cvref_t<T>>
[[nodiscard]] std::remove_cvref_t<T> allreduce(Pe& pe, T&& value, Op op, ReduceOptions = {}) {
  using Value = std::remove_cvref_t<T>;
  Value result = value;
  collective::allreduce(pe, std::as_writable_bytes(std::span(&result, 1)),
                        [&op](std::byte* running, const std::byte* other) {
                          Value a, b;
                          std::memcpy(&a, running, sizeof a);
                          std::memcpy(&b, other, sizeof b);
                          a = op(a, b);
                          std::memcpy(running, &a, sizeof a);
                        });
  return result;
}

/// Collective, of all PEs: returns when every PE has called it. Runs handlers meanwhile; UsageError inside a handler.
/// **A barrier drains no messages**: messages sent before it may arrive after it. `quiesce()` waits for messages.
inline void barrier(Pe& pe) {
  collective::allreduce(pe, {}, [](std::byte*, const std::byte*) {});
}

}  // namespace headway
