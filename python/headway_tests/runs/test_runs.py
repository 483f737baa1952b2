# SPDX-License-Identifier: BSD-3-Clause
"""How runs of Python programs begin and end. One process starts them: `python3 -m pytest python/headway_tests/runs`."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headway

COMMAND = shutil.which("headway") or "headway"
COUNT = """
import headway, numpy as np
pe = headway.init()
total = headway.allreduce(pe, [1])[0]
if pe.id == 0: print(total, "PEs of", pe.size)
"""


def run(script: Path, text: str, *line: str, limit: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
    script.write_text(text)
    environment = {**os.environ, "HEADWAY_BIND": "none", **variables}
    return subprocess.run([*line, str(script)], capture_output=True, text=True, timeout=limit, env=environment)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_the_command_starts_scripts(script: Path, pes: int) -> None:
    result = run(script, COUNT, COMMAND, "run", "-n", str(pes))
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{pes} PEs of {pes}\n", "")


def test_without_a_launcher_there_is_one_pe(script: Path) -> None:
    result = run(script, COUNT, sys.executable)
    assert (result.returncode, result.stdout, result.stderr) == (0, "1 PEs of 1\n", "")


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_mpiexec_of_the_mpich_wheel_starts_scripts(script: Path, pes: int) -> None:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec of a wheel")
    result = run(script, COUNT, str(mpiexec), "-n", str(pes), sys.executable)
    assert (result.returncode, result.stdout) == (0, f"{pes} PEs of {pes}\n"), result.stderr


def test_a_plug_in_for_the_standard_abi_is_taken_where_it_is_asked_for(script: Path) -> None:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists() or not (Path(headway.__file__).parent / "lib/libheadway-mpi-abi.so").exists():
        pytest.skip("no mpiexec of a wheel, or no plug-in for the standard ABI")
    text = COUNT + "maps = open('/proc/self/maps').read()\nassert 'libmpi_abi' in maps and 'libmpi.so' not in maps\n"
    result = run(script, text, str(mpiexec), "-n", "2", sys.executable, HEADWAY_TRANSPORT="mpi-abi")
    assert (result.returncode, result.stdout) == (0, "2 PEs of 2\n"), result.stderr


def test_an_exception_ends_all_processes(script: Path) -> None:
    text = "import headway\npe = headway.init()\nif pe.id == 1: raise ValueError('bad row 17')\npe.barrier()\n"
    result = run(script, text, COMMAND, "run", "-n", "3")
    assert result.returncode != 0
    assert "Traceback" in result.stderr and "PE 1" in result.stderr and "ValueError: bad row 17" in result.stderr


def test_an_exception_in_a_handler_ends_all_processes(script: Path) -> None:
    text = """
import headway, numpy as np
pe = headway.init()
def handle(batch):
    if pe.id == 2: raise KeyError("no such vertex")
agg = headway.Aggregator(pe, np.int64, handle)
agg.send(np.arange(3), np.arange(3))
pe.quiesce()
"""
    result = run(script, text, COMMAND, "run", "-n", "3")
    assert result.returncode == 121
    assert "PE 2" in result.stderr and "no such vertex" in result.stderr and "handle" in result.stderr


def test_a_batch_that_is_kept_is_refused(script: Path) -> None:
    text = """
import headway, numpy as np
pe = headway.init()
kept = []
agg = headway.Aggregator(pe, np.int64, lambda batch: kept.append(batch[1:]))
agg.send(0, np.arange(3))
pe.quiesce()
"""
    result = run(script, text, COMMAND, "run", "-n", "1")
    assert result.returncode == 121 and "batch.copy()" in result.stderr


def test_waiting_in_a_handler_is_refused(script: Path) -> None:
    text = """
import headway, numpy as np
pe = headway.init()
agg = headway.Aggregator(pe, np.int64, lambda batch: pe.barrier())
agg.send(0, np.arange(3))
pe.quiesce()
"""
    result = run(script, text, COMMAND, "run", "-n", "1")
    assert result.returncode == 121 and "UsageError" in result.stderr


@pytest.mark.parametrize("waits", ["pe.barrier()", "time.sleep(100)"])
def test_an_interrupt_ends_all_processes(script: Path, waits: str) -> None:
    script.write_text(
        "import headway, time\npe = headway.init()\nif pe.id == 0: print('ready', flush=True)\n"
        f"if pe.id == 0: time.sleep(100)\n{waits}\n"
    )
    started = subprocess.Popen([COMMAND, "run", "-n", "3", str(script)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None and started.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.killpg(started.pid, signal.SIGINT)
    started.communicate(timeout=20)
    assert started.returncode != 0
    with pytest.raises(ProcessLookupError):
        for _ in range(50):
            os.killpg(started.pid, 0)
            time.sleep(0.1)


def test_a_script_that_is_missing_is_named(script: Path) -> None:
    result = subprocess.run([COMMAND, "run", "-n", "2", str(script)], capture_output=True, text=True, timeout=20)
    assert result.returncode == 2 and str(script) in result.stderr


def test_objects_may_live_longer_than_the_run(script: Path) -> None:
    text = """
import headway, numpy as np
pe = headway.init()
x = headway.DistArray(pe, 10, np.int64)
agg = headway.Aggregator(pe, np.int64, headway.append)
future = headway.allreduce_async(pe, [1])
future.result()
headway.finish()
try:
    agg.send(0, [1])
except headway.UsageError as error:
    print(error)
"""
    result = run(script, text, sys.executable)
    assert result.returncode == 0 and "init()" in result.stdout, result.stderr


def test_programs_of_c_plus_plus_are_built_with_the_flags(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    flags = subprocess.run([COMMAND, "cxxflags"], capture_output=True, text=True)
    if compiler is None or flags.returncode != 0:
        pytest.skip("no compiler, or no installation")
    source = tmp_path / "program.cpp"
    source.write_text("""
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>
int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    const int pes = headway::allreduce(pe, 1, std::plus<>());
    if (pe.id() == 0) std::printf("%d PEs\\n", pes);
  });
}
""")
    for option in ([], ["--static"]):
        links = subprocess.run([COMMAND, "ldflags", *option], capture_output=True, text=True, check=True)
        line = [compiler, *flags.stdout.split(), str(source), "-o", str(tmp_path / "program"), *links.stdout.split()]
        subprocess.run(line, check=True, timeout=300)
        result = subprocess.run([COMMAND, "run", "-n", "2", str(tmp_path / "program")], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (0, "2 PEs\n"), result.stderr
