# SPDX-License-Identifier: BSD-3-Clause
import asyncio

import numpy as np
import pytest

import headway
from headway import Pe


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7, 3), (20_000,)])
def test_allreduce_combines_element_by_element(pe: Pe, dtype: type, shape: tuple[int, ...]) -> None:
    given = [np.random.default_rng(p).integers(0, 1000, shape).astype(dtype) for p in range(pe.size)]
    for op, ufunc in (("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
        result = headway.allreduce(pe, given[pe.id], op)
        assert result.dtype == dtype and result.shape == shape
        assert np.array_equal(result, ufunc.reduce(given, axis=0))


def test_bits_of_any_width(pe: Pe) -> None:
    for dtype in (np.uint8, np.int16, np.int64):
        assert headway.allreduce(pe, np.array([1 << pe.id], dtype), "or")[0] == (1 << pe.size) - 1
    assert not headway.allreduce(pe, np.array([pe.id == 0]), "and")[0] or pe.size == 1
    assert headway.allreduce(pe, np.array([True]), "xor")[0] == (pe.size % 2 == 1)


def test_arrays_may_differ_in_type_and_shape(pe: Pe) -> None:
    gathered = headway.all_gather(pe, np.arange(pe.id, dtype=np.float64))
    assert [one.tolist() for one in gathered] == [list(range(p)) for p in range(pe.size)]
    blocks = [np.full((pe.id, to), 10 * pe.id + to, np.int16) for to in range(pe.size)]
    for sender, block in enumerate(headway.all_to_all(pe, blocks)):
        assert block.shape == (sender, pe.id) and np.all(block == 10 * sender + pe.id) and block.dtype == np.int16
    root = pe.size - 1
    given = np.arange(12).reshape(3, 4) if pe.id == root else None
    assert np.array_equal(headway.broadcast(pe, given, root), np.arange(12).reshape(3, 4))


def test_futures_and_asyncio(pe: Pe) -> None:
    first, second = headway.allreduce_async(pe, [1]), headway.allreduce_async(pe, [2.5], "max")
    gathered = headway.all_gather_async(pe, [pe.id])
    assert second.result()[0] == 2.5 and first.result()[0] == pe.size == first.result()[0]
    assert first.done()

    async def both() -> tuple[int, int]:
        async def late() -> int:
            await asyncio.sleep(0.01)
            return 7

        async def total() -> int:
            return int((await headway.allreduce_async(pe, [pe.id]))[0])

        a, b = await asyncio.gather(total(), late())
        await headway.barrier_async(pe)
        return a, b

    assert asyncio.run(both()) == (pe.size * (pe.size - 1) // 2, 7)
    assert np.concatenate(gathered.result()).tolist() == list(range(pe.size))


def test_objects(pe: Pe) -> None:
    assert headway.broadcast_object(pe, {"n": 3} if pe.id == 0 else None) == {"n": 3}
    assert headway.all_gather_object(pe, [pe.id]) == [[p] for p in range(pe.size)]
    got: list[object] = []
    channel = headway.ObjectChannel(pe, got.append)
    for to in range(pe.size):
        channel.send(to, {"from": pe.id, "text": "x" * 1000 * pe.id})
    pe.quiesce()
    assert sorted(one["from"] for one in got) == list(range(pe.size))  # type: ignore[index]
    assert all(len(one["text"]) == 1000 * one["from"] for one in got)  # type: ignore[index]


def test_ghosts_have_the_values_of_their_owners(pe: Pe, rng: np.random.Generator) -> None:
    n = 1000
    ghosts = rng.integers(0, n, 200)
    halo = headway.Halo(pe, n, ghosts)
    size = halo.owned + halo.received
    heights, speeds = np.zeros(size), np.zeros((size, 3), np.float32)
    exchange = halo.exchange(heights, speeds)
    own = np.arange(halo.first, halo.first + halo.owned)
    for step in range(3):
        heights[: halo.owned] = own + step
        speeds[: halo.owned] = own[:, None] * [1, 2, 3]
        exchange()
        assert np.array_equal(heights[halo.owned :], ghosts + step)
        assert np.array_equal(speeds[halo.owned :], (ghosts[:, None] * [1, 2, 3]).astype(np.float32))
        pe.barrier()
    sums = np.zeros(size)
    sums[halo.owned :] = 1
    halo.sums(sums)()
    expected = headway.allreduce(pe, np.bincount(ghosts, minlength=n))
    assert np.array_equal(sums[: halo.owned], expected[own])

    async def exchanged() -> None:
        await exchange

    asyncio.run(exchanged())


def test_refusals_name_the_value(pe: Pe) -> None:
    with pytest.raises(headway.SettingError, match="'product'"):
        headway.allreduce(pe, [1], "product")
    with pytest.raises(TypeError, match="kind 'c'"):
        headway.allreduce(pe, [1j])
    with pytest.raises(ValueError, match=f"{pe.size + 1} blocks"):
        headway.all_to_all(pe, [[1]] * (pe.size + 1))
    with pytest.raises(headway.UsageError, match=str(pe.size)):
        headway.broadcast(pe, [1], pe.size)
    with pytest.raises(ValueError, match="0 to 9"):
        headway.Halo(pe, 10, [10])
    halo = headway.Halo(pe, 10, [0])
    with pytest.raises(ValueError, match="1 elements"):
        halo.exchange(np.zeros(1)) if halo.owned + halo.received > 1 else pytest.skip()
