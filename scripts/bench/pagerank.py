"""Personalised PageRank: networkx with the query node added and removed (the papers' way) beside ours.

python scripts/bench/pagerank.py --nodes 50000 --degree 17 --queries 100

Three graphs of one size: random, as a worst case for memory; the close pairs of points around a surface of 12
dimensions, one large component like a question pool's; tight clusters, many small components. Ours includes
everything from the CSR graph to the scores. The error is ‖x − x*‖₁ against 300 steps in float64.
"""

import argparse
import statistics
import time

import clock
import networkx
import numpy as np
from scipy.sparse import block_array, coo_array, csr_array

from graphcontext.data.records import Graph
from graphcontext.graph import pagerank
from graphcontext.graph.calibration import mean_degree_pairs
from graphcontext.graph.cosine import query_edges, unit_rows

ALPHA = 0.85


def symmetric(i: np.ndarray, j: np.ndarray, n: int) -> csr_array:
    """The undirected, unweighted graph of these pairs."""
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = coo_array((np.ones(len(ends[0]), np.float32), ends), shape=(n, n)).tocsr()
    matrix.data[:] = 1
    return matrix


def random(n: int, degree: float, m: int, rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    """A random graph, and m queries with 8 neighbours each."""
    i, j = rng.integers(0, n, (2, int(n * degree / 2)))
    seeds = np.concatenate([rng.choice(n, 8, replace=False) for _ in range(m)])
    edges = coo_array((np.ones(8 * m), (np.repeat(np.arange(m), 8), seeds)), shape=(m, n)).tocsr()
    return symmetric(i[i != j], j[i != j], n), edges


def of_vectors(vectors: np.ndarray, degree: float, m: int) -> tuple[csr_array, csr_array]:
    """The similarity graph of all but the last m vectors, which are the queries."""
    vectors = unit_rows(vectors.astype(np.float32))
    pool, queries = vectors[:-m], vectors[-m:]
    threshold, i, j = mean_degree_pairs(pool, degree)
    return symmetric(i, j, len(pool)), query_edges(queries, pool, threshold)


def near_a_surface(n: int, degree: float, m: int, rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    points = rng.normal(size=(n + m, 12)) @ rng.normal(size=(12, 384)) + rng.normal(size=(n + m, 384))
    return of_vectors(points, degree, m)


def clustered(n: int, degree: float, m: int, rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    centres = rng.normal(size=(n // 20, 384))
    points = centres[rng.integers(0, len(centres), n + m)] + 0.55 * rng.normal(size=(n + m, 384))
    return of_vectors(points, degree, m)


def networkx_way(matrix: csr_array, edges: csr_array, queries: range) -> tuple[float, np.ndarray]:
    """CPU seconds a query (median) and the scores."""
    graph = networkx.from_scipy_sparse_array(matrix)
    seconds, found = [], []
    for q in queries:
        start = time.process_time()
        neighbours = edges[[q]].tocoo().col
        graph.add_edges_from(("q", int(i)) for i in neighbours)
        scores = networkx.pagerank(graph, alpha=ALPHA, personalization={"q": 1})
        graph.remove_node("q")
        seconds.append(time.process_time() - start)
        found.append([scores[i] for i in range(matrix.shape[0])])
    return statistics.median(seconds), np.array(found)


def solution(matrix: csr_array, edges: csr_array, q: int) -> np.ndarray:
    """PageRank with the query as a node, 300 steps in float64."""
    w = edges[[q]].toarray().T
    whole = block_array([[matrix.astype(float), w], [w.T, None]], format="csr")
    outflow = whole.sum(axis=0)
    start = np.zeros(len(w) + 1)
    start[-1] = 1
    x = start
    for _ in range(300):
        x = ALPHA * (whole @ (x / np.where(outflow > 0, outflow, 1))) + (1 - ALPHA) * start
    return x[:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--degree", type=float, default=17)
    parser.add_argument("--queries", type=int, default=100, help="queries of ours")
    parser.add_argument("--paper-queries", type=int, default=5, help="queries of networkx, one by one")
    options = parser.parse_args()
    rows = []
    for name, make in (("random", random), ("near a surface", near_a_surface), ("clusters", clustered)):
        matrix, edges = make(options.nodes, options.degree, options.queries, np.random.default_rng(0))
        graph = Graph("bench", matrix.indptr, matrix.indices, matrix.data)
        few = [q for q in range(options.queries) if edges.indptr[q + 1] > edges.indptr[q]][: options.paper_queries]
        paper, expected = networkx_way(matrix, edges, few)
        rows.append((name, "networkx, query node added and removed", "networkx", f"{1000 * paper:.1f}", 1, ""))

        def ours(convergence: str, graph: Graph = graph, edges: csr_array = edges) -> np.ndarray:
            pagerank._undirected.cache_clear()
            return pagerank.personalised_pagerank(graph, edges, convergence=convergence)

        for convergence in ("networkx", "true"):
            seconds, found = clock.cpu(lambda convergence=convergence: ours(convergence))
            each = seconds / options.queries
            if convergence == "networkx":
                check = f"difference {np.abs(found[few] - expected).max():.0e}"
            else:
                errors = [np.abs(found[q] - solution(matrix, edges, q)).sum() for q in few]
                check = f"L1 error {max(errors):.1e}"
            way = f"ours, {options.queries} queries"
            rows.append((name, way, convergence, f"{1000 * each:.2f}", f"{paper / each:.0f}", check))
    print(f"Personalised PageRank, {options.nodes} nodes, mean degree {options.degree:g}\n")
    clock.table("graph | way | stopping rule | ms a query | ratio | check", rows)


if __name__ == "__main__":
    main()
