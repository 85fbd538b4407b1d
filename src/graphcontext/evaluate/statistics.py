"""Intervals and tests over items: bootstrap, paired permutation, Holm; seeded, the same bytes each time.

Scores come as an array of shape (n_items,), or (n_seeds, n_items) where a row ran under several seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphcontext.errors import InputError

SEED = 20240112  # of intervals and tests: fixed, so that a run and a table show the same each time
BOOTSTRAP_DRAWS = 2_000
PERMUTATION_DRAWS = 10_000
EXACT_UP_TO = 12  # items with a difference; 2^12 sign patterns are enumerated
LEVEL = 0.95
_BLOCK = 2**21  # random numbers held at a time


@dataclass(frozen=True)
class Estimate:
    """A mean over ``n`` items with its 95 % bootstrap interval [low, high]."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Difference:
    """A mean paired difference with its 95 % bootstrap interval and its permutation p in (0, 1]."""

    diff: float
    low: float
    high: float
    p: float


def bootstrap_mean(scores: np.ndarray, seed: int, draws: int = BOOTSTRAP_DRAWS) -> Estimate:
    """Return the mean over items and its percentile bootstrap interval (Efron 1979).

    One level resamples the items. With several seeds each item is averaged over seeds first, and two levels
    resample: the seeds, then the items. One item, or equal scores throughout, give an interval of no width.

    Args:
        scores: shape (n_items,) or (n_seeds, n_items), finite.
        seed: of the resampling.
        draws: resamples.

    Raises:
        InputError: there is no item, or a score is not finite.
    """
    table = _as_table(scores)
    value = float(table.mean(axis=0).mean())
    low, high = _interval(value, _resampled_means([table], seed, draws)[0])
    return Estimate(value, low, high, table.shape[1])


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    r"""Return the 95 % score interval of a share over n items (Wilson 1927); it has a width at 0 and 1 too.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}, \quad z = 1.96

    Items that hold a share themselves (ties, several raters) vary less than those it is made for: then it is wide.
    """
    z = 1.959964
    centre, scale = share + z**2 / (2 * n), 1 + z**2 / n
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def seed_deviation(scores: np.ndarray) -> float | None:
    """Return the sample standard deviation (n − 1) of the seeds' means; None for a single seed."""
    means = _as_table(scores).mean(axis=1)
    if len(means) == 1:
        return None
    return 0.0 if np.all(means == means[0]) else float(means.std(ddof=1))


def permutation_p(differences: np.ndarray, seed: int, draws: int = PERMUTATION_DRAWS) -> float:
    """Return the two-sided p of a paired permutation test on the mean of ``differences`` (Fisher 1935).

    Under the null hypothesis each difference may as well have the other sign. Items without a difference say
    nothing and are left out. With at most 12 left all 2^n sign patterns are enumerated, the observed one
    among them: p = count(|mean| ≥ |observed|) / 2^n. With more, p = (count + 1) / (draws + 1) over random
    patterns, never 0 (Phipson and Smyth 2010).

    Args:
        differences: shape (n_items,), finite.
        seed: of the random patterns.
        draws: random patterns.
    """
    differences = _as_table(differences)[0]
    differences = differences[differences != 0.0]
    n = len(differences)
    if n == 0:
        return 1.0
    bound = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()  # ties by rounding count as ties
    if n <= EXACT_UP_TO:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2^n, n)
        return float(np.mean(np.abs((2.0 * patterns - 1.0) @ differences) >= bound))
    rng = np.random.default_rng(seed)
    count = 0
    for size in _blocks(draws, n):
        words = rng.integers(0, 2**64, size=(size, -(-n // 64)), dtype=np.uint64)
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=n).astype(np.float64)  # (size, n), 1: kept sign
        count += int(np.sum(np.abs(2.0 * (bits @ differences) - differences.sum()) >= bound))
    return (count + 1) / (draws + 1)


def paired_difference(a: np.ndarray, b: np.ndarray, seed: int) -> Difference:
    """Return mean(a − b) over the same items, its bootstrap interval and its permutation p.

    Args:
        a: scores of shape (n_items,) or (n_seeds, n_items).
        b: scores of the same items in the same order; the number of seeds may differ.
        seed: of both resamplings.

    Raises:
        InputError: the items differ in number, there is none, or a score is not finite.
    """
    left, right = _as_table(a), _as_table(b)
    if left.shape[1] != right.shape[1]:
        raise InputError(f"a paired test needs the same items: got {left.shape[1]} and {right.shape[1]}")
    per_item = left.mean(axis=0) - right.mean(axis=0)
    diff = float(per_item.mean())
    one_seed = left.shape[0] == right.shape[0] == 1
    tables = [left - right] if one_seed else [left, -right]
    low, high = _interval(diff, _resampled_means(tables, seed, BOOTSTRAP_DRAWS).sum(axis=0))
    return Difference(diff, low, high, permutation_p(per_item, seed))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the step-down adjusted p values of one family (Holm 1979), in the given order.

    The i-th smallest of m is multiplied by m − i + 1, is at least as large as the one before, at most 1.
    """
    m = len(p_values)
    adjusted = [0.0] * m
    largest = 0.0
    for rank, place in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def _as_table(scores: np.ndarray) -> np.ndarray:
    table = np.atleast_2d(np.asarray(scores, dtype=np.float64))  # (n_seeds, n_items)
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"statistics need at least one item; got an array of shape {np.shape(scores)}")
    if not np.isfinite(table).all():
        item = int(np.argwhere(~np.isfinite(table))[0][1])
        raise InputError(f"statistics need finite scores; item {item} is not")
    return table


def _resampled_means(tables: list[np.ndarray], seed: int, draws: int) -> np.ndarray:
    """Return the resampled means, shape (n_tables, draws); all tables share the drawn items."""
    n = tables[0].shape[1]
    rng = np.random.default_rng(seed)
    items_rng, seeds_rng = rng.spawn(2)
    blocks = []
    for size in _blocks(draws, n):
        items = items_rng.integers(0, n, size=(size, n))
        blocks.append([_block_means(table, items, seeds_rng) for table in tables])
    return np.concatenate(blocks, axis=1)


def _block_means(table: np.ndarray, items: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_seeds = table.shape[0]
    if n_seeds == 1:
        return table[0][items].mean(axis=1)
    weights = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=len(items)) / n_seeds
    return np.take_along_axis(weights @ table, items, axis=1).mean(axis=1)


def _interval(value: float, means: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if np.isclose(low, high, rtol=1e-12, atol=1e-15):
        return value, value
    return min(float(low), value), max(float(high), value)


def _blocks(draws: int, n: int) -> Iterator[int]:
    size = max(1, _BLOCK // n)
    for start in range(0, draws, size):
        yield min(size, draws - start)
