// SPDX-License-Identifier: BSD-3-Clause
/// Copies of many bytes, none of which overlap.
#pragma once

#include <cstddef>

namespace headway::base {

/// Equally fast for all addresses. The C library's copies run at a tenth of that speed or less if `to` lies a few bytes
/// behind `from` modulo 4096, as heap memory (16) and frames (their headers) do behind the begin of a page: the
/// processor compares only the low 12 address bits of a load with earlier stores, and waits.
void copy_large(std::byte* to, const std::byte* from, std::size_t bytes);

/// Copies with non-temporal stores, for a reader on a remote core: modified lines in this core's cache cost it several
/// times as much as lines in memory. Ends with a fence, because such stores keep no order.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

/// memcpy() or copy_large(), the faster one for these addresses and this length.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);

/// One of the three functions above.
using LargeCopy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace headway::base
