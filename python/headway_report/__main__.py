# SPDX-License-Identifier: BSD-3-Clause
"""Runs as `python3 FOLDER/headway_report` and as `python3 -m headway_report`."""

import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"


def _start() -> int:
    if sys.version_info < (3, 10):
        print(f"headway report: Python {sys.version.split()[0]} is too old; allowed is 3.10 or later", file=sys.stderr)
        return 2
    if not __package__:
        sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if "--help" in sys.argv[1:] or "-h" in sys.argv[1:]:
        from headway_report.command import main

        return main(sys.argv[1:])
    try:
        import jinja2  # noqa: F401
    except ImportError:
        # The distribution's package belongs to the distribution's Python, and another one may precede it in PATH.
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(SYSTEM_PYTHON) != os.path.realpath(sys.executable):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, os.path.abspath(__file__), *sys.argv[1:]])
        print(
            "headway report: jinja2 is missing: install python3-jinja2 (apt, dnf) or `pip install jinja2`",
            file=sys.stderr,
        )
        return 2
    from headway_report.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_start())
