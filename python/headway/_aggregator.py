# SPDX-License-Identifier: BSD-3-Clause
"""Items that travel to handlers on other PEs, many to a frame."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _core
from ._buffers import Array, bytes_of, converted, destinations_of, refuse_objects, writable_bytes_of
from ._pe import Pe


class Update:
    """A handler of the library that changes elements of an array. Made by add(), min(), max(), xor() and put()."""

    def __init__(self, operation: str, target: Array) -> None:
        refuse_objects(target.dtype, f"headway.{operation}()")
        if target.ndim != 1:
            raise ValueError(f"headway.{operation}(): the array has {target.ndim} dimensions, allowed is 1")
        self.operation = operation
        self.target = target
        self.bytes = writable_bytes_of(target, f"headway.{operation}()")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the items: fields `index` (int64, of the target) and `value` (as the target)."""
        return np.dtype([("index", np.int64), ("value", self.target.dtype)])


class Append:
    """The handler of the library that keeps all items, until Aggregator.take()."""


Handler: TypeAlias = Callable[[Array], object]


def add(target: Array) -> Update:
    """target[index] += value for each item. The target: 1 dimension, integers, float32 or float64, contiguous."""
    return Update("add", target)


def min(target: Array) -> Update:
    """target[index] = min(target[index], value) for each item, as add()."""
    return Update("min", target)


def max(target: Array) -> Update:
    """target[index] = max(target[index], value) for each item, as add()."""
    return Update("max", target)


def xor(target: Array) -> Update:
    """target[index] ^= value for each item. The target: 1 dimension, integers, contiguous."""
    return Update("xor", target)


def put(target: Array) -> Update:
    """target[index] = value for each item; of several for one index, any one remains. The target: 1 dimension."""
    return Update("put", target)


append = Append()


