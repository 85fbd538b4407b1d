"""A graph on disk: one .npz without pickle, the same bytes for the same graph."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from graphcontext.data.records import Graph
from graphcontext.files import write_atomic


def save_graph(path: Path, graph: Graph) -> None:
    """Write a graph as .npz without pickle; the same graph gives the same bytes."""
    stream = io.BytesIO()
    facts = json.dumps({"corpus_id": graph.corpus_id, "directed": graph.directed, "facts": graph.facts}, sort_keys=True)
    np.savez(
        stream,
        indptr=graph.indptr,
        indices=graph.indices,
        weights=graph.weights,
        facts=np.frombuffer(facts.encode(), dtype=np.uint8),
    )
    write_atomic(path, stream.getvalue())


def load_graph(path: Path) -> Graph:
    """Read what :func:`save_graph` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        facts = json.loads(bytes(arrays["facts"]))
        return Graph(
            facts["corpus_id"],
            arrays["indptr"],
            arrays["indices"],
            arrays["weights"],
            facts["directed"],
            facts["facts"],
        )
