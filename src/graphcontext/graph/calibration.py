"""The similarity threshold at which a pool's graph has a given mean degree, found exactly on the pool alone.

The paper (GraphContextGen §4.2, §5) takes cosine > 0.8 under bge-large-en, chosen by the density of the
graph. Another encoder spreads its cosines otherwise, so the same number would give another graph or none:
for those the density is kept and the threshold follows from it.
"""

from __future__ import annotations

import numpy as np

from graphcontext.graph.cosine import TILE, exact_cosine, margin, upper_tiles

_BUFFER = 1 << 22  # values held before they are thinned to the k largest


def mean_degree_threshold(vectors: np.ndarray, mean_degree: float, tile: tuple[int, int] = TILE) -> float:
    """Return the least t for which the graph {cos > t} over the pool has mean degree 2E/n ≤ ``mean_degree``.

    With E_max = ⌊n · mean_degree / 2⌋, t is the (E_max + 1)-th largest of the pool's pair similarities, so
    that the strict comparison leaves at most E_max edges (fewer where pairs tie at t). −1 where all pairs
    fit.

    Args:
        vectors: unit rows (n, dim) of the pool; no test question is looked at.
        mean_degree: ≥ 0.
        tile: rows × columns of one product.
    """
    n = len(vectors)
    most = int(n * mean_degree / 2)
    if most >= n * (n - 1) // 2:
        return -1.0
    return kth_largest_similarity(vectors, most + 1, tile)


def kth_largest_similarity(vectors: np.ndarray, k: int, tile: tuple[int, int] = TILE) -> float:
    """Return the k-th largest exact cosine over pairs i < j (1 ≤ k ≤ n(n−1)/2), in memory O(k + one tile).

    Two passes over the tiles: the first finds the k-th largest float32 product a, which the exact value
    differs from by at most the margin; the second counts the pairs surely above and computes the doubtful
    ones exactly.
    """
    slack = 2 * margin(vectors.shape[1])
    largest = _Largest(k)
    for _, _, products in upper_tiles(vectors, tile):
        largest.add(products[products >= largest.floor])
    near = largest.kth()

    surely_above, doubtful = 0, _Largest(k)
    for i, j, products in upper_tiles(vectors, tile):
        flat = np.flatnonzero(products >= near - slack)
        above = products.ravel()[flat] > near + slack
        surely_above += int(above.sum())
        rows, columns = np.divmod(flat[~above], products.shape[1])
        doubtful.add(exact_cosine(vectors, rows + i, vectors, columns + j))
    return float(doubtful.kth(k - surely_above))


class _Largest:
    """The k largest of a stream of values, equal values held once with their count."""

    def __init__(self, k: int):
        self.k = k
        self.floor = -1.5  # masked slots of a tile hold −2
        self._values, self._counts = np.empty(0), np.empty(0, np.int64)  # descending
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def add(self, values: np.ndarray) -> None:
        self._waiting.append(values)
        self._n_waiting += len(values)
        if self._n_waiting > _BUFFER or (self.floor == -1.5 and self._n_waiting > self.k):
            self._thin()

    def kth(self, k: int | None = None) -> float:
        self._thin()
        return self._values[np.searchsorted(np.cumsum(self._counts), k or self.k)]

    def _thin(self) -> None:
        fresh = np.concatenate(self._waiting) if self._waiting else np.empty(0)
        self._waiting, self._n_waiting = [], 0
        if len(fresh) > self.k:
            fresh = np.partition(fresh, len(fresh) - self.k)[len(fresh) - self.k :]
        new, counts = np.unique(fresh, return_counts=True)
        values, where = np.unique(np.concatenate([self._values, new]), return_inverse=True)
        merged = np.zeros(len(values), np.int64)
        np.add.at(merged, where, np.concatenate([self._counts, counts]))
        values, merged = values[::-1], merged[::-1]
        kept = int(np.searchsorted(np.cumsum(merged), self.k)) + 1
        self._values, self._counts = values[:kept], merged[:kept]
        if kept <= len(values):
            self.floor = max(self.floor, float(self._values[-1]))
