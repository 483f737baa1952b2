# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest

import headway
from headway import Pe


def everything(pe: Pe, values: np.ndarray) -> np.ndarray:
    """The values of all PEs, in the order of PEs."""
    return np.concatenate(headway.all_gather(pe, values))


@pytest.mark.parametrize("bytes_of_item", [1, 2, 3, 4, 8, 10, 12, 16, 20, 24, 32, 33, 48, 64, 100, 200, 1000, 3000])
def test_items_of_any_size_arrive_once_and_unchanged(pe: Pe, rng: np.random.Generator, bytes_of_item: int) -> None:
    agg = headway.Aggregator(pe, np.dtype((np.void, bytes_of_item)), headway.append)
    n = 20_000 // bytes_of_item + 10 * pe.id
    items = rng.integers(0, 256, (n, bytes_of_item), dtype=np.uint8)
    to = rng.integers(0, pe.size, n)
    agg.send(to, items.view((np.void, bytes_of_item)).reshape(-1))
    pe.quiesce()
    arrived = agg.take().view(np.uint8).reshape(-1, bytes_of_item)
    all_items = everything(pe, items)
    expected = all_items[everything(pe, to) == pe.id]
    assert sorted(map(bytes, arrived)) == sorted(map(bytes, expected))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.int16])
def test_destinations_of_any_integer_type(pe: Pe, dtype: type) -> None:
    agg = headway.Aggregator(pe, np.int64, headway.append)
    agg.send(np.arange(pe.size, dtype=dtype), np.full(pe.size, pe.id))
    pe.quiesce()
    assert sorted(agg.take()) == list(range(pe.size))


def test_a_function_gets_batches_of_structures(pe: Pe, rng: np.random.Generator) -> None:
    dtype = np.dtype([("key", np.int32), ("weight", np.float64), ("tag", "S5")])
    batches: list[np.ndarray] = []
    agg = headway.Aggregator(pe, dtype, lambda batch: batches.append(batch.copy()))
    items = np.zeros(50_000, dtype)
    items["key"] = rng.integers(0, 1000, len(items))
    items["weight"] = rng.random(len(items))
    items["tag"] = b"ab"
    agg.send(items["key"] % pe.size, items)
    pe.quiesce()
    arrived = np.concatenate(batches) if batches else np.zeros(0, dtype)
    sent = everything(pe, items)
    expected = sent[sent["key"] % pe.size == pe.id]
    assert np.array_equal(np.sort(arrived), np.sort(expected))
    assert len(batches) < len(arrived) / 10 + 10  # whole batches, not items


def test_handlers_may_send(pe: Pe) -> None:
    got: list[int] = []

    def forward(batch: np.ndarray) -> None:
        more = batch[batch > 0] - 1
        agg.send((pe.id + 1) % pe.size, more)
        got.extend(batch.tolist())

    agg = headway.Aggregator(pe, np.int64, forward)
    agg.send((pe.id + 1) % pe.size, np.full(10, 20))
    pe.quiesce()
    assert sum(headway.all_gather_object(pe, len(got))) == 21 * 10 * pe.size


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float32, np.float64])
def test_handlers_of_the_library_compute_as_numpy(pe: Pe, rng: np.random.Generator, dtype: type) -> None:
    n = 500
    index = rng.integers(0, n, 3000)
    value = rng.integers(0, 100, 3000).astype(dtype)
    to = rng.integers(0, pe.size, 3000)
    all_to, all_index, all_value = everything(pe, to), everything(pe, index), everything(pe, value)
    mine = all_to == pe.id
    cases = [("add", np.add), ("min", np.minimum), ("max", np.maximum)]
    if np.dtype(dtype).kind != "f":
        cases.append(("xor", np.bitwise_xor))
    for name, ufunc in cases:
        target = np.full(n, 50, dtype)
        agg = headway.Aggregator(pe, handler=getattr(headway, name)(target))
        agg.send(to, (index, value))
        pe.quiesce()
        expected = np.full(n, 50, dtype)
        with np.errstate(over="ignore"):
            ufunc.at(expected, all_index[mine], all_value[mine])
        assert np.array_equal(target, expected), name


def test_put_writes_elements_of_any_type(pe: Pe) -> None:
    for dtype in (np.dtype(np.int16), np.dtype("c16"), np.dtype([("a", "i4"), ("b", "S9")])):
        target = np.zeros(pe.size, dtype)
        agg = headway.Aggregator(pe, handler=headway.put(target))
        value = np.zeros(1, dtype)
        value.view(np.uint8)[:] = pe.id + 1
        agg.send(np.arange(pe.size), (np.full(pe.size, pe.id), np.repeat(value, pe.size)))
        pe.quiesce()
        assert np.array_equal(target.view(np.uint8).reshape(pe.size, -1)[:, 0], np.arange(pe.size) + 1)


def test_one_destination_and_one_value_stand_for_all(pe: Pe) -> None:
    target = np.zeros(10, np.int64)
    agg = headway.Aggregator(pe, handler=headway.add(target))
    agg.send(0, (np.arange(10), 2))
    agg.send(np.full(10, 0), (np.arange(10), np.int64(1)))
    pe.quiesce()
    assert np.all(target == (3 * pe.size if pe.id == 0 else 0))


def test_ordered_items_keep_their_order(pe: Pe) -> None:
    agg = headway.Aggregator(pe, np.dtype([("from", np.int32), ("i", np.int32)]), headway.append, ordered=True)
    for block in range(10):
        agg.send((pe.id + 1) % pe.size, (np.full(1000, pe.id), np.arange(1000 * block, 1000 * (block + 1))))
    pe.quiesce()
    arrived = agg.take()
    assert np.array_equal(arrived["i"], np.arange(10_000))
    assert np.all(arrived["from"] == (pe.id - 1) % pe.size)


def test_refusals_name_the_value(pe: Pe) -> None:
    agg = headway.Aggregator(pe, np.int64, headway.append)
    with pytest.raises(headway.UsageError, match=rf"PE {pe.id}: .*{pe.size}"):
        agg.send([pe.size], [1])
    with pytest.raises(headway.UsageError):
        agg.send([-1], [1])
    with pytest.raises(ValueError, match="2 destinations for 3 items"):
        agg.send([0, 0], [1, 2, 3])
    with pytest.raises(TypeError, match="float64"):
        agg.send([0.5], [1])
    with pytest.raises(TypeError):
        agg.send([0], ["text"])
    with pytest.raises(TypeError, match="references"):
        headway.Aggregator(pe, object, headway.append)
    with pytest.raises(ValueError, match="2 dimensions"):
        headway.add(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="contiguous"):
        headway.add(np.zeros(10)[::2])
    with pytest.raises(TypeError, match="kind 'c'"):
        headway.Aggregator(pe, handler=headway.add(np.zeros(3, complex)))
    with pytest.raises(headway.UsageError, match="take"):
        headway.Aggregator(pe, np.int64, print).take()
