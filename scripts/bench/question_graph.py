"""The question–question graph: sklearn's matrix, a loop and networkx (the paper's way) beside ours.

python scripts/bench/question_graph.py --nodes 50000 --paper-nodes 5000

The paper's way grows with n² in time and memory (10 GB at 50,000 nodes), so it runs on fewer nodes and its time is
scaled up. The bare product is the upper triangle's tiles, computed and dropped: what no exact way that multiplies
everything can go below.
"""

import argparse
import tracemalloc

import clock
import networkx
import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from graphcontext.graph import pairs
from graphcontext.graph.calibration import mean_degree_pairs
from graphcontext.graph.cosine import TILE, unit_rows
from graphcontext.graph.pairs import pairs_above


def clustered(n: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors in clusters of about 20, as questions on one theme are."""
    centres = rng.normal(size=(max(1, n // 20), dim))
    vectors = centres[rng.integers(0, len(centres), n)] + 0.55 * rng.normal(size=(n, dim))
    return unit_rows(vectors.astype(np.float32))


def near_a_surface(n: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors around a surface of 12 dimensions: the theme shifts from each question to the next."""
    points = rng.normal(size=(n, 12)) @ rng.normal(size=(12, dim)) + rng.normal(size=(n, dim))
    return unit_rows(points.astype(np.float32))


def paper_way(vectors: np.ndarray, threshold: float) -> networkx.Graph:
    similarities = cosine_similarity(vectors)
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(vectors)))
    for i in range(len(vectors)):
        for j in range(i + 1, len(vectors)):
            if similarities[i, j] > threshold:
                graph.add_edge(i, j)
    return graph


def bare_product(vectors: np.ndarray) -> None:
    for i in range(0, len(vectors), TILE[0]):
        for j in range(i, len(vectors), TILE[1]):
            vectors[i : i + TILE[0]] @ vectors[j : j + TILE[1]].T


def plain(vectors: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Ours where the bound on few axes does not pay."""
    large, pairs.LARGE = pairs.LARGE, len(vectors) + 1
    try:
        return pairs_above(vectors, threshold)
    finally:
        pairs.LARGE = large


def as_set(found: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(*map(np.ndarray.tolist, found), strict=True))


def peak_mb(function) -> float:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of ours")
    parser.add_argument("--paper-nodes", type=int, default=3000, help="nodes of the paper's way; it grows as n²")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--threshold", type=float, default=0.8)
    options = parser.parse_args()
    tau = options.threshold
    rows = []
    for name, make in (("clusters", clustered), ("near a surface", near_a_surface)):
        vectors = make(options.nodes, options.dim, np.random.default_rng(0))
        small = vectors[: options.paper_nodes]
        paper, graph = clock.cpu(lambda small=small: paper_way(small, tau), times=1)
        same = as_set(pairs_above(small, tau)) == {tuple(sorted(edge)) for edge in graph.edges}
        paper *= (options.nodes / len(small)) ** 2
        bare, _ = clock.cpu(lambda vectors=vectors: bare_product(vectors))
        tiles, expected = clock.cpu(lambda vectors=vectors: plain(vectors, tau))
        ours, found = clock.cpu(lambda vectors=vectors: pairs_above(vectors, tau))
        calibrated, (threshold, _, _) = clock.cpu(lambda vectors=vectors: mean_degree_pairs(vectors, 8))
        peak = peak_mb(lambda vectors=vectors: pairs_above(vectors, tau))
        axes = pairs.axes_that_pay(vectors, tau)
        chosen = "plain tiles" if axes is None else f"bound on {axes.shape[1]} axes"
        same = same and as_set(found) == as_set(expected)
        rows += [
            (name, f"sklearn matrix, loop, networkx (n² from {len(small)} nodes)", f"{paper:.1f}", 1, "", ""),
            (name, "bare product of the triangle", f"{bare:.2f}", f"{paper / bare:.0f}", 1, ""),
            (name, "ours, plain tiles", f"{tiles:.2f}", f"{paper / tiles:.0f}", f"{tiles / bare:.2f}", ""),
            (
                *(name, f"ours, as chosen: {chosen}", f"{ours:.2f}", f"{paper / ours:.0f}", f"{ours / bare:.2f}"),
                f"{len(found[0])} edges, equal: {same}; peak {peak:.0f} MB",
            ),
            (
                *(name, "ours, mean degree 8 calibrated", f"{calibrated:.2f}", f"{paper / calibrated:.0f}"),
                *(f"{calibrated / bare:.2f}", f"τ = {threshold:.4f}"),
            ),
        ]
    print(f"Question graph, {options.nodes} × {options.dim}, cos > {tau}\n")
    clock.table("vectors | way | seconds | ratio | of the bare product | check", rows)


if __name__ == "__main__":
    main()
