# SPDX-License-Identifier: BSD-3-Clause
"""Two runs side by side."""
from .facts import Facts
from .blocks import Section
def compare(first: Facts, second: Facts, topics: set[str]) -> list[Section]:
    return []
