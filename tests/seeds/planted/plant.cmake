# SPDX-License-Identifier: BSD-3-Clause
# Reads DESCRIPTION, which sets FROM, TO, REPLACE and WITH, and writes FROM to TO with that one place changed.
include(${DESCRIPTION})
file(READ ${FROM} text)
string(FIND "${text}" "${REPLACE}" at)
string(FIND "${text}" "${REPLACE}" last REVERSE)
if(at EQUAL -1 OR NOT at EQUAL last)
  message(FATAL_ERROR
    "A bug is to be planted in ${FROM} where it says\n${REPLACE}\nwhich must be there exactly once. If the code has "
                      "changed, plant the same bug in what it says now.")
endif()
string(REPLACE "${REPLACE}" "${WITH}" text "${text}")
file(WRITE ${TO} "${text}")
