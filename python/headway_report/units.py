# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with units, for people."""

from __future__ import annotations

MISSING = "-"


def number(value: float | None) -> str:
    """Three digits; thousands of a whole number are set apart by a narrow space."""
    if value is None:
        return MISSING
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    if abs(value) >= 1000:
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def duration(ns: float | None) -> str:
    if ns is None:
        return MISSING
    if ns == 0:
        return "0 s"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= scale * 0.9995:
            return f"{_digits(ns / scale)} {unit}"
    return f"{_digits(ns)} ns"


def size(count: float | None) -> str:
    if count is None:
        return MISSING
    if abs(count) < 1024:
        return f"{_digits(count)} B"
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= scale:
            return f"{_digits(count / scale)} {unit}"
    return MISSING


def percent(part: float | None, whole: float = 1) -> str:
    if part is None:
        return MISSING
    share = 0.0 if whole == 0 else 100 * part / whole
    if 99 < share < 99.95:
        return f"{share:.3g} %"
    return f"{share:.0f} %" if share >= 9.5 or share == 0 else f"{share:.2g} %"


def counted(count: float, one: str, more: str | None = None) -> str:
    """`1 message`, `2 messages`."""
    return f"{number(count)} {one if count == 1 else more or one + 's'}"


def listed(numbers: list[int], most: int = 6) -> str:
    """`0, 3 and 5`; long lists are cut."""
    texts = [str(one) for one in numbers[:most]]
    if len(numbers) > most:
        return ", ".join(texts) + f" and {len(numbers) - most} more"
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def _digits(value: float) -> str:
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text
