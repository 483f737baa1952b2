# SPDX-License-Identifier: BSD-3-Clause
"""Checks the fields of result files that the report uses. Other fields, and missing ones, are free."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from .errors import InputError

Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_spread(value: Any) -> bool:
    return isinstance(value, dict) and all(is_number(value.get(key)) for key in ("median", "min", "max"))


def _is_spread_or_median(value: Any) -> bool:
    return isinstance(value, dict) and is_number(value.get("median")) and all(map(is_number, value.values()))


def _is_estimate(value: Any) -> bool:
    return isinstance(value, dict) and all(is_number(value.get(key)) for key in ("value", "low", "high"))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(one is None or is_number(one) for one in value.values())


NUMBER = (is_number, "a number")
SPREAD = (_is_spread, "an object with the numbers median, min and max")
FIELDS: dict[str, tuple[Check, str]] = {
    "pes": (_is_natural, "a whole number from 1 on"),
    **dict.fromkeys(
        (
            "messages",
            "frames",
            "wire_bytes",
            "fill_mean",
            "messages_per_second",
            "residual",
            "us",
            "ns_per_byte",
            "dialled_us",
            "traced_seconds",
        ),
        NUMBER,
    ),
    **dict.fromkeys(("one_way_us", "latency_us"), SPREAD),
    "slowdown": (_is_spread_or_median, "an object with the number median"),
    "seconds": (lambda value: is_number(value) or _is_spread(value), "a number, or " + SPREAD[1]),
    **dict.fromkeys(
        ("o_send_ns", "o_recv_ns", "g_ns", "latency_ns", "gap_per_byte_ns"),
        (_is_estimate, "an object with the numbers value, low and high"),
    ),
    **dict.fromkeys(("flush", "predicted_slowdown", "predicted"), (_are_numbers, "an object of numbers")),
    "predicted_seconds": (lambda value: is_number(value) or _are_numbers(value), "a number or an object of numbers"),
    "error": (lambda value: is_number(value) or _are_numbers(value), "a number or an object of numbers"),
    "options": (lambda value: isinstance(value, dict), "an object"),
    "conclusions": (lambda value: isinstance(value, list), "a list"),
}


def check_record(path: Path, number: int, record: dict) -> None:
    for name, (is_allowed, allowed) in FIELDS.items():
        value = record.get(name)
        if value is not None and not is_allowed(value):
            raise InputError(path, f"'{name}' of record {number} is {str(value)[:60]!r}: allowed is {allowed}")
    buffer = (record.get("options") or {}).get("buffer_bytes")
    if buffer is not None and not is_number(buffer):
        raise InputError(path, f"'buffer_bytes' of record {number} is {str(buffer)[:60]!r}: allowed is a number")


def check_slopes(path: Path, value: dict) -> None:
    check_record(path, 0, value)
    slopes = value["slopes"]
    if not isinstance(slopes, list) or not isinstance(value["path"], dict):
        raise InputError(path, "its 'slopes' are no list, or its 'path' is no object")
    for one in slopes:
        if not isinstance(one, dict) or not is_number(one.get("slope")) or "parameter" not in one:
            raise InputError(path, "one of its 'slopes' has no number 'slope' or no 'parameter'")
    for one in value.get("dialled") or []:
        if not isinstance(one, dict):
            raise InputError(path, "one of its 'dialled' is no object")
        for name in ("predicted_seconds", "measured_seconds", "error"):
            if one.get(name) is not None and not is_number(one[name]):
                raise InputError(path, f"'{name}' of its 'dialled' is no number")
