"""The structure graph joins each page to the texts and tables on it."""

from __future__ import annotations

import numpy as np

from graphcontext.data.outline import Outline
from graphcontext.data.records import Corpus, Passage, Source
from graphcontext.graph.structure import Structure


def node(n: int, kind=None, page: int | None = 1, document: str | None = "a.pdf", text: str = "") -> Passage:
    return Passage(f"p{n}", "A", text, text or f"text {n}", Source(document=document, page=page), kind=kind)


CORPUS = Corpus(
    "c",
    (
        node(0, "page", 1),
        node(1),
        node(2, "table", text="Table 7: x (rows 1 to 2 of 3)\n| a |"),
        node(3, "table", text="Table 7: x (rows 3 to 3 of 3)\n| a |"),
        node(4, "page", 2),
        node(5, page=2),
        node(6, document="b.md", page=None),
        node(7, document=None, page=None),
    ),
)


def edges(graph) -> list[tuple[int, int]]:
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return list(zip(rows.tolist(), graph.indices.tolist(), strict=True))


def test_a_page_leads_to_what_stands_on_it():
    graph = Structure().build(CORPUS)
    assert edges(graph) == [(0, 1), (0, 2), (0, 3), (4, 5)] and graph.directed
    assert graph.weights.dtype == np.float32 and set(graph.weights.tolist()) == {1.0}
    # 8 nodes, 4 of the 56 possible edges; p6 and p7 touch none
    facts = {"documents": 2, "pages": 2, "tables": 1, "adjacent": False, "n_edges": 4, "density": 4 / 56, "isolated": 2}
    assert {name: graph.facts[name] for name in facts} == facts


def test_texts_of_a_document_may_follow_each_other():
    assert edges(Structure(adjacent=True).build(CORPUS)) == [(0, 1), (0, 2), (0, 3), (1, 5), (4, 5)]


def test_a_corpus_without_pages_or_passages_has_no_edge():
    for passages in ((), (node(0, document=None), node(1, document=None))):
        graph = Structure(adjacent=True).build(Corpus("c", passages))
        assert edges(graph) == [] and graph.n_nodes == len(passages)


def test_an_outline_finds_nodes_by_page_number_of_table_and_words():
    outline = Outline(CORPUS)
    assert outline.find("a.pdf", "page", "2") == ("p4",)
    assert outline.find("a.pdf", "table", "7") == ("p2", "p3")  # the pieces of one table
    assert outline.find("a.pdf", "table", "1") == ()  # the first table is number 7
    assert (
        outline.find("a.pdf", "page", "3") == outline.find("b.md", "page", "1") == outline.find("x", "page", "1") == ()
    )
    assert Outline(Corpus("c", (node(0, text="Some words"),))).find("a.pdf", "text", "some  WORDS") == ("p0",)


def test_a_table_without_caption_has_the_number_of_its_place():
    outline = Outline(Corpus("c", (node(0, "table", text="| a |"), node(1, "table", text="Table 9. b\n| a |"))))
    section = outline.sections["a.pdf"]
    assert [[t.pieces for t in section.numbered(label)] for label in ("1", "2", "9", "0")] == [[[0]], [], [[1]], []]
