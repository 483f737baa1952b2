// SPDX-License-Identifier: BSD-3-Clause
/// The kinds of errors. A refusal (full, empty, busy) is a return value and never an exception.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace headway {

/// A setting, option or argument with an invalid value. The text names it, its value and the allowed values.
struct SettingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call that its contract forbids: a bug of the caller. The text names the call and the correct use.
struct UsageError : std::logic_error {
  using std::logic_error::logic_error;
};

/// A failure of the system. The text names the failed call and errno.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace base {

/// Throws SystemError "CALL: strerror(errno) (errno N)", with the current errno.
[[noreturn]] void throw_errno(const char* call);

/// Throws UsageError for a destination PE outside [0, pes).
[[noreturn]] void throw_destination_out_of_range(std::size_t destination, std::size_t pes);

}  // namespace base

/// Exit statuses that are Headway's own; all others are the program's.
namespace exit_status {
inline constexpr int unusable_arguments = 2;
inline constexpr int unusable_settings = 120;
inline constexpr int failed = 121;  // a PE died or a handler threw
inline constexpr int stalled = 122;
inline constexpr int undelivered = 123;
}  // namespace exit_status

}  // namespace headway
