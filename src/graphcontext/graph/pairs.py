r"""All pairs of a pool above a cosine (GraphContextGen §4.2): exact, tile by tile, in memory linear in the pairs.

The plain way multiplies all rows with all others, n²d operations, and is as fast as that product. On a large
pool most of it can be saved: with the rows turned onto the k main axes of the pool, a = (a₁, a₂),

.. math:: a \cdot b \le a_1 \cdot b_1 + \|a_2\| \|b_2\|,

which is a product of k + 1 dimensions. Only the pairs whose bound passes the threshold are computed whole. How
many pass depends on the embeddings, on k and on the threshold, so a small sample of the pool decides for a k or
for the plain way. The pairs are the same each way: :func:`graphcontext.graph.cosine.exact_cosine` decides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphcontext.compiled import compiled
from graphcontext.graph.cosine import TILE, above, exact_cosine, margin

LARGE = 16_384  # rows from which turning them can pay
AXES = (32, 64, 96, 128, 192, 256)
_SAMPLE = 1024  # rows and columns of the sample
_ROWS = 4096  # rows that are turned at once, and rows that give the axes
# Costs of one pair in dimensions of a matrix product, as measured on AVX2 and AVX-512 machines:
_PER_TILE = 20  # reading a product of few dimensions off its tile
_PER_CANDIDATE = 10  # computing a pair whole, by its dimensions


class Scan:
    """Goes over all pairs i < j of unit rows and yields those whose exact cosine is > ``threshold``.

    ``threshold`` may be raised between two tiles.

    Args:
        vectors: unit rows (n, dim) float32.
        threshold: strict lower bound.
        tile: rows × columns of one product.
    """

    def __init__(self, vectors: np.ndarray, threshold: float, tile: tuple[int, int] = TILE):
        self.vectors, self.threshold, self.tile = vectors, threshold, tile

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the pairs of each tile as two int32 arrays."""
        axes = axes_that_pay(self.vectors, self.threshold)
        if axes is None:
            for i, j, products in upper_tiles(self.vectors, self.tile):
                yield above(products, self.threshold, (self.vectors, i), (self.vectors, j))
            return
        turned = bounded(self.vectors, axes)
        slack = margin(turned.shape[1])
        for i, j, bounds in upper_tiles(turned, self.tile):
            yield self._checked(i, j, bounds > self.threshold - slack)

    def _checked(self, i: int, j: int, is_near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of one tile above the threshold, of those whose bound is."""
        vectors, slack = self.vectors, margin(self.vectors.shape[1])
        rows, columns = np.divmod(np.flatnonzero(is_near), is_near.shape[1])
        rows, columns = rows + i, columns + j
        products = np.empty(len(rows), np.float32)
        _products(vectors, rows, columns, products)
        kept = products > self.threshold + slack
        doubtful = np.flatnonzero(~kept & (products > self.threshold - slack))
        exact = exact_cosine(vectors, rows[doubtful], vectors, columns[doubtful])
        kept[doubtful] = exact > self.threshold
        return rows[kept].astype(np.int32), columns[kept].astype(np.int32)


def pairs_above(vectors: np.ndarray, threshold: float, tile: tuple[int, int] = TILE) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs i < j of unit rows whose exact cosine is > ``threshold``, as two int32 arrays."""
    nothing = np.empty(0, np.int32)
    found = [(nothing, nothing), *Scan(vectors, threshold, tile)]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([columns for _, columns in found])


def upper_tiles(vectors: np.ndarray, tile: tuple[int, int] = TILE) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield ``(first row, first column, products)`` over all pairs i < j; other slots of a tile hold −2."""
    n = len(vectors)
    for i in range(0, n, tile[0]):
        rows = vectors[i : i + tile[0]]
        for j in range(i, n, tile[1]):
            products = rows @ vectors[j : j + tile[1]].T
            reach = j - i  # the diagonal crosses this tile where column + reach <= row
            if reach < len(rows):
                products[np.tri(*products.shape, k=-reach, dtype=bool)] = -2
            yield i, j, products


def axes_that_pay(vectors: np.ndarray, threshold: float) -> np.ndarray | None:
    """Return the main axes (dim, k) on which the bound saves most, None where the plain product is as fast.

    Judged by the share of pairs whose bound passes the threshold in a sample of evenly spaced rows, and by fixed
    costs instead of a clock: the same on every machine.
    """
    n, dim = vectors.shape
    if n < LARGE:
        return None
    axes, step = main_axes(vectors), -(-n // _SAMPLE)
    left, right = vectors[::step], vectors[step // 2 :: step]
    cheapest, best = 0.8 * dim, None
    for k in AXES:
        if k + _PER_TILE >= cheapest:
            break
        bounds = bounded(left, axes[:, :k]) @ bounded(right, axes[:, :k]).T
        cost = k + _PER_TILE + float((bounds > threshold).mean()) * _PER_CANDIDATE * dim
        if cost < cheapest:
            cheapest, best = cost, axes[:, :k]
    return best


def main_axes(vectors: np.ndarray) -> np.ndarray:
    """Return the eigenvectors of Σ v vᵀ over a sample of rows, orthonormal columns (dim, dim), largest first."""
    sample = vectors[:: -(-len(vectors) // _ROWS)].astype(np.float64)
    return np.linalg.eigh(sample.T @ sample)[1][:, ::-1]


def bounded(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return (a₁, ‖a₂‖) of each row, float32 (n, k + 1): their product bounds the cosine from above."""
    turned = np.empty((len(vectors), axes.shape[1] + 1), np.float32)
    for start in range(0, len(vectors), _ROWS):
        rows = vectors[start : start + _ROWS].astype(np.float64)
        head = rows @ axes
        rest = (rows * rows).sum(axis=1) - (head * head).sum(axis=1)
        turned[start : start + _ROWS, :-1] = head
        turned[start : start + _ROWS, -1] = np.sqrt(np.maximum(rest, 0) + 1e-14)  # above the rounding of rest
    return turned


@compiled(any_order=True)
def _products(vectors, rows, columns, products):
    """The float32 product of each pair, for a decision within the margin."""
    for p in range(len(rows)):
        left, right = vectors[rows[p]], vectors[columns[p]]
        total = np.float32(0)
        for c in range(len(left)):
            total += left[c] * right[c]
        products[p] = total
