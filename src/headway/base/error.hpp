/// The kinds of error. A refusal (full, empty, busy) is a return value and never one of these.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace headway {

/// A setting, option or argument that cannot be used: names it, its value and what is allowed.
struct SettingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The caller's bug: a call that its contract forbids. Says which call and what to do instead.
struct UsageError : std::logic_error {
  using std::logic_error::logic_error;
};

/// The world's failure: names the call that failed and errno.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws SystemError "CALL: strerror(errno) (errno N)", with the current errno.
[[noreturn]] void throw_errno(const char* call);

/// Throws UsageError for a destination PE outside [0, pes).
[[noreturn]] void throw_destination_out_of_range(std::size_t destination, std::size_t pes);

/// Exit statuses that are Headway's own; all others are the program's.
namespace exit_status {
inline constexpr int unusable_arguments = 2;
inline constexpr int unusable_settings = 120;
inline constexpr int failed = 121;  // a PE died or a handler threw
inline constexpr int stalled = 122;
inline constexpr int undelivered = 123;
}  // namespace exit_status

}  // namespace headway
