"""The context enhancer: C followed by S."""

from __future__ import annotations

import pytest

from graphcontext.component import fingerprint
from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.triples import Extraction, Triples, sentence
from graphcontext.errors import InputError

CORPUS = Corpus("c", tuple(Passage(f"p{i}", "", "", f"text {i}") for i in range(4)))
SS = ("ss", "lists", "sockets")
LSOF = ("lsof", "lists", "files")


class Extractor:
    name = "stub"
    repeatable = True

    def __init__(self, found: dict[str, Extraction]):
        self.found, self.asked = found, []

    def extract(self, passages):
        self.asked += [p.id for p in passages]
        return [self.found.get(p.id, Extraction(status="empty")) for p in passages]


def enhance(extractor, *ranked: str, show_passages: bool = True):
    questions = [Question(f"q{i}", "?", "c") for i in range(len(ranked))]
    scored = [tuple(Scored(p, 1.0) for p in ids.split()) for ids in ranked]
    rankings = [Ranking(q.id, passages) for q, passages in zip(questions, scored)]
    return Triples(extractor, show_passages).enhance(questions, rankings, {"c": CORPUS})


def test_passages_first_then_one_sentence_per_distinct_triple():
    extractor = Extractor({"p0": Extraction((SS, LSOF)), "p1": Extraction((SS,))})
    (context,) = enhance(extractor, "p1 p0")
    assert [(u.text, u.source) for u in context.units] == [
        ("text 1", "p1"),
        ("text 0", "p0"),
        ("ss lists sockets.", "stub"),
        ("lsof lists files.", "stub"),
    ]
    assert (context.status, context.reason) == ("ok", None)


def test_each_passage_may_have_its_own_sentences_behind_it():
    extractor = Extractor({"p0": Extraction((SS, LSOF)), "p1": Extraction((SS,))})
    questions, rankings = (
        [Question("q", "?", "c")],
        [Ranking("q", (Scored("p1", 1.0), Scored("p2", 0.9), Scored("p0", 0.8)))],
    )
    (context,) = Triples(extractor, place="passage").enhance(questions, rankings, {"c": CORPUS})
    assert [u.text for u in context.units] == ["text 1", "ss lists sockets.", "text 2", "text 0", "lsof lists files."]
    plain, placed = ({"_target_": "graphcontext.enhance.triples.Triples", **more} for more in ({}, {"place": "end"}))
    assert fingerprint(plain) == fingerprint(placed)  # results from before the argument are found
    with pytest.raises(InputError, match=r"^enhancer.place=passages; did you mean passage\?"):
        Triples(extractor, place="passages")


def test_only_context_gen_shows_the_sentences_alone():
    (context,) = enhance(Extractor({"p0": Extraction((SS,))}), "p0", show_passages=False)
    assert [u.text for u in context.units] == ["ss lists sockets."]


def test_a_passage_that_questions_share_is_extracted_once():
    extractor = Extractor({})
    enhance(extractor, "p0 p1", "p1 p2")
    assert extractor.asked == ["p0", "p1", "p2"]


def test_t15_a_context_without_triples_passes_through_and_says_so():
    (context,) = enhance(Extractor({}), "p0")
    assert [u.text for u in context.units] == ["text 0"]
    assert (context.status, context.reason) == ("ok", "no triples")


def test_t14_a_fault_that_may_pass_is_tried_again_by_the_next_run():
    extractor = Extractor({"p0": Extraction(status="failed", reason="HTTP 500")})
    assert enhance(extractor, "p0")[0].retry is None  # greedy and local: it would fail again
    extractor.repeatable = False
    (context,) = enhance(extractor, "p0")
    assert (context.status, context.retry) == ("ok", True)


def test_failures_are_counted_in_the_reason_and_the_context_goes_on():
    failed = Extraction(status="failed", reason='parse: no triple in "Sure"')
    (context,) = enhance(Extractor({"p0": Extraction((SS,)), "p1": failed}), "p0 p1")
    assert [u.text for u in context.units] == ["text 0", "text 1", "ss lists sockets."]
    assert (context.status, context.reason) == ("ok", "extraction failed for 1 of 2 passages: parse")


def test_nothing_retrieved_is_nothing_to_extract_from():
    (context,) = enhance(Extractor({}), "")
    assert (context.units, context.reason) == ((), None)


def test_a_sentence_ends_in_one_full_stop():
    assert sentence(("a ", "is", " b.")) == "a is b."
