/// Names of types for people.
#pragma once

#include <string>
#include <string_view>

namespace headway {

/// A list of types, as a compiler writes it, in the words of a program: "std::span<const char>" for
/// "std::span<const char, 18446744073709551615>", "std::string", "std::map<K, V>", "unsigned long". What is left out are
/// template arguments of the standard library that are the default, so different types stay different. What is no list of
/// types comes back as it is.
std::string as_written(std::string_view types);

}  // namespace headway
