// SPDX-License-Identifier: BSD-3-Clause
// Compiles fmt's implementation once. If each file that formats compiled it, a build would take twice as long.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
#if FMT_VERSION >= 100000
template void vformat_to(buffer<char>&, string_view, vformat_args<>::type, locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
