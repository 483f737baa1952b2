/// Combines one value of each PE and gives the result to all.
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

namespace collective {

/// Reduces `other` into `running`.
using Combine = std::function<void(std::byte* running, const std::byte* other)>;

/// Combines `bytes` of `value` with those of all PEs, in place.
void allreduce(Pe& pe, std::span<std::byte> value, const Combine& combine);

inline constexpr std::size_t value_bytes_max = 64 * 1024;

}  // namespace collective

/// Collective: returns op(op(v0, v1), ...) over the values of all PEs, the same on every PE. `op` is associative and
/// takes and returns what converts to T; values are combined in the order of the PEs. Waits, and runs handlers
/// meanwhile; UsageError inside a handler. T is trivially copyable, at most 64 KiB.
template <class T, class Op>
[[nodiscard]] T allreduce(Pe& pe, const T& value, Op op) {
  static_assert(FixedSize<T>, "headway: a value to be reduced is trivially copyable and carries no address");
  static_assert(sizeof(T) <= collective::value_bytes_max, "headway: a value to be reduced has at most 64 KiB");
  T result = value;
  if constexpr (FixedSize<T>) {
    collective::allreduce(pe, std::as_writable_bytes(std::span(&result, 1)),
                          [&op](std::byte* running, const std::byte* other) {
                            T a, b;
                            std::memcpy(&a, running, sizeof a);
                            std::memcpy(&b, other, sizeof b);
                            a = op(a, b);
                            std::memcpy(running, &a, sizeof a);
                          });
  }
  return result;
}

/// Collective: returns when every PE has come here. Runs handlers meanwhile; messages may be on their way still.
inline void barrier(Pe& pe) {
  collective::allreduce(pe, {}, [](std::byte*, const std::byte*) {});
}

}  // namespace headway
