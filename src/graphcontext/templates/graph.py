import re

import numpy as np
from graphcontext.data.records import Graph
from graphcontext.graph.health import health


class Example:
    """Joins every two passages whose titles share a word of at least `min_letters` letters."""

    def __init__(self, min_letters: int = 5):
        self.min_letters = min_letters

    def build(self, corpus):
        words = [set(re.findall(rf"\w{{{self.min_letters},}}", p.title.lower())) for p in corpus.passages]
        neighbours = [[j for j, other in enumerate(words) if j != i and mine & other] for i, mine in enumerate(words)]
        indptr = np.cumsum([0, *map(len, neighbours)], dtype=np.int64)
        indices = np.array([j for row in neighbours for j in row], dtype=np.int32)
        weights = np.ones(len(indices), dtype=np.float32)
        # "threshold": the cosine above which retriever=ppr joins a question to passages
        return Graph(corpus.id, indptr, indices, weights, facts={"threshold": 0.3, **health(indptr, indices)})
