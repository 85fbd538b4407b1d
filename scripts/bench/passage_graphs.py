"""The passage graphs of KGP over one corpus of a question: a double loop over passages (the paper's way) beside ours.

python scripts/bench/passage_graphs.py --passages 700

The passages are sentences of HotpotQA where $GRAPHCONTEXT_DATA has it, else docstrings of the installed packages, dealt
to documents of six. Both ways begin from the same texts, entities (runs of capitalised words, in place of a linker's)
and embeddings (random unit vectors: products cost the same whatever they say), so that a ratio is of building the graph
alone. The double loop compares the keys of every two passages, or takes the product of their vectors; KGP's code
multiplies the vectors at once and sorts each row, which is the last way of knn_st.
"""

import argparse
import itertools
import json
import os
import re
import tracemalloc
from pathlib import Path

import clock
import networkx
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from texts import docstrings

from graphcontext.data.records import Corpus, Graph, Passage
from graphcontext.enhance.surface_form import MARKS
from graphcontext.graph.cosine import unit_rows
from graphcontext.graph.entity_links import EntityLinks
from graphcontext.graph.keywords import TfidfKeywords
from graphcontext.graph.knn import KNNGraph
from graphcontext.graph.noun_text import stop_words

HOTPOTQA = "hotpotqa/hotpot_dev_distractor_200.json"
DIM = 384
NAME = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)*")


def sentences(n: int) -> tuple[str, list[tuple[str, str]]]:
    """Return where the passages are from, and n of (title, text)."""
    path = Path(os.environ.get("GRAPHCONTEXT_DATA", "")) / HOTPOTQA
    if path.is_file():
        documents = {title: texts for row in json.loads(path.read_text()) for title, texts in row["context"]}
        found = [(title, text.strip()) for title, texts in documents.items() for text in texts if text.strip()]
        return "HotpotQA", found[:n]
    texts = [" ".join(text.split()[:25]) for text in itertools.islice(docstrings(), n)]
    return "docstrings", [(f"Document {i // 6}", text) for i, text in enumerate(texts)]


class Given:
    """An encoder whose vectors are at hand: what is measured is the graph."""

    def __init__(self, texts: list[str]) -> None:
        self.row = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.vectors = unit_rows(np.random.default_rng(0).normal(size=(len(self.row), DIM)).astype(np.float32))

    def encode(self, texts: list[str], kind: str = "passage") -> np.ndarray:
        return self.vectors[[self.row[text] for text in texts]]


def double_loop(keys: list[set[str]]) -> networkx.Graph:
    """Compare every passage with every other, an edge for each shared key, as KGP's code does."""
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(len(keys)))
    for i in range(len(keys)):
        for j in range(i + 1, len(keys)):
            for key in keys[i] & keys[j]:
                graph.add_edge(i, j, label=key)
    return graph


def keywords_loop(passages: tuple[Passage, ...], n_kw: int) -> networkx.Graph:
    plain = [word for word in stop_words() if word.isalpha()]
    vectoriser = TfidfVectorizer(stop_words=plain, ngram_range=(1, 4))
    weights = vectoriser.fit_transform([p.match_text for p in passages])
    names = vectoriser.get_feature_names_out()
    rows = [{names[t]: w for t, w in zip(row.indices, row.data, strict=True)} for row in weights]
    chosen = set()
    for row in rows:
        ranked = sorted(row, key=lambda name: (-round(row[name], 12), name))
        chosen |= set(ranked[:n_kw])
    return double_loop([(row.keys() & chosen) | {f"title:{p.title.lower()}"} for row, p in zip(rows, passages)])


def knn_loop(vectors: np.ndarray, k: int) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    for i in range(len(vectors)):
        products = [(-float(vectors[i] @ vectors[j]), j) for j in range(len(vectors)) if j != i]
        graph.add_edges_from((i, j) for _, j in sorted(products)[:k])
    return graph


def knn_matrix(vectors: np.ndarray, k: int) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    similarities = cosine_similarity(vectors)
    np.fill_diagonal(similarities, -np.inf)
    for i, order in enumerate(np.argsort(-similarities, kind="stable")):
        graph.add_edges_from((i, j) for j in order[:k].tolist())
    return graph


def entities_loop(passages: tuple[Passage, ...], links: list[list[tuple[str, float]]]) -> networkx.Graph:
    named = [{entity for entity, prior in found if prior > 0.8} for found in links]
    return double_loop([names | {p.title.lower().strip(MARKS)} for names, p in zip(named, passages)])


def slots(graph: Graph) -> set[tuple[int, int]]:
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return set(zip(rows.tolist(), graph.indices.tolist(), strict=True))


def same(ours: Graph, paper: networkx.Graph) -> bool:
    both = {(i, j) for i, j, *_ in paper.edges}
    return slots(ours) == (both if ours.directed else both | {(j, i) for i, j in both})


def measured(function) -> tuple[float, float, object]:
    """Return CPU seconds, the peak of memory in MB and the result."""
    seconds, result = clock.cpu(function)
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return seconds, peak, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=700)
    options = parser.parse_args()
    source, found = sentences(options.passages)
    corpus = Corpus.of([Passage(f"p{i}", title, text, text) for i, (title, text) in enumerate(found)])
    passages, encoder = corpus.passages, Given([text for _, text in found])
    links = [[(name.lower(), 1.0) for name in NAME.findall(text)] for _, text in found]
    vectors = encoder.encode([text for _, text in found])
    ways = {
        "tfidf_keywords": [
            ("double loop", lambda: keywords_loop(passages, 50)),
            ("ours", lambda: TfidfKeywords(None, "raw").build(corpus)),
        ],
        "knn_st": [
            ("double loop", lambda: knn_loop(vectors, 10)),
            ("ours", lambda: KNNGraph(encoder, None, text="raw").build(corpus)),
            ("one product, argsort", lambda: knn_matrix(vectors, 10)),
        ],
        "entity_links": [
            ("double loop", lambda: entities_loop(passages, links)),
            ("ours", lambda: EntityLinks(Linked(links)).build(corpus)),
        ],
    }
    rows = []
    for name, each in ways.items():
        first = paper = None
        for way, function in each:
            seconds, peak, result = measured(function)
            first, paper = first or seconds, paper if paper is not None else result
            check = ""
            if isinstance(result, Graph):
                check = f"density {result.facts['density']:.4f}, equal: {same(result, paper)}"
            rows.append((name, way, f"{seconds * 1000:.1f}", f"{first / seconds:.0f}", f"{peak:.1f}", check))
    print(f"Passage graphs of {len(passages)} passages ({source})\n")
    clock.table("graph | way | ms | ratio | peak MB | check", rows)


class Linked:
    """A linker whose links are at hand."""

    name = "titles"

    def __init__(self, links: list[list[tuple[str, float]]]) -> None:
        self.links = links

    def link(self, passages: list[Passage]) -> list[list[tuple[str, float]]]:
        return self.links


if __name__ == "__main__":
    main()
