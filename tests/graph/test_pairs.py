"""All pairs above a cosine: the plain tiles and the bound on few axes find the pairs that a double loop finds."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.graph import pairs
from graphcontext.graph.cosine import exact_cosine
from graphcontext.graph.pairs import Scan, axes_that_pay, bounded, main_axes, pairs_above, upper_tiles


def unit_vectors(n, dim=16, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def as_set(found):
    return set(zip(*map(np.ndarray.tolist, found), strict=True))


def double_loop(vectors, threshold):
    rows, columns = np.triu_indices(len(vectors), 1)
    kept = exact_cosine(vectors, rows, vectors, columns) > threshold
    return set(zip(rows[kept].tolist(), columns[kept].tolist(), strict=True))


def on_axes(monkeypatch, k):
    monkeypatch.setattr(pairs, "axes_that_pay", lambda vectors, threshold: main_axes(vectors)[:, :k])


def test_every_pair_lies_in_one_tile():
    vectors = unit_vectors(11)
    for tile in [(1, 1), (3, 4), (4, 3), (5, 2), (64, 64)]:
        seen = [
            (i + r, j + c)
            for i, j, products in upper_tiles(vectors, tile)
            for r, c in zip(*np.nonzero(products > -1.5), strict=True)
        ]
        assert sorted(seen) == list(itertools.combinations(range(11), 2)), tile


def test_the_threshold_is_strict_and_does_not_depend_on_the_tile():
    vectors = unit_vectors(40, seed=1)
    i, j = 3, 17
    at = float(exact_cosine(vectors, np.array([i]), vectors, np.array([j]))[0])
    below = np.nextafter(at, -1)
    for tile in [(1, 1), (7, 5), (40, 40)]:
        pairs = set(zip(*map(np.ndarray.tolist, pairs_above(vectors, at, tile)), strict=True))
        assert (i, j) not in pairs
        pairs_below = set(zip(*map(np.ndarray.tolist, pairs_above(vectors, below, tile)), strict=True))
        assert pairs_below == pairs | {(i, j)}


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 40),
    dim=st.integers(1, 40),
    axes=st.integers(1, 40),
    copies=st.integers(0, 4),
    seed=st.integers(0, 10_000),
    tile=st.sampled_from([(1, 1), (7, 5), (64, 64)]),
)
def test_both_ways_equal_a_double_loop(n, dim, axes, copies, seed, tile):
    rng = np.random.default_rng(seed)
    vectors = np.concatenate([unit_vectors(n, dim, seed), np.zeros((1, dim), np.float32)])
    vectors = np.concatenate([vectors, np.repeat(vectors[:1], copies, axis=0)])  # duplicates, and a zero row
    i, j = rng.integers(0, len(vectors), 2)
    at = float(exact_cosine(vectors, np.array([i]), vectors, np.array([j]))[0])  # some pairs lie on the threshold
    for threshold in (at, np.nextafter(at, -2), 0.0):
        expected = double_loop(vectors, threshold)
        assert as_set(pairs_above(vectors, threshold, tile)) == expected
        with pytest.MonkeyPatch.context() as patch:
            on_axes(patch, min(axes, dim))
            assert as_set(pairs_above(vectors, threshold, tile)) == expected


def test_the_bound_is_no_lower_than_the_cosine():
    vectors = unit_vectors(300, 48, seed=3)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    for k in (1, 7, 48):
        turned = bounded(vectors, main_axes(vectors)[:, :k]).astype(np.float64)
        assert (turned @ turned.T >= cosines - 1e-6).all()


def test_the_threshold_may_be_raised_on_the_way():
    vectors = unit_vectors(30, 8, seed=1)
    scan = Scan(vectors, 0.0, tile=(10, 30))
    found = []
    for rows, columns in scan:
        found.append(as_set((rows, columns)))
        scan.threshold = 0.5
    first = {(i, j) for i, j in double_loop(vectors, 0.0) if i < 10}
    assert set.union(*found) == first | double_loop(vectors, 0.5)


def test_few_axes_pay_where_the_pool_has_few_and_never_on_a_small_pool(monkeypatch):
    rng = np.random.default_rng(0)
    flat = unit_vectors(600, 8, seed=2) @ np.linalg.qr(rng.normal(size=(384, 8)))[0].T.astype(np.float32)
    assert axes_that_pay(flat, 0.9) is None
    monkeypatch.setattr(pairs, "LARGE", 512)
    assert axes_that_pay(flat, 0.9).shape == (384, 32)
    assert axes_that_pay(unit_vectors(600, 384), 0.1) is None  # the bound passes everywhere
    assert as_set(pairs_above(flat, 0.9)) == double_loop(flat, 0.9)
