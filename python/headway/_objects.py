# SPDX-License-Identifier: BSD-3-Clause
"""Python objects as messages: easy, and slow."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._buffers import Array
from ._pe import Pe


class ObjectChannel:
    """Sends any objects that can be pickled to a function on any PE, one call for each object.

        channel = headway.ObjectChannel(pe, print)
        channel.send(1, {"step": 3})
        pe.quiesce()

    Collective. An object costs microseconds: use Aggregator for data. The function may send and must not wait.
    """

    def __init__(self, pe: Pe, handler: Callable[[Any], object], *, name: str = "objects") -> None:
        def deliver(raw: Array) -> None:
            handler(pickle.loads(raw.tobytes()))

        self._channel = _core.bytes_to_function(name, deliver)

    def send(self, destination: int, value: Any) -> None:
        """Send the object. UsageError for a destination out of range, PicklingError for an object without a pickle."""
        self._channel.send(destination, np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8))
