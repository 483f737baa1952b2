# SPDX-License-Identifier: BSD-3-Clause
"""Operations on tables: each PE has some rows, as arrays of equal length. All of these are collective."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _core
from ._buffers import Array, bytes_of, refuse_objects
from ._collectives import all_gather, allreduce
from ._pe import Pe


@dataclass(frozen=True)
class Strings:
    """A column of n strings as Arrow has them: string i is data[offsets[i]:offsets[i + 1]].

    offsets: int32 or int64, shape (n + 1,), ascending. data: uint8, UTF-8 or any bytes.
    """

    offsets: npt.NDArray[Any]
    data: npt.NDArray[np.uint8]

    @staticmethod
    def of(values: Sequence[str | bytes]) -> "Strings":
        """A column of these strings. Slow: a loop in Python."""
        parts = [value.encode() if isinstance(value, str) else value for value in values]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return Strings(offsets, np.frombuffer(b"".join(parts), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self) -> list[str]:
        """The strings as Python's. Slow: a loop in Python."""
        text = self.data.tobytes()
        return [text[a:b].decode() for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def _checked(self) -> "Strings":
        offsets = np.ascontiguousarray(self.offsets, np.int64)
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > len(self.data):
            raise ValueError(f"offsets of strings must lie between 0 and {len(self.data)}, the bytes of data")
        if np.any(offsets[1:] < offsets[:-1]):
            raise ValueError("offsets of strings must ascend")
        return Strings(offsets, np.ascontiguousarray(self.data, np.uint8))


Column: TypeAlias = Array | Strings


def _column(given: npt.ArrayLike | Strings) -> Column:
    if isinstance(given, Strings):
        return given._checked()
    array = np.asarray(given)
    refuse_objects(array.dtype, "a column")
    if array.ndim == 0 or array.dtype.itemsize == 0:
        raise ValueError(f"a column of type {array.dtype} and shape {array.shape} has no rows of bytes")
    return np.ascontiguousarray(array)


def _owners(pe: Pe, keys: Column) -> npt.NDArray[np.uint32]:
    """The PE of each key, the same everywhere for equal keys."""
    if isinstance(keys, Strings):
        return _core.owners_of_strings(keys.offsets.view(np.uint8), keys.data).view(np.uint32)
    if keys.dtype.kind == "f":
        keys = keys + 0.0  # -0.0 equals 0.0
    width = keys.dtype.itemsize * int(np.prod(keys.shape[1:]))
    return _core.owners_of_keys(bytes_of(keys), width).view(np.uint32)


def _exchange(owners: npt.NDArray[np.uint32], columns: Sequence[Column]) -> list[Column]:
    empty = np.empty(0, np.uint8)
    data: list[npt.NDArray[np.uint8]] = []
    offsets: list[npt.NDArray[np.uint8]] = []
    widths: list[int] = []
    for column in columns:
        if len(column) != len(owners):
            raise ValueError(f"columns of a table have different lengths: {len(column)} and {len(owners)}")
        if isinstance(column, Strings):
            data.append(column.data)
            offsets.append(column.offsets.view(np.uint8))
            widths.append(0)
        else:
            data.append(bytes_of(column))
            offsets.append(empty)
            widths.append(column.dtype.itemsize * int(np.prod(column.shape[1:])))
    arrived = _core.exchange_rows(owners, data, offsets, widths)
    result: list[Column] = []
    for column, raw in zip(columns, arrived, strict=True):
        if isinstance(column, Strings):
            result.append(Strings(raw[0].view(np.int64), raw[1]))
        else:
            result.append(raw.view(column.dtype).reshape(-1, *column.shape[1:]))
    return result


def shuffle(
    pe: Pe,
    by: npt.ArrayLike | Strings,
    *columns: npt.ArrayLike | Strings,
    destinations: npt.ArrayLike | None = None,
) -> tuple[Any, ...]:
    """Collective. Move rows so that all rows with one key are on one PE. Returns (by, *columns) of the rows here.

    Args:
        by: the keys, shape (n,) or (n, ...); or Strings.
        columns: further columns with n rows: arrays of any type without references, or Strings.
        destinations: the PE of each row, integers of shape (n,); without it, a hash of the key.

    The types are the same on all PEs, n may differ. Rows arrive by number of the sender, each in its sender's order.
    ValueError for lengths that differ, UsageError for a destination out of range.
    """
    keys = _column(by)
    if destinations is None:
        owners = _owners(pe, keys)
    else:
        given = np.asarray(destinations)
        if given.dtype.kind not in "iu":
            raise TypeError(f"destinations have type {given.dtype}, allowed are integers")
        if len(given) and (given.min() < 0 or given.max() >= pe.size):
            raise ValueError(f"destinations from {given.min()} to {given.max()}, allowed are 0 to {pe.size - 1}")
        owners = np.ascontiguousarray(given, np.uint32)
    return tuple(_exchange(owners, [keys, *(_column(column) for column in columns)]))


def histogram(
    pe: Pe, values: npt.ArrayLike, bins: int = 10, range: tuple[float, float] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Collective. numpy.histogram over the values of all PEs: counts (bins,) and edges (bins + 1,), on every PE.

    For more bins than fit on each PE, add to a DistArray: counts.add_at(values, 1).
    """
    array = np.asarray(values).reshape(-1)
    if range is None:
        ends = np.array([-array.min(), array.max()] if len(array) else [-np.inf, -np.inf], np.float64)
        low, high = allreduce(pe, ends, "max")
        range = (0.0, 1.0) if not np.isfinite(low) else (float(-low), float(high))
    counts, edges = np.histogram(array, bins, range)
    return allreduce(pe, counts.astype(np.int64)), edges.astype(np.float64)


def unique(pe: Pe, values: npt.ArrayLike, return_counts: bool = False) -> Any:
    """Collective. The different values of all PEs: each on one PE, ascending there; with their counts (int64) if asked.

    values: shape (n,), n may differ; any type that numpy sorts.
    """
    here, counts = np.unique(np.asarray(values), return_counts=True)
    keys, sums = groupby_sum(pe, here, counts.astype(np.int64))
    return (keys, sums) if return_counts else keys


def groupby_sum(pe: Pe, keys: npt.ArrayLike, *values: npt.ArrayLike) -> tuple[Any, ...]:
    """Collective. The sums of the values of each key: (keys, *sums), each key on one PE, ascending there.

    keys: shape (n,), any type that numpy sorts. values: shape (n,); sums have the type of numpy's sum().
    """
    key, sums = _sum_by(np.asarray(keys), [np.asarray(value) for value in values])
    key, *arrived = shuffle(pe, key, *sums)
    key, sums = _sum_by(key, arrived)
    return (key, *sums)


def _sum_by(keys: Array, values: Sequence[Array]) -> tuple[Array, list[Array]]:
    for value in values:
        if value.shape != keys.shape:
            raise ValueError(f"keys of shape {keys.shape} and values of shape {value.shape}")
    order = np.argsort(keys, kind="stable")
    key = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.empty(0, np.int64)
    types = [np.sum(value[:0]).dtype for value in values]
    sums = [
        np.add.reduceat(value[order].astype(dtype, copy=False), starts) if len(key) else np.empty(0, dtype)
        for value, dtype in zip(values, types, strict=True)
    ]
    return key[starts], sums


def sort(pe: Pe, values: npt.ArrayLike) -> Array:
    """Collective. The values of all PEs in ascending order: this PE's part, and no value of PE p + 1 is smaller.

    values: shape (n,), n may differ. Parts have about the same length; equal values are on one PE.
    """
    here = np.sort(np.asarray(values))
    samples = here[np.linspace(0, len(here) - 1, min(len(here), 64), dtype=np.int64)] if len(here) else here
    gathered = np.sort(np.concatenate(all_gather(pe, samples)))
    if len(gathered) == 0:
        return here
    bounds = gathered[np.arange(1, pe.size) * len(gathered) // pe.size]
    owners = np.searchsorted(bounds, here, side="right").astype(np.uint32)
    (arrived,) = _exchange(owners, [np.ascontiguousarray(here)])
    assert not isinstance(arrived, Strings)
    return np.sort(arrived, kind="stable")


def join(
    pe: Pe,
    left: npt.ArrayLike,
    left_columns: Sequence[npt.ArrayLike],
    right: npt.ArrayLike,
    right_columns: Sequence[npt.ArrayLike],
) -> tuple[Any, ...]:
    """Collective. The inner join of two tables: (keys, *left columns, *right columns), rows by key on one PE.

    left, right: the keys, shape (n,) and (m,), of one type. Each pair of rows with equal keys gives a row.
    """
    left_type, right_type = np.asarray(left).dtype, np.asarray(right).dtype
    if left_type != right_type:
        raise TypeError(f"keys of a join have types {left_type} and {right_type}, allowed is one type")
    left_key, *left_here = shuffle(pe, left, *left_columns)
    right_key, *right_here = shuffle(pe, right, *right_columns)
    order = np.argsort(right_key, kind="stable")
    ordered = right_key[order]
    first = np.searchsorted(ordered, left_key, side="left")
    counts = np.searchsorted(ordered, left_key, side="right") - first
    from_left = np.repeat(np.arange(len(left_key)), counts)
    ends = np.cumsum(counts)
    within = np.arange(len(from_left)) - np.repeat(ends - counts, counts)
    from_right = order[np.repeat(first, counts) + within]
    return (
        left_key[from_left],
        *(column[from_left] for column in left_here),
        *(column[from_right] for column in right_here),
    )
