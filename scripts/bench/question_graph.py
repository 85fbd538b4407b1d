"""The question–question graph: sklearn's matrix, a loop and networkx (the paper's way) beside ours.

python scripts/bench/question_graph.py --nodes 50000 --paper-nodes 5000
"""

import argparse
import time

import networkx
import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from graphcontext.graph.calibration import mean_degree_threshold
from graphcontext.graph.pairs import pairs_above


def clustered(n: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors in clusters of about 20, as questions on one theme are."""
    centres = rng.normal(size=(max(1, n // 20), dim))
    vectors = centres[rng.integers(0, len(centres), n)] + 0.55 * rng.normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def paper_way(vectors: np.ndarray, threshold: float) -> networkx.Graph:
    similarities = cosine_similarity(vectors)
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(vectors)))
    for i in range(len(vectors)):
        for j in range(i + 1, len(vectors)):
            if similarities[i, j] > threshold:
                graph.add_edge(i, j)
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000, help="nodes of ours")
    parser.add_argument(
        "--paper-nodes", type=int, default=3000, help="nodes of the paper's way; it grows as n²"
    )
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--threshold", type=float, default=0.8)
    options = parser.parse_args()
    vectors = clustered(options.nodes, options.dim, np.random.default_rng(0))
    small = vectors[: options.paper_nodes]

    start = time.process_time()
    graph = paper_way(small, options.threshold)
    paper = (time.process_time() - start) * (options.nodes / len(small)) ** 2
    rows, columns = pairs_above(small, options.threshold)
    same = set(zip(rows.tolist(), columns.tolist(), strict=True)) == {tuple(sorted(e)) for e in graph.edges}

    start = time.process_time()
    n_edges = len(pairs_above(vectors, options.threshold)[0])
    ours = time.process_time() - start
    start = time.process_time()
    threshold = mean_degree_threshold(vectors, 8)
    calibration = time.process_time() - start

    print(
        f"{options.nodes} × {options.dim}, cos > {options.threshold}: {n_edges} edges, CPU seconds; "
        f"equal edges on {len(small)} nodes: {same}\n"
    )
    print("| way | seconds | ratio |")
    print("|---|---|---|")
    print(f"| sklearn matrix, loop, networkx (n² from {len(small)} nodes) | {paper:.1f} | 1 |")
    print(f"| ours, tiles | {ours:.2f} | {paper / ours:.0f} |")
    print(f"| ours, calibration to mean degree 8 (τ = {threshold:.4f}) | {calibration:.2f} | |")


if __name__ == "__main__":
    main()
