"""The entity graph of KGP."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Passage, Source
from graphcontext.errors import InputError
from graphcontext.graph.entity_links import EntityLinks
from graphcontext.graph.linker_titles import TitlesLinker
from tests.graph.passages import check_simple, corpus, double_loop, edges, pairs


class Marks:
    """A linker that reads its links off the text: "tower/.9 lake/.5"."""

    name = "marks"

    def begin(self, corpora):
        self.begun = sorted(corpora)

    def link(self, passages):
        words = [p.match_text.split() for p in passages]
        return [[(name, float(prior)) for name, _, prior in (w.partition("/") for w in line)] for line in words]


marked = st.lists(
    st.tuples(
        st.sampled_from(["", "Lake", "lake", "東京"]),
        st.lists(st.sampled_from(["lake/.9", "lake/.8", "tower/1", "tower/.2", "東京/.81"]), max_size=3).map(" ".join),
    ),
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(marked, st.sampled_from([0.0, 0.2, 0.8, 0.9, 1.0]), st.booleans())
def test_edges_equal_the_double_loop(passages, threshold, title_clique):
    built = EntityLinks(Marks(), threshold, title_clique).build(corpus(*passages))
    check_simple(built, len(passages))
    keys = []
    for title, text in passages:
        linked = {w.partition("/")[0] for w in text.split() if float(w.partition("/")[2]) > threshold}
        named = {title.lower()} if title and title_clique else set()
        keys.append(linked | named if text.strip() else set())
    assert edges(built) == double_loop(keys)


def test_golden_three_passages_by_hand():
    # 0 and 1 are of one document; 2 names it (prior .9 > .8). A prior of just .8 is not above it: no 1–2 by "tower".
    three = corpus(("Lake", "x/1"), ("Lake", "tower/.8"), ("Other", "lake/.9 tower/1"))
    built = EntityLinks(Marks()).build(three)
    assert edges(built) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert (built.facts["linker"], built.facts["threshold"], built.facts["density"]) == ("marks", 0.8, 1.0)
    assert (built.facts["n_linked"], built.facts["n_entities"]) == (2, 4)  # x, lake, other, tower
    assert edges(EntityLinks(Marks(), title_clique=False).build(three)) == []
    assert edges(EntityLinks(Marks(), 0.7, title_clique=False).build(three)) == [(1, 2), (2, 1)]
    json.dumps(built.facts)


def test_passages_of_one_file_are_joined_whatever_their_headings():
    pages = [
        Passage("a", "Intro", "x/1", "", Source(document="one.pdf")),
        Passage("b", "Results", "y/1", "", Source(document="one.pdf")),
        Passage("c", "Results", "z/1", "", Source(document="two.pdf")),
        Passage("d", "", "", "", Source(document="one.pdf"), kind="page"),
    ]
    built = EntityLinks(Marks()).build(Corpus.of(pages))
    assert edges(built) == [(0, 1), (1, 0), (1, 2), (2, 1)]  # b and c: one title; a page has no text to name anything
    assert built.facts["isolated"] == 1


def test_the_linker_reads_all_corpora_first():
    builder = EntityLinks(Marks())
    two = {c.id: c for c in (corpus(("A", "x/1")), corpus(("B", "x/1")))}
    builder.begin(two)
    assert builder.linker.begun == sorted(two)


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_titles_of_any_corpus_give_a_simple_graph(passages):
    check_simple(EntityLinks(TitlesLinker()).build(corpus(*passages)), len(passages))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, True, "0.8", float("nan")])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(InputError, match=r"graph\.threshold="):
        EntityLinks(Marks(), threshold)
