"""Small corpora and stand-ins for what the passage graphs take, and the double loop that they equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Graph, Passage

TEXTS = [
    "",
    " ",
    "Zürich lies on a lake",
    "the lake",
    "a lake and a lake of Zürich",
    "東京 tower",
    "of the",
    "Big river, big city",
]
TITLES = ["", "Zürich", "zürich ", "Lake (film)", "東京", "The Big River"]
pairs = st.lists(st.tuples(st.sampled_from(TITLES), st.sampled_from(TEXTS)), max_size=9)


def corpus(*passages: tuple[str, str]) -> Corpus:
    """Return a corpus of (title, text)."""
    return Corpus.of([Passage(f"p{n}", title, text, text) for n, (title, text) in enumerate(passages)])


def edges(graph: Graph) -> list[tuple[int, int]]:
    """Return all (from, to) slots, in order."""
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return list(zip(rows.tolist(), graph.indices.tolist(), strict=True))


def double_loop(keys: Sequence[set]) -> list[tuple[int, int]]:
    """Return both slots of an edge where two sets of keys meet."""
    n = range(len(keys))
    return [(i, j) for i in n for j in n if i != j and keys[i] & keys[j]]


def check_simple(graph: Graph, n: int) -> None:
    """No self-loop, no edge twice, columns ascending, weights 1, symmetric where undirected, its own health."""
    found = edges(graph)
    assert graph.n_nodes == n == graph.facts["n_nodes"]
    assert found == sorted(set(found))
    assert all(i != j for i, j in found)
    assert (graph.indptr.dtype, graph.indices.dtype, graph.weights.dtype) == (np.int64, np.int32, np.float32)
    assert graph.weights.tolist() == [1.0] * len(found)
    if not graph.directed:
        assert {(j, i) for i, j in found} == set(found)
    if n > 1:
        assert graph.facts["density"] == len(found) / (n * (n - 1))


class Nouns:
    """Takes the capitalised and the long words of a text for its nouns, and remembers what it was asked."""

    def __init__(self, read: Callable[[str], str] = lambda t: " ".join(w.lower() for w in t.split() if len(w) > 3)):
        self.read, self.begun = read, []

    def begin(self, corpora: dict[str, Corpus]) -> None:
        self.begun.append(sorted(corpora))

    def nouns(self, texts: Sequence[str]) -> list[str]:
        return [self.read(text) for text in texts]

    def of(self, passage: Passage) -> str:
        return self.read(passage.match_text)
