# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py and Headway in one program, started by the mpiexec of the wheel mpich. Each verifies the other's results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
MPIEXEC = Path(sys.executable).parent / "mpiexec"
BEGIN = {
    "mpi4py": "from mpi4py import MPI\nimport headway\npe = headway.init()\n",
    "headway": "import headway\npe = headway.init()\nfrom mpi4py import MPI\n",
}
ALTERNATE = """
import numpy as np

comm = MPI.COMM_WORLD
assert (comm.rank, comm.size) == (pe.id, pe.size)
words = 1000
sums = np.zeros(words, np.int64)
updates = headway.Aggregator(pe, handler=headway.add(sums))
array = headway.DistArray(pe, words, np.int64)
expected = np.zeros(words, np.int64)
for turn in range(1, 5):
    index = np.random.default_rng([turn, pe.id]).integers(0, words, 5000)
    to = index % pe.size
    updates.send(to, (index, np.full(len(index), turn)))
    array.add_at(index, turn)
    pe.settle()
    assert comm.allreduce(pe.id) == pe.size * (pe.size - 1) // 2
    pe.quiesce()
    pe.barrier()

    counts, arriving = np.bincount(to, minlength=pe.size), np.zeros(pe.size, np.int64)
    pe.settle()
    comm.Alltoall(counts, arriving)
    received = np.zeros(arriving.sum(), np.int64)
    comm.Alltoallv([index[np.argsort(to)], counts], [received, arriving])
    expected += turn * np.bincount(received, minlength=words)
    assert np.array_equal(sums, expected)

    everywhere = np.zeros(words, np.int64)
    pe.settle()
    comm.Allreduce(expected, everywhere)
    assert np.array_equal(array[np.arange(words)], everywhere)
    assert np.array_equal(headway.allreduce(pe, expected), everywhere)
    pe.barrier()
"""
END = {
    "finish": "headway.finish()\nassert comm.allreduce(1) == comm.size\nMPI.Finalize()\nprint('verified')\n",
    "exit": "print('verified')\n",
}


@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec of a wheel")
@pytest.mark.parametrize("pes, end", [(1, "exit"), (2, "finish"), (2, "exit"), (4, "finish")])
@pytest.mark.parametrize("first", ["mpi4py", "headway"])
def test_both_work_and_end_in_one_program(tmp_path: Path, first: str, pes: int, end: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(BEGIN[first] + ALTERNATE + END[end])
    result = subprocess.run(
        [MPIEXEC, "-n", str(pes), sys.executable, script],
        capture_output=True, text=True, timeout=60, env={**os.environ, "HEADWAY_BIND": "none"},
    )
    assert (result.returncode, result.stdout.count("verified"), result.stderr) == (0, pes, "")
