"""Named entities by a token classifier: transformers' own grouping, whatever the batches."""

from __future__ import annotations

import pytest
from tiny_sentences import SENTENCES

from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.evaluate import entity_tagger
from graphcontext.evaluate.entity_tagger import Entity, EntityTagger, group


@pytest.fixture(autouse=True)
def _forget():
    yield
    entity_tagger.release()


def test_equals_transformers_pipeline_but_for_blanks_around(tiny_tagger: str) -> None:
    from transformers import pipeline

    reference = pipeline(
        "token-classification", tiny_tagger, tokenizer=tiny_tagger, aggregation_strategy="simple", ignore_labels=["O"]
    )
    found = EntityTagger(tiny_tagger, None, 3, "cpu").entities(SENTENCES)
    for sentence, ours in zip(SENTENCES, found, strict=True):
        theirs = [(sentence[e["start"] : e["end"]].strip(), e["entity_group"]) for e in reference(sentence)]
        assert [(sentence[e.start : e.end], e.kind) for e in ours] == [t for t in theirs if t[0]]
    assert len({e.kind for ours in found for e in ours}) == 2  # the random model says more than one thing


def test_batches_change_nothing(tiny_tagger: str) -> None:
    one_by_one = EntityTagger(tiny_tagger, None, 1, "cpu").entities(SENTENCES)
    assert EntityTagger(tiny_tagger, None, 16, "cpu").entities(SENTENCES[::-1]) == one_by_one[::-1]


def test_a_begin_ends_an_entity_and_kinds_do_not_mix() -> None:
    tokens = [(0, 1, "B-ORG"), (1, 2, "B-ORG"), (2, 4, "I-ORG"), (4, 6, "I-PERSON"), (6, 7, "O"), (7, 8, "I-PERSON")]
    # "a" | "b c" | "d" | (O) | "f"
    assert group(tokens, "ab c d f") == [
        Entity(0, 1, "ORG"),
        Entity(1, 4, "ORG"),
        Entity(5, 6, "PERSON"),
        Entity(7, 8, "PERSON"),
    ]
    assert group([(0, 1, "B-ORG")], " ") == []  # nothing but a blank


def test_what_does_not_fit_is_said(tiny_tagger: str) -> None:
    tagger = EntityTagger(tiny_tagger, None, 16, "cpu")
    assert tagger.fits(SENTENCES[0]) and not tagger.fits("Ada King " * 40)


def test_wrong_arguments_and_missing_weights_are_named() -> None:
    with pytest.raises(InputError, match="batch_size=0"):
        EntityTagger("x", None, 0)
    with pytest.raises(MissingWeightsError, match="tner/nothing"):
        EntityTagger("tner/nothing").entities(["x"])
