# SPDX-License-Identifier: BSD-3-Clause
"""Errors of input files."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """A file that cannot be used: one line with its name and the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
