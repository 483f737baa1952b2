// SPDX-License-Identifier: BSD-3-Clause
/// Names of types for messages to users.
#pragma once

#include <string>
#include <string_view>

namespace headway::base {

/// Shortens a compiler's list of types to a programmer's names: "std::span<const char>" for
/// "std::span<const char, 18446744073709551615>", "std::string", "std::map<K, V>", "unsigned long". It only omits
/// default template arguments of the standard library, so different types stay different. Returns other text unchanged.
std::string short_type_names(std::string_view types);

}  // namespace headway::base
