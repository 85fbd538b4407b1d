"""The similarity threshold at which a pool's graph has a given mean degree, found exactly on the pool alone.

The paper (GraphContextGen §4.2, §5) takes cosine > 0.8 under bge-large-en, chosen by the density of the
graph. Another encoder spreads its cosines otherwise, so the same number would give another graph or none:
for those the density is kept and the threshold follows from it.
"""

from __future__ import annotations

import numpy as np

from graphcontext.graph.cosine import TILE, exact_cosine, margin
from graphcontext.graph.pairs import Scan, pairs_above

_SAMPLE = 1024  # rows whose cosines with all others tell about where the threshold lies
_ALL = -1.5  # below every cosine
_SPARE = 1 << 20  # pairs held beyond four times the k largest before the smaller ones are dropped


def mean_degree_threshold(vectors: np.ndarray, mean_degree: float, tile: tuple[int, int] = TILE) -> float:
    """Return the threshold of :func:`mean_degree_pairs`."""
    return mean_degree_pairs(vectors, mean_degree, tile)[0]


def mean_degree_pairs(
    vectors: np.ndarray, mean_degree: float, tile: tuple[int, int] = TILE
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the least t for which the graph {cos > t} over the pool has mean degree 2E/n ≤ ``mean_degree``.

    With E_max = ⌊n · mean_degree / 2⌋, t is the (E_max + 1)-th largest of the pool's pair similarities, so
    that the strict comparison leaves at most E_max edges (fewer where pairs tie at t). −1 where all pairs
    fit.

    Args:
        vectors: unit rows (n, dim) of the pool; no test question is looked at.
        mean_degree: ≥ 0.
        tile: rows × columns of one product.

    Returns:
        t, and the graph's pairs i < j as two int32 arrays.
    """
    n = len(vectors)
    most = int(n * mean_degree / 2)
    if most >= n * (n - 1) // 2:
        return -1.0, *pairs_above(vectors, -1.0, tile)
    return largest_pairs(vectors, most + 1, tile)


def largest_pairs(vectors: np.ndarray, k: int, tile: tuple[int, int] = TILE) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the k-th largest exact cosine t over pairs i < j (1 ≤ k ≤ n(n−1)/2) and the pairs above t.

    One pass over the tiles as a rule, in memory O(k + one tile): a sample of rows guesses a floor somewhat below
    t, and the pass keeps what lies above it. Where that is fewer than k pairs, it is done again from a lower one.
    """
    for wanted in (1.25, 4, np.inf):
        floor = _likely_floor(vectors, wanted * k)
        held = _Largest(k)
        scan = Scan(vectors, floor, tile)
        for rows, columns in scan:
            held.add(exact_cosine(vectors, rows, vectors, columns), rows, columns)
            scan.threshold = max(floor, held.floor)
        if held.holds_all():
            break
    return held.above()


def _likely_floor(vectors: np.ndarray, n_pairs: float) -> float:
    """Return a cosine that at least ``n_pairs`` pairs should exceed, judged by evenly spaced rows."""
    n = len(vectors)
    step = -(-n // _SAMPLE)
    rows = np.arange(0, n, step)
    products = vectors[rows] @ vectors.T
    products[np.arange(len(rows)), rows] = -2  # not with itself
    share = 2 * n_pairs * len(rows) / n
    count = share + 3 * np.sqrt(share) + 3
    if count > products.size - len(rows):
        return _ALL
    return float(np.partition(products.ravel(), -int(count))[-int(count)]) - 2 * margin(vectors.shape[1])


class _Largest:
    """The k largest of a stream of pairs. ``floor``: at least k pairs were seen that do not lie below it."""

    def __init__(self, k: int):
        self.k, self.floor = k, _ALL
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._n = 0

    def add(self, cosines: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
        self._parts.append((cosines, rows, columns))
        self._n += len(cosines)
        if self._n > 4 * self.k + _SPARE:
            self._drop()

    def holds_all(self) -> bool:
        """Tell whether k pairs were seen."""
        return self._n >= self.k or self.floor > _ALL

    def above(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the k-th largest cosine and the pairs above it."""
        self._drop()
        [(_, rows, columns)] = self._parts
        return self.floor, rows, columns

    def _drop(self) -> None:
        """Raise the floor to the k-th largest cosine and drop the pairs that are not above it."""
        cosines, rows, columns = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        if len(cosines) >= self.k:
            self.floor = float(np.partition(cosines, len(cosines) - self.k)[len(cosines) - self.k])
        kept = cosines > self.floor
        self._parts, self._n = [(cosines[kept], rows[kept], columns[kept])], int(kept.sum())
