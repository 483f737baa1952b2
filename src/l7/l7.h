/* SPDX-License-Identifier: BSD-3-Clause
 * For programs that include <l7.h>. */
#include "l7/l7.h"
