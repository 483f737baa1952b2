# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on arrays. The plain name waits, the name with _async returns a Future."""

import pickle
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from . import _core
from ._buffers import Array, bytes_of, refuse_objects
from ._pe import Pe

T = TypeVar("T")


class Future(Generic[T]):
    """The result of a collective that has begun. `await future` works in any event loop, asyncio's too."""

    def __init__(self, pending: _core.Pending, convert: Callable[[Any], T]) -> None:
        self._pending: _core.Pending | None = pending
        self._convert = convert
        self._value: T | None = None

    def done(self) -> bool:
        """Whether result() returns without waiting. Makes progress."""
        if self._pending is None:
            return True
        _core.progress()
        return self._pending.ready()

    def result(self) -> T:
        """Wait, running handlers, and return the result; the same one at every call. UsageError in a handler."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._value = self._convert(pending.take())
        return self._value  # type: ignore[return-value]

    def __await__(self) -> Generator[None, None, T]:
        while not self.done():
            yield
        return self.result()


def allreduce_async(pe: Pe, values: npt.ArrayLike, op: str = "sum") -> Future[Array]:
    """allreduce() that returns a future at once."""
    array = np.asarray(values)
    refuse_objects(array.dtype, "allreduce()")
    if array.dtype.kind == "b" and op in ("sum", "min", "max"):
        raise TypeError(f"allreduce() of bool with '{op}': allowed are 'and', 'or' and 'xor'")
    kind, dtype, shape = array.dtype.kind, array.dtype, array.shape
    pending = _core.allreduce(op, kind, dtype.itemsize, bytes_of(array))
    return Future(pending, lambda raw: raw.view(dtype).reshape(shape))


def allreduce(pe: Pe, values: npt.ArrayLike, op: str = "sum") -> Array:
    """Collective. The reduction of the arrays of all PEs, element by element, on every PE.

    Args:
        values: of any shape, the same on all PEs. Types: integers of 4 and 8 bytes, float32, float64; for 'and', 'or'
            and 'xor' any integers and bool.
        op: 'sum', 'min', 'max', 'and', 'or' or 'xor'.

    PEs that differ in length or type end the run. TypeError and SettingError for types and operations.
    """
    return allreduce_async(pe, values, op).result()


def _packed(array: Array) -> npt.NDArray[np.uint8]:
    """The array with its type and shape before it."""
    refuse_objects(array.dtype, "a collective of arrays")
    head = pickle.dumps((array.dtype, array.shape))
    padded = head + bytes(-len(head) % 16)
    size = np.array([len(padded), 0], np.uint64).view(np.uint8)
    return np.concatenate((size, np.frombuffer(padded, np.uint8), bytes_of(array)))


def _unpacked(raw: npt.NDArray[np.uint8]) -> Array:
    length = int(raw[:8].view(np.uint64)[0])
    dtype, shape = pickle.loads(raw[16 : 16 + length].tobytes())
    array: Array = raw[16 + length :].view(dtype).reshape(shape)
    return array


def broadcast_async(pe: Pe, values: npt.ArrayLike | None, root: int = 0) -> Future[Array]:
    """broadcast() that returns a future at once."""
    packed = _packed(np.asarray(values)) if pe.id == root else np.empty(0, np.uint8)
    return Future(_core.broadcast(packed, root), _unpacked)


def broadcast(pe: Pe, values: npt.ArrayLike | None, root: int = 0) -> Array:
    """Collective. The array of PE `root`, of any type and shape, on every PE. Others may give None."""
    return broadcast_async(pe, values, root).result()


def all_gather_async(pe: Pe, values: npt.ArrayLike) -> Future[list[Array]]:
    """all_gather() that returns a future at once."""
    packed = _packed(np.asarray(values))
    return Future(_core.all_gather(packed), lambda blocks: [_unpacked(block) for block in blocks])


def all_gather(pe: Pe, values: npt.ArrayLike) -> list[Array]:
    """Collective. The arrays of all PEs, by number, on every PE. They may differ in type and shape."""
    return all_gather_async(pe, values).result()


def all_to_all_async(pe: Pe, blocks: Sequence[npt.ArrayLike]) -> Future[list[Array]]:
    """all_to_all() that returns a future at once."""
    if len(blocks) != pe.size:
        raise ValueError(f"all_to_all() of {len(blocks)} blocks, allowed is one for each of the {pe.size} PEs")
    pending = _core.all_to_all([_packed(np.asarray(block)) for block in blocks])
    return Future(pending, lambda arrived: [_unpacked(block) for block in arrived])


def all_to_all(pe: Pe, blocks: Sequence[npt.ArrayLike]) -> list[Array]:
    """Collective. Block p goes to PE p. Returns the blocks for this PE, by number of the sender.

    Blocks may differ in type and shape, and may be empty. ValueError for another number of blocks than PEs.
    """
    return all_to_all_async(pe, blocks).result()


def barrier_async(pe: Pe) -> Future[None]:
    """Pe.barrier() that returns a future at once."""
    return Future(_core.barrier_async(), lambda _: None)


def broadcast_object(pe: Pe, value: Any, root: int = 0) -> Any:
    """Collective. Any object of PE `root` that can be pickled, on every PE. Slow: for settings, not for data."""
    raw = np.frombuffer(pickle.dumps(value), np.uint8) if pe.id == root else None
    return pickle.loads(broadcast(pe, raw, root).tobytes())


def all_gather_object(pe: Pe, value: Any) -> list[Any]:
    """Collective. Any objects that can be pickled, of all PEs, on every PE. Slow: for settings, not for data."""
    raw = np.frombuffer(pickle.dumps(value), np.uint8)
    return [pickle.loads(block.tobytes()) for block in all_gather(pe, raw)]
