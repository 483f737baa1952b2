# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are spread over all PEs."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._buffers import Array, bytes_of, converted
from ._collectives import all_gather_object
from ._pe import Pe


class DistArray:
    """n elements in one dimension, dealt out to the PEs; they start as 0.

        x = headway.DistArray(pe, n, np.int64)
        x[indices] = values                 # any elements of any PE, by index
        pe.barrier()
        gathered = x[indices]
        x.add_at(indices, 1)                # atomic

    Collective. Access is not: a PE reads and writes elements whenever it wants, other PEs of its host need not take
    part, and those of other hosts do so in calls that wait. Reads and writes of several PEs have no order before
    pe.barrier(). Each element is read and written whole.

    Args:
        pe: the PE.
        n: the number of elements of all PEs together.
        dtype: a type of 1, 2, 4 or 8 bytes, without references to objects.
        layout: 'block', PE p has the elements from p * ceil(n / size) on; or 'cyclic', PE p has p, p + size, ...

    The memory lies in the pool of the PE. A later DistArray reuses it when the arrays of all PEs are gone, or after
    free(). UsageError where the pool is too small.
    """

    def __init__(
        self, pe: Pe, n: int, dtype: npt.DTypeLike = np.float64, layout: Literal["block", "cyclic"] = "block"
    ) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError(f"DistArray: {self.dtype} has references to Python objects")
        if n < 0:
            raise ValueError(f"DistArray of {n} elements, allowed are 0 or more")
        if layout not in ("block", "cyclic"):
            raise ValueError(f"the layout '{layout}' is not allowed; allowed are 'block' and 'cyclic'")
        _free_unused(pe)
        self._pe = pe
        self._n = n
        self.layout: str = layout
        self._words: _core.Words | None = _core.make_array(n, self.dtype.itemsize, 1 if layout == "cyclic" else 0)
        self._number = _arrays.add(self._words)

    def _open(self) -> _core.Words:
        if self._words is None:
            raise ValueError("this DistArray has been freed")
        return self._words

    def __len__(self) -> int:
        return self._n

    @property
    def shape(self) -> tuple[int]:
        """(n,)"""
        return (self._n,)

    @property
    def local(self) -> Array:
        """The elements of this PE, ascending: an array in the memory of the DistArray, valid until free()."""
        return self._open().local().view(self.dtype)

    @property
    def local_indices(self) -> npt.NDArray[np.int64]:
        """The indices of the elements of `local`."""
        return self._open().global_indices().view(np.int64)

    def _indices(self, key: Any) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
        if isinstance(key, slice):
            key = np.arange(*key.indices(self._n), dtype=np.int64)
        array = np.asarray(key)
        if array.dtype.kind == "b":
            raise TypeError("a DistArray takes no masks; give indices, such as np.flatnonzero(mask)")
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise TypeError(f"indices have type {array.dtype}, allowed are integers")
        return np.ascontiguousarray(array, dtype=np.int64).reshape(-1), array.shape

    def __getitem__(self, key: Any) -> Any:
        """The elements at these indices: integers of any shape, or a slice; an array of that shape. Waits for them.

        IndexError for an index outside of -n to n - 1.
        """
        indices, shape = self._indices(key)
        values = self._open().read(indices).view(self.dtype)
        return values[0] if shape == () else values.reshape(shape)

    def __setitem__(self, key: Any, values: npt.ArrayLike) -> None:
        """Write the elements; of several values for one index any one remains. Returns when they are in place."""
        indices, given = self._values(key, values)
        if len(indices) != 0:
            self._open().write(indices, given)

    def add_at(self, key: Any, values: npt.ArrayLike) -> None:
        """Add to the elements, also several times to one; atomic. Returns when the sums are in place.

        For integers of 4 and 8 bytes, float32 and float64. Sums of floating-point numbers depend on their order.
        """
        if self.dtype.kind not in "iuf" or self.dtype.itemsize < 4:
            raise TypeError(f"add_at() of {self.dtype}; allowed are integers of 4 and 8 bytes, float32 and float64")
        indices, given = self._values(key, values)
        if len(indices) != 0:
            self._open().add(self.dtype.kind, indices, given)

    def _values(self, key: Any, values: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        indices, shape = self._indices(key)
        array = converted(values, self.dtype)
        if array.ndim != 0:
            array = np.broadcast_to(array, shape)
        return indices, bytes_of(array)

    def __del__(self) -> None:
        if getattr(self, "_words", None) is not None:
            _arrays.unused.add(self._number)

    def free(self) -> None:
        """Collective. Give the memory back. No PE uses the array any more."""
        if self._words is not None:
            _core.barrier()
            words, self._words = self._words, None
            _arrays.free(self._number, words)


class _Arrays:
    """The arrays of this PE by number, which all PEs count in the same way."""

    def __init__(self) -> None:
        self.next = 0
        self.words: dict[int, _core.Words] = {}
        self.unused: set[int] = set()

    def add(self, words: _core.Words) -> int:
        self.words[self.next] = words
        self.next += 1
        return self.next - 1

    def free(self, number: int, words: _core.Words) -> None:
        del self.words[number]
        _core.free_array(words)


_arrays = _Arrays()


def _free_unused(pe: Pe) -> None:
    """All PEs free the same arrays in the same order: those that none uses."""
    if not _arrays.words:
        return
    unused = set.intersection(*(set(one) for one in all_gather_object(pe, sorted(_arrays.unused))))
    for number in sorted(unused):
        _arrays.unused.discard(number)
        _arrays.free(number, _arrays.words[number])
