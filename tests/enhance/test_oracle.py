"""The upper bound: triples of the gold answer."""

from __future__ import annotations

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.oracle import Oracle
from graphcontext.enhance.triples import Extraction

CORPUS = Corpus("c", (Passage("p0", "", "", "text 0"),))


class Extractor:
    name = "stub"
    repeatable = False

    def extract(self, passages):
        found = [Extraction(((p.context_text, "is", "gold"),)) for p in passages]
        bad = Extraction(status="failed", reason="HTTP 500")
        return [bad if p.context_text == "bad" else f for p, f in zip(passages, found)]


def enhance(*references: tuple[str, ...], **options):
    questions = [Question(f"q{i}", "?", "c", gold) for i, gold in enumerate(references)]
    rankings = [Ranking(q.id, (Scored("p0", 1.0),)) for q in questions]
    return Oracle(Extractor(), **options).enhance(questions, rankings, {"c": CORPUS})


def test_the_sentences_of_all_gold_answers_follow_the_passages() -> None:
    one, other = enhance(("a", "b", "a"), ("c",))
    assert [(u.text, u.source) for u in one.units] == [
        ("text 0", "p0"),
        ("a is gold.", "oracle"),
        ("b is gold.", "oracle"),
    ]
    assert [u.text for u in other.units] == ["text 0", "c is gold."]
    assert [u.text for u in enhance(("a",), show_passages=False)[0].units] == ["a is gold."]


def test_a_question_without_reference_keeps_its_context_and_is_counted() -> None:
    (context,) = enhance(())
    assert ([u.text for u in context.units], context.status, context.reason) == (["text 0"], "ok", "no reference")


def test_a_failed_extraction_is_counted_and_tried_again() -> None:
    (context,) = enhance(("a", "bad"))
    assert (len(context.units), context.retry) == (2, True)
    assert context.reason == "extraction failed for 1 of 2 passages: HTTP 500"