class Aggregator:
    """Sends items of one type to a handler on any PE.

        table = np.zeros(1000, np.int64)
        updates = headway.Aggregator(pe, handler=headway.add(table))
        updates.send(owners, (indices, values))
        pe.quiesce()                                # every item has been handled, everywhere

    Collective: all PEs make their aggregators in the same order, with the same types.

    Args:
        pe: the PE.
        dtype: the type of an item, without references to objects; structures are allowed. Left out for add(), min(),
            max(), xor() and put(), whose items are an index and a value.
        handler: a function, which is called with batches: handler(batch), batch of shape (n,) and type dtype, in the
            memory of the receiver's frames. The batch must not be used after the handler returns, so keep copies. The
            handler may send and must not wait. An exception that it raises ends the run. Or add(), min(), max(),
            xor(), put() of an array; or headway.append.
        name: appears in reports and errors; the same on all PEs.
        ordered: items of one pair of PEs are handled in the order of their sends.
        buffer_bytes: bytes of a frame, 256 to 2^28; 0 for the derived size.

    TypeError for types with references. SettingError for options out of range.
    """

    def __init__(
        self,
        pe: Pe,
        dtype: npt.DTypeLike | None = None,
        handler: Handler | Update | Append = append,
        *,
        name: str = "",
        ordered: bool = False,
        buffer_bytes: int = 0,
    ) -> None:
        if isinstance(handler, Update):
            self.dtype = handler.dtype
            if dtype is not None and np.dtype(dtype) != self.dtype:
                raise TypeError(
                    f"items of headway.{handler.operation}() have type {self.dtype}, not {np.dtype(dtype)}: leave "
                    "dtype out"
                )
            target = handler.target.dtype
            self._exchange = _core.exchange_update(
                name, ordered, buffer_bytes, self.dtype.itemsize, handler.operation, target.kind, handler.bytes
            )
            return
        if dtype is None:
            raise TypeError("an Aggregator with this handler needs the dtype of its items")
        self.dtype = np.dtype(dtype)
        refuse_objects(self.dtype, "Aggregator")
        if self.dtype.itemsize == 0:
            raise TypeError(f"items of type {self.dtype} have no bytes")
        if isinstance(handler, Append):
            self._exchange = _core.exchange_append(name, ordered, buffer_bytes, self.dtype.itemsize)
        else:
            self._exchange = _core.exchange_to_function(
                name, ordered, buffer_bytes, self.dtype.itemsize, _deliver_to(handler, self.dtype)
            )

    def send(self, destinations: npt.ArrayLike, payload: npt.ArrayLike | tuple[npt.ArrayLike, ...]) -> None:
        """Send item i of the payload to PE destinations[i].

        Args:
            destinations: integers of shape (n,), 0 to pe.size - 1; int32, int64 and their unsigned forms are not
                copied. Or one integer for all items.
            payload: items of type dtype, shape (n,); or a tuple with an array of shape (n,), or one value, for each
                field of dtype.

        May wait for memory, and runs handlers meanwhile; in a handler it never waits. ValueError for shapes that
        differ, UsageError for a destination out of range; the items before it have been sent then.
        """
        to, width = destinations_of(destinations)
        count = len(to) // width
        if isinstance(payload, tuple):
            self._send_columns(to, width, count, payload)
            return
        items = np.asarray(payload)
        if items.dtype != self.dtype:
            if items.dtype.names is not None or self.dtype.names is not None:
                raise TypeError(f"the payload has type {items.dtype}, this aggregator sends {self.dtype}")
            items = converted(items, self.dtype)
        if items.ndim == 0:
            items = items.reshape(1)
        if items.ndim != 1:
            raise ValueError(f"the payload has {items.ndim} dimensions, allowed is 1")
        if count != len(items) and np.ndim(destinations) != 0:
            raise ValueError(f"{count} destinations for {len(items)} items")
        if len(items) != 0:
            self._exchange.send(to, width, bytes_of(items))

    def _send_columns(self, to: Array, width: int, count: int, payload: Sequence[npt.ArrayLike]) -> None:
        names = self.dtype.names
        if names is None or len(names) != len(payload):
            fields = 1 if names is None else len(names)
            raise ValueError(f"a payload of {len(payload)} arrays for items of {fields} fields")
        columns: list[Array] = [
            converted(given, self.dtype[name])
            for name, given in zip(names, payload, strict=True)
        ]
        lengths = {len(column) for column in columns if column.ndim == 1}
        if any(column.ndim > 1 for column in columns):
            raise ValueError("the arrays of a payload have one dimension")
        if count != 1 or not lengths:
            lengths.add(count)
        if len(lengths) > 1:
            raise ValueError(f"the arrays of a payload and the destinations have different lengths: {sorted(lengths)}")
        items = lengths.pop()
        if items == 0:
            return
        widths = [self.dtype[name].itemsize for name in names]
        if sum(widths) != self.dtype.itemsize:  # padding between the fields
            whole = np.zeros(items, self.dtype)
            for name, column in zip(names, columns, strict=True):
                whole[name] = column
            self._exchange.send(to, width, bytes_of(whole))
            return
        rows = [bytes_of(column if column.ndim == 1 else np.full(items, column)) for column in columns]
        self._exchange.send_columns(to, width, rows, widths, items)

    def flush(self) -> None:
        """Post all open buffers, without waiting."""
        self._exchange.flush()

    def take(self) -> Array:
        """For headway.append: the items that have arrived since the last call, shape (n,), in the order of arrival."""
        return self._exchange.take().view(self.dtype)

    def statistics(self) -> dict[str, int]:
        """Counts of this PE: messages sent, messages handled, frames, payload_bytes, wire_bytes."""
        return self._exchange.statistics()


def _deliver_to(handler: Handler, dtype: np.dtype[Any]) -> Callable[[Array], None]:
    def deliver(raw: Array) -> None:
        count, stride = raw.shape
        handler(np.ndarray((count,), dtype, raw, 0, (stride,)))

    return deliver
