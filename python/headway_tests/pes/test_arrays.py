# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest

import headway
from headway import Pe


@pytest.mark.parametrize("layout", ["block", "cyclic"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64, np.float64])
def test_elements_are_those_of_one_array(pe: Pe, rng: np.random.Generator, layout: str, dtype: type) -> None:
    n = 1003
    x = headway.DistArray(pe, n, dtype, layout)  # type: ignore[arg-type]
    x.local[:] = (x.local_indices % 100).astype(dtype)
    pe.barrier()
    expected = (np.arange(n) % 100).astype(dtype)
    index = rng.integers(-n, n, (20, 30))
    assert np.array_equal(x[index], expected[index])
    assert x[5] == 5 and x[-1] == expected[-1]
    assert np.array_equal(x[10:200:7], expected[10:200:7])
    assert len(x[[]]) == 0
    pe.barrier()
    mine = np.arange(pe.id, n, pe.size)
    x[mine] = expected[mine] + 1
    pe.barrier()
    assert np.array_equal(x[:], expected + np.ones((), dtype))
    assert sum(headway.all_gather_object(pe, len(x.local))) == len(x) == n


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32, np.float64])
def test_sums_of_all_pes_are_complete(pe: Pe, rng: np.random.Generator, dtype: type) -> None:
    n = 50
    x = headway.DistArray(pe, n, dtype)
    index = rng.integers(0, n, 20_000)
    x.add_at(index, np.ones(len(index), dtype))
    x.add_at(index, 1)
    pe.barrier()
    counts = headway.allreduce(pe, np.bincount(index, minlength=n))
    assert np.array_equal(x[:], (2 * counts).astype(dtype))


def test_memory_is_used_again(pe: Pe) -> None:
    begins = set()
    for _ in range(20):
        x = headway.DistArray(pe, 1_000_000, np.float64)
        begins.add(x.local.ctypes.data)
        if pe.id % 2:
            x[0] = 1  # the garbage collectors of PEs need not agree
        x.free()
    assert len(begins) == 1
    for _ in range(20):
        x = headway.DistArray(pe, 1_000_000, np.float64)
        begins.add(x.local.ctypes.data)
    assert len(begins) <= 3


def test_refusals_name_the_value(pe: Pe) -> None:
    x = headway.DistArray(pe, 10, np.int64)
    with pytest.raises(IndexError, match="index 10 .*-10 to 9"):
        x[10]
    with pytest.raises(IndexError, match="index -11"):
        x[[0, -11]] = 1
    with pytest.raises(TypeError, match="float64"):
        x[[0.5]]
    with pytest.raises(TypeError, match="masks"):
        x[np.ones(10, bool)]
    with pytest.raises(TypeError):
        x[0] = 0.5
    with pytest.raises(headway.SettingError, match="16 bytes"):
        headway.DistArray(pe, 10, np.complex128)
    with pytest.raises(ValueError, match="rows"):
        headway.DistArray(pe, 10, layout="rows")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="add_at"):
        headway.DistArray(pe, 10, np.int8).add_at(0, 1)
    x.free()
    with pytest.raises(ValueError, match="freed"):
        x[0]
