"""Personalised PageRank: networkx with the query node added and removed (the papers' way) beside ours.

python scripts/bench/pagerank.py --nodes 50000 --degree 17 --queries 100
"""

import argparse
import time

import networkx
import numpy as np
from scipy.sparse import coo_array, csr_array

from graphcontext.data.records import Graph
from graphcontext.graph.pagerank import personalised_pagerank


def random_graph(n: int, degree: float, rng: np.random.Generator) -> csr_array:
    """An undirected graph of n nodes with the given mean degree, unweighted."""
    m = int(n * degree / 2)
    i, j = rng.integers(0, n, m), rng.integers(0, n, m)
    kept = i != j
    rows, columns = np.concatenate([i[kept], j[kept]]), np.concatenate([j[kept], i[kept]])
    matrix = coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n)).tocsr()
    matrix.data[:] = 1
    return matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--degree", type=float, default=17)
    parser.add_argument("--queries", type=int, default=100, help="queries of ours, one batch")
    parser.add_argument("--paper-queries", type=int, default=5, help="queries of networkx, one by one")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    matrix = random_graph(options.nodes, options.degree, rng)
    graph = Graph("bench", matrix.indptr, matrix.indices, matrix.data)
    seeds = [rng.choice(options.nodes, 8, replace=False) for _ in range(options.queries)]
    rows = np.repeat(np.arange(options.queries), 8)
    edges = coo_array(
        (np.ones(len(rows)), (rows, np.concatenate(seeds))), shape=(options.queries, options.nodes)
    ).tocsr()

    whole = networkx.from_scipy_sparse_array(matrix)
    expected = []
    start = time.process_time()
    for nodes in seeds[: options.paper_queries]:
        whole.add_edges_from(("q", int(i)) for i in nodes)
        scores = networkx.pagerank(whole, alpha=0.85, personalization={"q": 1})
        expected.append([scores[i] for i in range(options.nodes)])
        whole.remove_node("q")
    paper = (time.process_time() - start) / len(expected)

    ours = {}
    for convergence in ("networkx", "true"):
        start = time.process_time()
        found = personalised_pagerank(graph, edges, convergence=convergence)
        ours[convergence] = (time.process_time() - start) / options.queries
        if convergence == "networkx":
            difference = np.abs(found[: len(expected)] - np.array(expected)).max()

    print(f"{options.nodes} nodes, mean degree {2 * (matrix.nnz // 2) / options.nodes:.1f}, CPU seconds\n")
    print("| way | stopping rule | ms a query | ratio | largest difference |")
    print("|---|---|---|---|---|")
    print(f"| networkx, query node added and removed | networkx | {1000 * paper:.2f} | 1 | |")
    print(
        f"| ours, {options.queries} queries at once | networkx | {1000 * ours['networkx']:.2f} "
        f"| {paper / ours['networkx']:.0f} | {difference:.1e} |"
    )
    print(
        f"| ours, {options.queries} queries at once | true | {1000 * ours['true']:.2f} "
        f"| {paper / ours['true']:.0f} | |"
    )


if __name__ == "__main__":
    main()
