// SPDX-License-Identifier: BSD-3-Clause
/// What differs between processors.
#pragma once

namespace headway::limit {

/// A moment of waiting, for the other thread of a core.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sixteen bytes, which move as one.
typedef long long Wide __attribute__((vector_size(16)));

/// Keeps the compiler from seeing where a value came from, and so from making one large copy of several small ones.
inline void forget_source(Wide& value) {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
  asm("" : "+m"(value));
#endif
}

}  // namespace headway::limit
