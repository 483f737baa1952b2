# SPDX-License-Identifier: BSD-3-Clause
"""The command `headway` of the wheel: starts the program that lies in this package."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Become the command. Its children find the Python of this environment as python3."""
    folder = Path(__file__).resolve().parent
    own = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath)
    if path.split(os.pathsep)[0] != own:
        os.environ["PATH"] = own + os.pathsep + path
    program = folder / "bin" / "headway"
    os.execv(program, [str(program), *sys.argv[1:]])
