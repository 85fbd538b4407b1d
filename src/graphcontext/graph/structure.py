"""The structure of documents as a graph: pages, and the texts and tables on them (KGP §2)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from graphcontext.data.outline import Outline
from graphcontext.data.records import Corpus, Graph
from graphcontext.graph.health import health


class Structure:
    r"""Joins each page to the texts and tables on it, directed (KGP §2, document structures).

    .. math:: E = \{(p, v) : v \text{ stands on page } p\}

    Args:
        adjacent: also join each text to the next one of its document, so that a traversal can read on; ours.

    Differs from the paper: a table that was cut into pieces has an edge to each.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, adjacent: bool = False):
        self.adjacent = adjacent

    def build(self, corpus: Corpus) -> Graph:
        """Return the graph over the corpus' passages; one without pages has no edge but those of ``adjacent``."""
        from scipy.sparse import csr_array

        outline, n = Outline(corpus), len(corpus.passages)
        pairs = np.array(sorted(set(outline.edges(self.adjacent))), dtype=np.int64).reshape(-1, 2)
        weights = np.ones(len(pairs), dtype=np.float32)
        matrix = csr_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        matrix.sort_indices()
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        facts = {
            "documents": len(outline.sections),
            "pages": sum(len(section.pages) for section in outline.sections.values()),
            "tables": sum(len(section.tables) for section in outline.sections.values()),
            "adjacent": self.adjacent,
            **health(indptr, indices, directed=True),
        }
        return Graph(corpus.id, indptr, indices, matrix.data, directed=True, facts=facts)
