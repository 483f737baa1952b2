# SPDX-License-Identifier: BSD-3-Clause
"""Every PE runs these tests, in the same order: `headway run -n 3 python3 -m pytest python/headway_tests/pes`."""

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import headway
from headway import _core


@pytest.fixture(scope="session")
def pe() -> Iterator[headway.Pe]:
    yield headway.init()
    headway.finish()


@pytest.fixture(autouse=True)
def ends_together(pe: headway.Pe) -> Iterator[None]:
    yield
    pe.quiesce()


@pytest.fixture
def rng(pe: headway.Pe) -> np.random.Generator:
    """Other numbers on each PE, the same in each run."""
    return np.random.default_rng([20, pe.id])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if headway.init().id != 0:
        session.config.get_terminal_writer()._file = open(os.devnull, "w")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # The other PEs wait for this one.
    if report.failed:
        print(report.longreprtext, file=sys.stderr, flush=True)
        _core.fail(f"the test {report.nodeid} failed")
