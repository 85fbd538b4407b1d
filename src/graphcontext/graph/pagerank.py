r"""Personalised PageRank on sparse matrices (GraphContextGen §4.2), all queries of a graph at once.

.. math:: x = \alpha (P^\top x + m(x) s) + (1 - \alpha) s, \quad P_{ij} = w_{ij} / d_i, \quad
          d_i = \sum_j w_{ij}

with seeds s (summing to 1) and m(x) the mass on dangling nodes (d_i = 0), which goes back to the seeds.

The paper adds the query q to the graph as a node with edges w_qi to its neighbours N(q), puts all
personalisation on q, and drops q again. Here the graph stays as it is: a neighbour i of q keeps d_i / (d_i
+ w_qi) of its outflow for the graph and returns the rest to q, so every query is one column over the same
matrix. Large undirected graphs go through
:mod:`graphcontext.graph.conjugate_gradients`, which reaches the same solution in fewer and cheaper steps.

Differs from networkx:
    * ``convergence="true"`` (default) starts at the seeds and stops where the bound α/(1−α)·‖Δ‖₁ on the
      distance to the solution is below ``tol``. networkx starts uniform and stops at ‖Δ‖₁ < N·tol, which at
      50,000 nodes is an error of 0.14; ``convergence="networkx"`` does that, to be compared with the paper.
    * A query without edges has the solution 0 on every node; networkx leaves there what its start had.
    * After ``max_iter`` steps the last vector is returned and marked, where networkx raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcontext.data.records import Graph
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph import conjugate_gradients

CONVERGENCE = ("true", "networkx")
LARGE = 200_000  # edge slots from which compiling or loading machine code pays
_COLUMNS = 32  # queries that go through together: 50,000 nodes × 32 × 8 bytes = 12.8 MB per array


@dataclass(frozen=True)
class PowerIteration:
    """How PageRank is iterated and when it stops.

    Args:
        damping: α in [0, 1); the paper's .85 (§5).
        max_iter: steps at most, ≥ 1; the paper's 100.
        tol: > 0; the paper's 1e-6.
        convergence: ``true`` or ``networkx``, see the module.
    """

    damping: float = 0.85
    max_iter: int = 100
    tol: float = 1e-6
    convergence: str = "true"

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise InputError(f"damping={self.damping}: allowed is 0 <= damping < 1")
        if self.max_iter < 1:
            raise InputError(f"max_iter={self.max_iter}: allowed is at least 1")
        if not self.tol > 0:
            raise InputError(f"tol={self.tol}: allowed is above 0")
        if self.convergence not in CONVERGENCE:
            raise InputError(f"convergence={self.convergence}{did_you_mean(str(self.convergence), CONVERGENCE)}")

    def has_settled(self, change: Any, n_nodes: int) -> Any:
        """Tell from ‖Δ‖₁ of the last step (a number or one per column) whether to stop."""
        if self.convergence == "networkx":
            return change < n_nodes * self.tol
        return self.damping / (1 - self.damping) * change < self.tol


@dataclass(frozen=True)
class Block:
    """PageRank of some queries in a row.

    Args:
        start: number of the first query.
        scores: (n_queries_in_block, n_nodes) float64; the query's own mass is left out.
        has_converged: (n_queries_in_block,) bool.
    """

    start: int
    scores: np.ndarray
    has_converged: np.ndarray


def pagerank(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    seeds: np.ndarray | dict[int, float],
    iteration: PowerIteration | None = None,
) -> np.ndarray:
    """Return the PageRank of every node (n_nodes,) float64, summing to 1, for one personalisation.

    Args:
        indptr: row pointers (n_nodes + 1,); row i holds the out-edges of node i.
        indices: targets (n_edge_slots,).
        weights: (n_edge_slots,) ≥ 0; an edge of weight 0 is no edge.
        seeds: the personalisation s, either (n_nodes,) ≥ 0 or {node: weight}; it is scaled to sum 1.
        iteration: damping and stopping rule, default :class:`PowerIteration`.

    Raises:
        InputError: an empty graph, no seed, a seed that is not in the graph, a NaN or negative weight.
    """
    iteration = iteration or PowerIteration()
    n = len(indptr) - 1
    if n < 1:
        raise InputError("PageRank: the graph has no node")
    s = _personalisation(seeds, n)
    backward, outflow = _transition(indptr, indices, weights)
    dangling = outflow == 0
    x = s.copy() if iteration.convergence == "true" else np.full(n, 1 / n)
    for _ in range(iteration.max_iter):
        new = iteration.damping * (backward @ x + x[dangling].sum() * s) + (1 - iteration.damping) * s
        change = np.abs(new - x).sum()
        x = new
        if iteration.has_settled(change, n):
            break
    return x


def personalised_pagerank(
    graph: Graph,
    query_edges: Any,
    damping: float = 0.85,
    max_iter: int = 100,
    tol: float = 1e-6,
    convergence: str = "true",
) -> np.ndarray:
    """Return the PageRank (n_queries, n_nodes) float64 of every node, each query being one seed node (§4.2).

    A row sums to 1 less the query's own mass; it is 0 where the query has no edge. A row does not depend on
    the other queries, not in one bit.

    Args:
        graph: n nodes; undirected, or directed with q reachable from its neighbours.
        query_edges: scipy CSR (n_queries, n_nodes), weights > 0, see
            :func:`graphcontext.graph.cosine.query_edges`.
        damping: α in [0, 1).
        max_iter: steps at most.
        tol: see :class:`PowerIteration`.
        convergence: ``true`` or ``networkx``.

    Raises:
        InputError: shapes that do not fit, a NaN or negative weight.
    """
    iteration = PowerIteration(damping, max_iter, tol, convergence)
    blocks = [block.scores for block in pagerank_blocks(graph, query_edges, iteration)]
    return np.concatenate(blocks) if blocks else np.zeros((0, graph.n_nodes))


def pagerank_blocks(graph: Graph, query_edges: Any, iteration: PowerIteration) -> Iterator[Block]:
    """Yield :func:`personalised_pagerank` in blocks of queries, so that memory stays at one block."""
    from scipy.sparse import csr_array

    edges = csr_array(query_edges, dtype=np.float64)
    if edges.shape[1] != graph.n_nodes:
        raise InputError(f"PageRank: query edges reach {edges.shape[1]} nodes, the graph has {graph.n_nodes}")
    _check_weights(edges.data)
    edges.sum_duplicates()
    edges.eliminate_zeros()
    solve, columns = _solver(graph, iteration)
    for start in range(0, edges.shape[0], columns):
        yield Block(start, *solve(edges[start : start + columns].tocoo()))


def _solver(graph: Graph, iteration: PowerIteration) -> tuple[Callable[[Any], tuple[np.ndarray, np.ndarray]], int]:
    """Return what solves a block of queries (COO) into scores and ``has_converged``, and how many it takes."""
    if iteration.convergence == "true" and not graph.directed and len(graph.indices) >= LARGE:
        matrix = _undirected(graph)
        if matrix is not None:
            limits = iteration.damping, iteration.max_iter, iteration.tol
            return lambda edges: conjugate_gradients.solve(matrix, edges, *limits), conjugate_gradients.LANES
    backward, outflow = _transition(graph.indptr, graph.indices, graph.weights)
    return lambda edges: _solve(backward, outflow, edges, iteration), _COLUMNS


@functools.lru_cache(maxsize=1)  # the questions of a run come in chunks, to one graph
def _undirected(graph: Graph) -> conjugate_gradients.Undirected | None:
    _check_matrix(graph.indptr, graph.indices, graph.weights)
    return conjugate_gradients.undirected(graph)


def _solve(backward: Any, outflow: np.ndarray, edges: Any, iteration: PowerIteration) -> tuple[np.ndarray, np.ndarray]:
    """Iterate one block; ``edges`` is COO (n_queries, n_nodes). Each column is read off at its own stop."""
    m, n = edges.shape
    query, node, w = edges.row, edges.col, edges.data
    reach = np.bincount(query, w, minlength=m)  # W of each query
    to_node = w / reach[query]
    to_query = w / (outflow[node] + w)
    sinks = np.flatnonzero(outflow == 0)
    # A second column keeps numpy's column sums in row order: a lone column would be summed pairwise.
    width = max(m, 2)
    uniform = iteration.convergence == "networkx"
    x = np.full((n, width), 1 / (n + 1)) if uniform else np.zeros((n, width))
    x_q = np.full(width, 1 / (n + 1)) if uniform else np.ones(width)
    scores = np.zeros((m, n))
    waiting = reach > 0  # a query without edges keeps its mass: 0 elsewhere
    has_converged = ~waiting
    for _ in range(iteration.max_iter):
        if not waiting.any():
            break
        returned = to_query * x[node, query]
        kept = x.copy()
        kept[node, query] -= returned
        back = np.bincount(query, returned, minlength=width) + kept[sinks].sum(axis=0)
        new = iteration.damping * (backward @ kept)
        new[node, query] += iteration.damping * to_node * x_q[query]
        new_q = 1 - iteration.damping + iteration.damping * back
        change = np.abs(new - x).sum(axis=0) + np.abs(new_q - x_q)
        x, x_q = new, new_q
        stopped = waiting & iteration.has_settled(change[:m], n + 1)
        scores[stopped] = x[:, :m].T[stopped]
        has_converged |= stopped
        waiting &= ~stopped
    scores[waiting] = x[:, :m].T[waiting]
    return scores, has_converged


def _transition(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return Pᵀ as CSR (n, n) and the outflow d (n,); edges of weight 0 are left out."""
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    _check_matrix(indptr, indices, weights)
    matrix = csr_array((np.array(weights, dtype=np.float64), indices, indptr), shape=(n, n))
    matrix.eliminate_zeros()
    outflow = np.asarray(matrix.sum(axis=1)).reshape(n)
    matrix.data /= np.repeat(outflow, np.diff(matrix.indptr))
    return matrix.T.tocsr(), outflow


def _check_matrix(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
    _check_weights(weights)
    n = len(indptr) - 1
    if len(indices) and not (indices.min() >= 0 and indices.max() < n):
        raise InputError(f"PageRank: an edge leads to node {indices.max()}, the graph has {n} nodes")


def _check_weights(weights: np.ndarray) -> None:
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InputError(f"PageRank: edge {int(wrong[0])} has weight {weights[wrong[0]]}; allowed are numbers >= 0")


def _personalisation(seeds: np.ndarray | dict[int, float], n: int) -> np.ndarray:
    s = np.zeros(n)
    if isinstance(seeds, dict):
        for node, weight in seeds.items():
            if not isinstance(node, (int, np.integer)) or not 0 <= node < n:
                raise InputError(f"PageRank: seed {node!r} is not in the graph of {n} nodes")
            s[node] = weight
    elif len(seeds) not in (0, n):
        raise InputError(f"PageRank: {len(seeds)} seed weights for {n} nodes")
    elif len(seeds):
        s[:] = seeds
    if not np.isfinite(s).all() or (s < 0).any():
        raise InputError("PageRank: a seed weight is negative or not a number")
    if s.sum() == 0:
        raise InputError("PageRank: no seed (at least one node needs a weight above 0)")
    return s / s.sum()
