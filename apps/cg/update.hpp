// SPDX-License-Identifier: BSD-3-Clause
/// What an iteration does to a row of its vectors, in one pass. Functions of their own, for pointers are known to lead
/// to different rows only as parameters; then several cells are computed at a time.
#pragma once

#include <cstddef>

namespace headway::cg {

inline void update_solution(double alpha, std::ptrdiff_t columns, double* __restrict x, double* __restrict r,
                            const double* __restrict p, const double* __restrict s) {
  for (std::ptrdiff_t i = 0; i < columns; ++i) {
    x[i] += alpha * p[i];
    r[i] -= alpha * s[i];
  }
}

inline void update_direction(double beta, std::ptrdiff_t columns, double* __restrict p, const double* __restrict r) {
  for (std::ptrdiff_t i = 0; i < columns; ++i) p[i] = r[i] + beta * p[i];
}

/// Both, where w = A r and s = A p.
inline void update_merged(double alpha, double beta, std::ptrdiff_t columns, double* __restrict x, double* __restrict r,
                          double* __restrict p, double* __restrict s, const double* __restrict w) {
  for (std::ptrdiff_t i = 0; i < columns; ++i) {
    p[i] = r[i] + beta * p[i];
    s[i] = w[i] + beta * s[i];
    x[i] += alpha * p[i];
    r[i] -= alpha * s[i];
  }
}

/// And w, where z = A s and q = A w.
inline void update_pipelined(double alpha, double beta, std::ptrdiff_t columns, double* __restrict x,
                             double* __restrict r, double* __restrict p, double* __restrict s, double* __restrict w,
                             double* __restrict z, const double* __restrict q) {
  for (std::ptrdiff_t i = 0; i < columns; ++i) {
    z[i] = q[i] + beta * z[i];
    s[i] = w[i] + beta * s[i];
    p[i] = r[i] + beta * p[i];
    x[i] += alpha * p[i];
    r[i] -= alpha * s[i];
    w[i] -= alpha * z[i];
  }
}

}  // namespace headway::cg
