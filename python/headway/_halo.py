# SPDX-License-Identifier: BSD-3-Clause
"""Ghosts: copies of elements of other PEs."""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from . import _core
from ._buffers import Array, refuse_objects, writable_bytes_of
from ._pe import Pe


class Halo:
    """Copies elements of other PEs behind the elements of this one, as often as the program wants.

        halo = headway.Halo(pe, n, ghosts)              # the global ids that this PE needs
        heights = np.zeros(halo.owned + halo.received)
        exchange = halo.exchange(heights)
        for step in range(100):
            exchange()                                  # heights[halo.owned + i] is the value of id ghosts[i]

    Collective. Ids 0 to n - 1 are dealt out in blocks: the first n % size PEs own one id more than the others.

    Args:
        pe: the PE.
        n: the number of elements of all PEs.
        ids: integers of shape (k,), in any order, repeated or the PE's own.

    Attributes: `owned`, the number of elements of this PE; `first`, the id of the first; `received`, the ghosts.
    """

    def __init__(self, pe: Pe, n: int, ids: npt.ArrayLike) -> None:
        array = np.asarray(ids)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise TypeError(f"ids of type {array.dtype} and shape {array.shape}, allowed are integers of shape (k,)")
        if array.size and (array.min() < 0 or array.max() >= n):
            raise ValueError(f"ids from {array.min()} to {array.max()}, allowed are 0 to {n - 1}")
        small, larger = divmod(n, pe.size)
        self.owned = small + (1 if pe.id < larger else 0)
        self.first = pe.id * small + min(pe.id, larger)
        self._plan = _core.make_plan(self.owned, np.ascontiguousarray(array, np.uint64), n)
        self.received = self._plan.received()

    def _check(self, array: Array) -> None:
        refuse_objects(array.dtype, "Halo")
        if len(array) < self.owned + self.received:
            raise ValueError(f"an array of {len(array)} elements, needed are {self.owned} own ones and "
                             f"{self.received} ghosts")

    def exchange(self, *arrays: Array) -> "HaloExchange":
        """Collective. An exchange of these arrays, all in one message for each partner.

        arrays: contiguous and writable, of owned + received elements or more; elements have 1, 2, 4, 8, 12, 16, 24,
        32, 40, 48 or 64 bytes (all of those behind the first dimension together).
        """
        for array in arrays:
            self._check(array)
        rows = [writable_bytes_of(array, "Halo.exchange()") for array in arrays]
        widths = [array.dtype.itemsize * int(np.prod(array.shape[1:])) for array in arrays]
        return HaloExchange(_core.make_exchange(self._plan, rows, widths))

    def sums(self, array: Array) -> "HaloExchange":
        """Collective. An exchange that adds the ghosts to the elements of their owners.

        array: as in exchange(), one dimension, integers of 4 and 8 bytes, float32 or float64.
        """
        self._check(array)
        rows = writable_bytes_of(array, "Halo.sums()")
        return HaloExchange(_core.make_sums(self._plan, array.dtype.kind, array.dtype.itemsize, rows))


class HaloExchange:
    """An exchange of arrays, made by Halo. The arrays must not be resized. Collective with the partners."""

    def __init__(self, exchange: _core.HaloExchange) -> None:
        self._exchange = exchange

    def __call__(self) -> None:
        """begin() and end()."""
        self._exchange.run()

    def begin(self) -> None:
        """Send this PE's elements. Until end(), do not change the ghosts."""
        self._exchange.begin()

    def done(self) -> bool:
        """Whether all elements have arrived."""
        _core.progress()
        return self._exchange.done()

    def end(self) -> None:
        """Wait until all elements have arrived."""
        self._exchange.end()

    def __await__(self) -> Generator[None, None, None]:
        self.begin()
        while not self.done():
            yield
        self.end()
