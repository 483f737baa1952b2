# SPDX-License-Identifier: BSD-3-Clause
"""Headway for Python: parallel programs that send many small items, on whole arrays of numpy.

    import headway
    import numpy as np

    pe = headway.init()
    counts = headway.DistArray(pe, 1_000_000, np.int64)
    counts.add_at(np.random.default_rng(pe.id).integers(0, 1_000_000, 10_000_000), 1)
    pe.barrier()
    print(pe.id, counts.local.sum())

Start it with `headway run -n 4 script.py` or `mpiexec -n 4 python script.py`; without a launcher there is one PE.

A PE (processing element) is one process. Calls that are named *collective* are made by all PEs, in the same order. All
calls come from the thread that called init(). Errors of the library are subclasses of HeadwayError, and their text
begins with the PE.
"""

import os as _os
from pathlib import Path as _Path

# The plug-ins for launchers lie in this package, not beside the interpreter.
_os.environ.setdefault("HEADWAY_PLUGIN_DIR", str(_Path(__file__).absolute().parent / "lib"))

from ._aggregator import Aggregator, Append, Handler, Update, add, append, max, min, put, xor  # noqa: E402
from ._arrays import DistArray  # noqa: E402
from ._collectives import (  # noqa: E402
    Future,
    all_gather,
    all_gather_async,
    all_gather_object,
    all_to_all,
    all_to_all_async,
    allreduce,
    allreduce_async,
    barrier_async,
    broadcast,
    broadcast_async,
    broadcast_object,
)
from ._core import HeadwayError, SettingError, SystemError, UsageError  # noqa: E402
from ._halo import Halo  # noqa: E402
from ._objects import ObjectChannel  # noqa: E402
from ._pe import Pe, finish, init  # noqa: E402
from ._tables import Strings, groupby_sum, histogram, join, shuffle, sort, unique  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "Aggregator",
    "Append",
    "DistArray",
    "Future",
    "Halo",
    "Handler",
    "HeadwayError",
    "ObjectChannel",
    "Pe",
    "SettingError",
    "Strings",
    "SystemError",
    "Update",
    "UsageError",
    "add",
    "all_gather",
    "all_gather_async",
    "all_gather_object",
    "all_to_all",
    "all_to_all_async",
    "allreduce",
    "allreduce_async",
    "append",
    "barrier_async",
    "broadcast",
    "broadcast_async",
    "broadcast_object",
    "finish",
    "groupby_sum",
    "histogram",
    "init",
    "join",
    "max",
    "min",
    "put",
    "shuffle",
    "sort",
    "unique",
    "xor",
]
