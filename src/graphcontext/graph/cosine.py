"""Cosine similarity at scale: fast tiles find candidates, one exact arithmetic decides (GraphContextGen
§4.2).

A matrix product in float32 rounds differently with the tile's shape, so a pair that lies on a threshold or
two passages with one text could flip between kernels. Here the product only proposes: whatever lies within
:func:`margin` of a decision is computed again by :func:`exact_cosine`, whose result depends on the two
vectors alone. Edges of the graph, edges of a query and nearest neighbours are all decided by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcontext.errors import InputError

TILE = (1024, 4096)  # rows × columns of one float32 product: 16 MiB
_PAIR_VALUES = 1 << 22  # vector components that exact_cosine holds at once


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return ``vectors`` (n, dim) as float32 rows of length 1; zero rows stay zero, unit rows keep their
    bits.

    Raises:
        InputError: a row holds NaN or infinity.
    """
    norms = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(norms).all():
        raise InputError(f"embedding {int(np.flatnonzero(~np.isfinite(norms))[0])} is not finite (dtype too small?)")
    off = (np.abs(norms - 1) > 1e-5) & (norms > 0)
    if not off.any():
        return np.asarray(vectors, dtype=np.float32)
    scaled = np.array(vectors, dtype=np.float32)
    scaled[off] /= norms[off, None]
    return scaled


def margin(dim: int) -> float:
    """Return a bound on |float32 product − exact cosine| of unit vectors: twice ``dim`` rounding errors."""
    return (dim + 8) * 2.0**-23


def exact_cosine(left: np.ndarray, rows: np.ndarray, right: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``left[rows[p]] · right[columns[p]]`` for every pair p in float64, each independent of the
    others.

    Args:
        left: unit rows (m, dim).
        rows: row of ``left`` of each pair (n_pairs,).
        right: unit rows (n, dim).
        columns: row of ``right`` of each pair (n_pairs,).
    """
    cosines = np.empty(len(rows), dtype=np.float64)
    step = max(1, _PAIR_VALUES // max(1, left.shape[1]))
    for start in range(0, len(rows), step):
        pairs = slice(start, start + step)
        products = left[rows[pairs]].astype(np.float64) * right[columns[pairs]].astype(np.float64)
        cosines[pairs] = products.sum(axis=1)
    return cosines


def query_edges(
    queries: np.ndarray,
    pool: np.ndarray,
    threshold: float,
    weighted: bool = False,
    tile: tuple[int, int] = TILE,
) -> Any:
    """Return each query's edges into the pool, cos(q, i) > ``threshold``, by the graph's own arithmetic
    (§4.2).

    Args:
        queries: unit rows (m, dim).
        pool: unit rows (n, dim).
        threshold: strict lower bound, the graph's ``facts["threshold"]``.
        weighted: the weight is the cosine instead of 1.
        tile: rows × columns of one product.

    Returns:
        scipy CSR array (m, n), float64, columns ascending.
    """
    found_rows, found_columns = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for i in range(0, len(queries), tile[0]):
        for j in range(0, len(pool), tile[1]):
            products = queries[i : i + tile[0]] @ pool[j : j + tile[1]].T
            rows, columns = above(products, threshold, (queries, i), (pool, j))
            found_rows.append(rows)
            found_columns.append(columns)
    rows, columns = np.concatenate(found_rows), np.concatenate(found_columns)
    weights = exact_cosine(queries, rows, pool, columns) if weighted else np.ones(len(rows))
    return to_csr(rows, columns, weights, (len(queries), len(pool)))


def nearest(queries: np.ndarray, pool: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` pool rows of highest exact cosine for each query, equal cosines by lower index.

    Args:
        queries: unit rows (m, dim).
        pool: unit rows (n, dim).
        k: neighbours per query, cut to n.

    Returns:
        Indices (m, min(k, n)) int64 and cosines (m, min(k, n)) float64, best first.
    """
    k = min(k, len(pool))
    indices, cosines = np.zeros((len(queries), k), np.int64), np.zeros((len(queries), k))
    if k == 0:
        return indices, cosines
    slack = 2 * margin(pool.shape[1])
    block = max(1, (1 << 24) // len(pool))
    for start in range(0, len(queries), block):
        products = queries[start : start + block] @ pool.T
        for q, row in enumerate(products, start):
            last = np.partition(row, len(row) - k)[len(row) - k]
            near = np.flatnonzero(row >= last - slack)
            exact = exact_cosine(queries, np.full(len(near), q), pool, near)
            best = np.argsort(-exact, kind="stable")[:k]
            indices[q], cosines[q] = near[best], exact[best]
    return indices, cosines


def to_csr(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return a scipy CSR array with ascending columns in each row."""
    from scipy.sparse import coo_array

    matrix = coo_array((weights, (rows, columns)), shape=shape).tocsr()
    matrix.sort_indices()
    return matrix


def above(
    products: np.ndarray, threshold: float, left: tuple[np.ndarray, int], right: tuple[np.ndarray, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of one tile whose exact cosine is > ``threshold``, as two int32 arrays.

    Args:
        products: float32 products (n_rows, n_columns) of the tile; those within the margin are computed again.
        threshold: strict lower bound.
        left: all unit rows on the left, and which of them is the tile's first row.
        right: the same for the columns.
    """
    (rows_of, i), (columns_of, j) = left, right
    slack = margin(rows_of.shape[1])
    flat = np.flatnonzero(products > threshold - slack)
    values = products.ravel()[flat]
    rows, columns = np.divmod(flat, products.shape[1])
    rows, columns = (rows + i).astype(np.int32), (columns + j).astype(np.int32)
    doubtful = np.flatnonzero(values <= threshold + slack)
    kept = np.ones(len(flat), dtype=bool)
    kept[doubtful] = exact_cosine(rows_of, rows[doubtful], columns_of, columns[doubtful]) > threshold
    return rows[kept], columns[kept]
