# SPDX-License-Identifier: BSD-3-Clause
"""This process as a PE of a run."""

import atexit
import sys
import traceback
from types import TracebackType

from . import _core


class Pe:
    """This process, between init() and finish()."""

    def __init__(self, id: int, size: int) -> None:
        self._id = id
        self._size = size

    @property
    def id(self) -> int:
        """The number of this PE, from 0 to size - 1."""
        return self._id

    @property
    def size(self) -> int:
        """The number of PEs of the run."""
        return self._size

    def barrier(self) -> None:
        """Collective. Return when all PEs have called. It waits for no items: quiesce() does."""
        _core.barrier()

    def quiesce(self) -> int:
        """Collective. Return when every item that was sent anywhere has been handled; run handlers meanwhile.

        Returns the number of messages of the library that all PEs have handled since the last call. UsageError in a
        handler.
        """
        return _core.quiesce()

    def progress(self) -> bool:
        """Run handlers of items that have arrived, without waiting. Returns whether anything moved."""
        return _core.progress()

    def settle(self) -> None:
        """Let all waiting items of this PE leave. For programs that call mpi4py next: no handler runs meanwhile."""
        _core.settle()

    def __repr__(self) -> str:
        return f"<headway.Pe {self._id} of {self._size}>"


_pe: Pe | None = None
_failed = False


def init() -> Pe:
    """Make this process a PE of the run that started it, and return the PE; the same one at every call.

    Collective. Under `headway run` and launchers of MPI each process is one PE. Without a launcher the run has one PE.
    The run ends with the program, or at finish(). An exception that ends the program ends the run and all its
    processes. SettingError for unusable settings (HEADWAY_ variables).
    """
    global _pe
    if _pe is None:
        _core.init()
        _pe = Pe(_core.id(), _core.size())
        _watch_exceptions()
    return _pe


def finish() -> None:
    """Collective. End the run: wait for all items. Called at the end of the program if the program does not."""
    global _pe
    if _pe is not None and _core.is_open():
        _pe = None
        _core.finish(0)


def _watch_exceptions() -> None:
    before = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        global _failed
        _failed = True
        before(kind, error, trace)
        sys.stderr.flush()
        if _core.is_open():
            text = "".join(traceback.format_exception_only(kind, error)).strip()
            sys.stdout.flush()
            _core.fail(f"the Python program ended by an exception: {text}")

    sys.excepthook = report


@atexit.register
def _end() -> None:
    # After an uncaught exception the others would wait for this PE: leaving without finish() ends them.
    if not _failed and _pe is not None and _core.is_open():
        sys.stdout.flush()
        finish()
