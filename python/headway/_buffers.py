# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as the extension takes them: contiguous bytes."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Bytes: TypeAlias = npt.NDArray[np.uint8]


def bytes_of(array: Array) -> Bytes:
    """The bytes of a contiguous copy of the array, or of the array itself."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8)


def writable_bytes_of(array: Array, what: str) -> Bytes:
    """The bytes of the array itself. ValueError where they do not lie in a row, or must not change."""
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError(f"{what}: the array must be contiguous and writable")
    return array.reshape(-1).view(np.uint8)


def refuse_objects(dtype: np.dtype[Any], what: str) -> None:
    """TypeError for elements that are references to Python objects."""
    if dtype.hasobject:
        raise TypeError(f"{what}: {dtype} has references to Python objects; allowed are types without, such as int64, "
                        "float64 and structures of these")


def destinations_of(destinations: npt.ArrayLike) -> tuple[Bytes, int]:
    """PEs as bytes of integers, and the bytes of each: 4 or 8."""
    array = np.asarray(destinations)
    if array.dtype.kind not in "iu":
        raise TypeError(f"destinations have type {array.dtype}, allowed are integers")
    if array.dtype.itemsize not in (4, 8) or not array.dtype.isnative:
        array = array.astype(np.int64)
    return bytes_of(array), array.dtype.itemsize


def converted(values: npt.ArrayLike, dtype: np.dtype[Any]) -> Array:
    """The values as that type. TypeError where this could lose more than digits; integers of any kind become others."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        return array.astype(dtype, copy=False)
    return array.astype(dtype, casting="same_kind", copy=False)
