# SPDX-License-Identifier: BSD-3-Clause
from collections import Counter

import numpy as np
import pytest

import headway
from headway import Pe, Strings


def everything(pe: Pe, values: np.ndarray) -> np.ndarray:
    return np.concatenate(headway.all_gather(pe, values))


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.float64, "S7", "U3"])
def test_shuffle_brings_equal_keys_together_and_keeps_rows(pe: Pe, rng: np.random.Generator, dtype: object) -> None:
    n = 5000 + pe.id
    key = rng.integers(-100, 100, n).astype(dtype)  # type: ignore[call-overload]
    row = np.arange(n) + pe.id * 1_000_000
    point = rng.random((n, 3)).astype(np.float32)
    k, r, p = headway.shuffle(pe, key, row, point)
    keys, rows, points = everything(pe, key), everything(pe, row), everything(pe, point)
    expected = {number: (one, tuple(at)) for one, number, at in zip(keys, rows, points, strict=True)}
    assert all(expected[number] == (one, tuple(at)) for one, number, at in zip(k, r, p, strict=True))
    assert np.all(np.diff(r) > 0)  # by number of the sender, in its order
    assert sum(headway.all_gather_object(pe, len(k))) == len(keys)
    places = headway.all_gather_object(pe, set(k.tolist()))
    assert sum(map(len, places)) == len(set.union(*places))


def test_zeros_of_both_signs_are_one_key(pe: Pe) -> None:
    (key,) = headway.shuffle(pe, np.array([0.0, -0.0]))
    assert len(key) in (0, 2 * pe.size)


def test_strings_move_with_their_rows(pe: Pe, rng: np.random.Generator) -> None:
    words = ["", "a", "größer", "x" * 1000, "word"]
    mine = [words[i] for i in rng.integers(0, len(words), 300)]
    column = Strings.of(mine)
    assert column.to_list() == mine
    number = np.arange(300) + 1000 * pe.id
    text, moved = headway.shuffle(pe, column, number)
    all_words = dict(zip(everything(pe, number).tolist(), sum(headway.all_gather_object(pe, mine), []), strict=True))
    assert [all_words[i] for i in moved.tolist()] == text.to_list()
    places = headway.all_gather_object(pe, set(text.to_list()))
    assert sum(map(len, places)) == len(set.union(*places)) == len(words)
    narrow = Strings(column.offsets.astype(np.int32), column.data)
    back, text = headway.shuffle(pe, moved, text, destinations=moved // 1000)
    assert np.array_equal(np.sort(back), number) and len(text) == len(narrow)


def test_rows_go_where_the_program_says(pe: Pe) -> None:
    to = np.arange(100) % pe.size
    value, origin = headway.shuffle(pe, np.arange(100), np.full(100, pe.id), destinations=to)
    assert np.array_equal(value, np.tile(np.arange(pe.id, 100, pe.size), pe.size))
    assert np.array_equal(origin, np.repeat(np.arange(pe.size), len(range(pe.id, 100, pe.size))))


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_histogram_is_that_of_numpy(pe: Pe, rng: np.random.Generator, n: int) -> None:
    values = rng.normal(size=n + (pe.id == 0))
    for arguments in ({}, {"bins": 7}, {"bins": 5, "range": (-1.0, 2.0)}):
        counts, edges = headway.histogram(pe, values, **arguments)  # type: ignore[arg-type]
        expected, expected_edges = np.histogram(everything(pe, values), **arguments)  # type: ignore[call-overload]
        assert np.array_equal(counts, expected) and np.allclose(edges, expected_edges)


def test_unique_finds_each_value_once(pe: Pe, rng: np.random.Generator) -> None:
    values = rng.integers(0, 500, 2000)
    key, count = headway.unique(pe, values, return_counts=True)
    expected = Counter(everything(pe, values).tolist())
    pairs = headway.all_gather_object(pe, list(zip(key.tolist(), count.tolist(), strict=True)))
    got = sum((Counter(dict(one)) for one in pairs), Counter())
    assert got == expected
    assert sum(headway.all_gather_object(pe, len(key))) == len(expected)
    assert np.array_equal(np.sort(everything(pe, headway.unique(pe, values))), np.unique(everything(pe, values)))


def test_groupby_sum_is_that_of_one_process(pe: Pe, rng: np.random.Generator) -> None:
    keys, small, real = rng.integers(0, 99, 3000), rng.integers(0, 9, 3000).astype(np.int8), rng.random(3000)
    key, total, weight = headway.groupby_sum(pe, keys, small, real)
    assert np.all(np.diff(key) > 0) and total.dtype == np.int64
    order = np.argsort(everything(pe, key))
    assert np.array_equal(everything(pe, total)[order], np.bincount(everything(pe, keys), everything(pe, small)))
    assert np.allclose(everything(pe, weight)[order], np.bincount(everything(pe, keys), everything(pe, real)))
    assert all(len(column) == 0 for column in headway.groupby_sum(pe, keys[:0], real[:0]))


@pytest.mark.parametrize("n", [0, 1, 3, 10_000])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, "S3"])
def test_sort_is_that_of_numpy(pe: Pe, rng: np.random.Generator, n: int, dtype: object) -> None:
    values = rng.integers(0, 1 + n, n * (1 + pe.id)).astype(dtype)  # type: ignore[call-overload]
    part = headway.sort(pe, values)
    assert np.array_equal(everything(pe, part), np.sort(everything(pe, values)))


def test_join_pairs_rows_of_equal_keys(pe: Pe, rng: np.random.Generator) -> None:
    left, right = rng.integers(0, 200, 300), rng.integers(100, 300, 400)
    a, b = np.arange(300) + 1000 * pe.id, np.arange(400) + 1000 * pe.id
    key, x, y = headway.join(pe, left, [a], right, [b])
    lefts, rights = everything(pe, left), everything(pe, right)
    expected = sorted((k, i, j) for k, i in zip(lefts, everything(pe, a)) for j in everything(pe, b)[rights == k])
    assert sorted(zip(everything(pe, key), everything(pe, x), everything(pe, y))) == expected


def test_refusals_name_the_value(pe: Pe) -> None:
    with pytest.raises(ValueError, match="2 and 3"):
        headway.shuffle(pe, np.arange(3), np.arange(2))
    with pytest.raises(ValueError, match=f"0 to {pe.size - 1}"):
        headway.shuffle(pe, np.arange(1), destinations=[pe.size])
    with pytest.raises(TypeError, match="references"):
        headway.shuffle(pe, np.array(["a", None]))
    with pytest.raises(ValueError, match="offsets"):
        headway.shuffle(pe, Strings(np.array([0, 9]), np.zeros(4, np.uint8)))
    with pytest.raises(TypeError, match="int64 and float64"):
        headway.join(pe, np.arange(2), [], np.arange(2.0), [])
