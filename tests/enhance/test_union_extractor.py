"""Triples of several extractors, joined."""

from __future__ import annotations

import pytest

from graphcontext.component import components, fingerprint
from graphcontext.config import compose
from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.triples import Extraction, Triples
from graphcontext.enhance.union_extractor import Union, join
from graphcontext.errors import InputError

SS, LSOF, IP = ("ss", "lists", "sockets"), ("lsof", "lists", "files"), ("ip", "shows", "routes")


class Part:
    def __init__(self, *found: Extraction, repeatable: bool = True):
        self.found, self.repeatable = list(found), repeatable

    def extract(self, passages):
        return self.found[: len(passages)]


def test_triples_stand_in_the_order_of_the_parts_each_once():
    union = Union({"llm": Part(Extraction((SS, LSOF))), "rebel": Part(Extraction((IP, SS)))})
    (found,) = union.extract([Passage("p", "", "", "x")])
    assert found == Extraction((SS, LSOF, IP))
    assert union.name == "llm ∪ rebel"


def test_passages_by_index():
    nothing = Extraction(status="empty")
    union = Union({"a": Part(Extraction((SS,)), nothing), "b": Part(nothing, Extraction((IP,)))})
    assert [e.triples for e in union.extract([Passage("p", "", "", "x"), Passage("q", "", "", "y")])] == [(SS,), (IP,)]


def test_a_part_that_failed_is_named_and_the_others_count():
    llm = Extraction(status="failed", reason="parse: x")
    found = join({"llm": llm, "rebel": Extraction((IP,), reason="2 malformed")})
    assert (found.triples, found.status) == ((IP,), "ok")
    assert (found.reason, found.lost) == ("llm: parse: x; rebel: 2 malformed", "llm parse")
    nothing = join({"llm": llm, "rebel": Extraction(status="empty")})
    assert (nothing.status, nothing.reason, nothing.lost) == ("empty", "llm: parse: x", "llm parse")


def test_t14_it_failed_where_all_parts_failed():
    found = join({"llm": Extraction(status="failed", reason="parse: x"), "rebel": Extraction(status="failed")})
    assert (found.status, found.reason) == ("failed", "llm parse, rebel unknown: parse: x")


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_context_counts_what_a_part_lost_and_is_made_again_where_that_may_help(repeatable):
    lost = Extraction(status="failed", reason="HTTP 503")
    llm, rebel = Part(lost, Extraction((SS,)), repeatable=repeatable), Part(Extraction((IP,)), Extraction((IP,)))
    union = Union({"llm": llm, "rebel": rebel})
    corpus = Corpus("c", (Passage("p", "", "", "x"), Passage("q", "", "", "y")))
    ranking = Ranking("1", (Scored("p", 1.0), Scored("q", 0.5)))
    (context,) = Triples(union).enhance([Question("1", "?", "c")], [ranking], {"c": corpus})
    assert [unit.text for unit in context.units[2:]] == ["ip shows routes.", "ss lists sockets."]
    assert {unit.source for unit in context.units[2:]} == {"llm ∪ rebel"}
    assert context.reason == "extraction failed in part for 1 of 2 passages: llm HTTP 503"
    assert context.retry is (None if repeatable else True)


def test_it_is_repeatable_where_all_parts_are():
    assert Union({"a": Part(), "b": Part()}).repeatable
    assert not Union({"a": Part(), "b": Part(repeatable=False)}).repeatable


def test_no_parts_are_refused():
    for parts in ({}, None, ["llm"]):
        with pytest.raises(InputError, match=r"extractor\.parts="):
            Union(parts)


def test_the_default_is_the_papers_and_a_scale_replaces_it_whole():
    paper = compose(["scale=paper"])
    targets = [node["_target_"].rpartition(".")[2] for node in components(paper.config["extractor"])]
    assert targets == ["Union", "LLMExtractor", "Prompt", "HuggingFaceLLM", "RebelExtractor"]
    assert compose(["scale=sample"]).substitutions["extractor"] == ("llm_rebel", "spacy")


def test_a_typed_union_keeps_its_parts_at_every_scale():
    typed = compose(["extractor=llm_rebel", "scale=sample", "extractor.parts.rebel.beams=1"]).config["extractor"]
    assert typed["parts"]["llm"]["llm"]["model"] == "smollm2"
    assert typed["parts"]["rebel"]["model"] == "Babelscape/rebel-large"
    assert typed["parts"]["rebel"]["beams"] == 1


def test_the_order_of_the_parts_is_in_the_key():
    node = compose(["scale=paper"]).config["extractor"]
    turned = node | {"parts": dict(reversed(node["parts"].items()))}
    assert fingerprint(node) != fingerprint(turned)
