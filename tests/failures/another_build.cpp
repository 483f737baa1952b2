// SPDX-License-Identifier: BSD-3-Clause
/// Makes another program of the same parts.
extern const int another_build;
const int another_build = 1;
