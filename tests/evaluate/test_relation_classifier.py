"""Relations by LUKE: the model's likeliest class of each pair, whatever the batches."""

from __future__ import annotations

import pytest
from tiny_sentences import SENTENCES

from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.evaluate import relation_classifier
from graphcontext.evaluate.entity_tagger import Entity
from graphcontext.evaluate.relation_classifier import RelationClassifier

ADA, IBM, LONDON = Entity(0, 8, "PERSON"), Entity(16, 19, "ORG"), Entity(23, 29, "GPE")
GIT = (SENTENCES[2], Entity(0, 14, "PERSON"), Entity(21, 24, "PRODUCT"))
PAIRS = [(SENTENCES[0], a, b) for a in (ADA, IBM, LONDON) for b in (ADA, IBM, LONDON) if a != b] + [GIT]


@pytest.fixture(autouse=True)
def _forget():
    yield
    relation_classifier.release()


def test_equals_luke_asked_one_by_one(tiny_luke: str) -> None:
    from transformers import LukeForEntityPairClassification, LukeTokenizer

    tokenizer = LukeTokenizer.from_pretrained(tiny_luke)
    model = LukeForEntityPairClassification.from_pretrained(tiny_luke).eval()
    expected = []
    for sentence, a, b in PAIRS:
        inputs = tokenizer(sentence, entity_spans=[(a.start, a.end), (b.start, b.end)], return_tensors="pt")
        expected.append(model.config.id2label[int(model(**inputs).logits[0].argmax())])
    assert RelationClassifier(tiny_luke, None, 3, "cpu").extract(PAIRS) == expected
    assert RelationClassifier(tiny_luke, None, 1, "cpu").extract(PAIRS[::-1]) == expected[::-1]
    assert len(set(expected)) > 1  # the random model says more than one thing


def test_what_does_not_fit_is_said(tiny_luke: str) -> None:
    classifier = RelationClassifier(tiny_luke, None, 16, "cpu")
    assert classifier.fits(SENTENCES[2]) and not classifier.fits("Ada King " * 40)


def test_wrong_arguments_and_missing_weights_are_named() -> None:
    with pytest.raises(InputError, match="batch_size=0"):
        RelationClassifier("x", None, 0)
    with pytest.raises(MissingWeightsError, match="luke/nothing"):
        RelationClassifier("luke/nothing").extract(PAIRS)
