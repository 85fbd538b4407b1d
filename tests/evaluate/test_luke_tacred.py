"""Facts as FactSumm finds them: which pairs are asked for, which relations are kept, how long sentences are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_sentences import SENTENCES

from graphcontext.component import components
from graphcontext.config import compose
from graphcontext.evaluate import luke_tacred
from graphcontext.evaluate.entity_tagger import Entity, EntityTagger
from graphcontext.evaluate.luke_tacred import LukeTacred, is_plausible, pieces
from graphcontext.evaluate.relation_classifier import RelationClassifier
from graphcontext.prepare import missing_models, needed_models


@pytest.fixture(autouse=True)
def _forget():
    yield
    luke_tacred.release()


class Capitals:
    """Every capitalised word is an entity: a PERSON if it is Ada or Linus, else an ORG."""

    signature = "capitals"

    def __init__(self, longest: int = 1000) -> None:
        self.longest, self.seen = longest, []

    def fits(self, sentence):
        return len(sentence) <= self.longest

    def entities(self, lines):
        self.seen += lines
        return [
            [
                Entity(at := line.index(word), at + len(word), "PERSON" if word in ("Ada", "Linus") else "ORG")
                for word in line.rstrip(".").split()
                if word[0].isupper()
            ]
            for line in lines
        ]


class Founded:
    """All pairs have one relation."""

    signature = "founded"

    def __init__(self, relation: str) -> None:
        self.relation, self.asked = relation, []

    def fits(self, sentence):
        return True

    def extract(self, pairs):
        self.asked += [(line[a.start : a.end], line[b.start : b.end]) for line, a, b in pairs]
        return [self.relation for _ in pairs]


def test_all_ordered_pairs_of_a_sentence_are_asked_for() -> None:
    classifier = Founded("org:founded_by")
    [facts] = LukeTacred(Capitals(), classifier).facts(["Ada met Linus at IBM. Canonical is one."])
    assert classifier.asked == [
        ("Ada", "Linus"),
        ("Ada", "IBM"),
        ("Linus", "Ada"),
        ("Linus", "IBM"),
        ("IBM", "Ada"),
        ("IBM", "Linus"),
    ]
    assert facts == (("IBM", "org:founded_by", "Ada"), ("IBM", "org:founded_by", "Linus"))  # a person founds nothing


@pytest.mark.parametrize(
    ("subject", "relation", "object_", "kept"),
    [
        ("PERSON", "per:title", "ORG", True),
        ("PERSON", "org:founded", "ORG", False),
        ("ORG", "per:title", "ORG", False),
        ("ORG", "org:founded", "ORG", True),
        ("ORG", "org:members", "ORG", False),
        ("ORG", "org:members", "PERSON", True),
        ("ORG", "no_relation", "PERSON", False),
        ("PERSON", "no_relation", "PERSON", False),
    ],
)
def test_a_relation_has_to_go_with_the_kinds_of_its_mentions(subject, relation, object_, kept) -> None:
    assert is_plausible(Entity(0, 1, subject), relation, Entity(2, 3, object_)) is kept


def test_two_mentions_of_one_name_are_no_fact() -> None:
    class Twice(Capitals):
        def entities(self, lines):
            return [[Entity(0, 3, "ORG"), Entity(8, 11, "ORG")] for _ in lines]

    assert LukeTacred(Twice(), Founded("org:parents")).facts(["IBM and IBM"]) == [()]


def test_a_text_is_read_once_for_all_metrics_and_rows() -> None:
    tagger = Capitals()
    first = LukeTacred(tagger, Founded("org:parents")).facts(["IBM bought Canonical."])
    assert LukeTacred(tagger, Founded("org:parents")).facts(["IBM bought Canonical."] * 2) == first * 2
    assert tagger.seen == ["IBM bought Canonical."]


def test_texts_without_sentences_or_entities_state_nothing() -> None:
    assert LukeTacred(Capitals(), Founded("org:parents")).facts(["", " \n", "nothing here", "IBM alone"]) == [()] * 4


def test_a_sentence_that_no_model_can_read_whole_is_halved() -> None:
    tagger = Capitals(longest=24)
    [facts] = LukeTacred(tagger, Founded("org:parents")).facts(["IBM bought Canonical and Ubuntu bought Debian"])
    assert tagger.seen == ["IBM bought Canonical", "and Ubuntu bought Debian"]
    assert ("IBM", "org:parents", "Canonical") in facts and ("IBM", "org:parents", "Debian") not in facts


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 9))
def test_pieces_fit_and_hold_every_letter(text, longest) -> None:
    found = pieces(text.strip(), lambda piece: len(piece) <= longest)
    assert all(len(piece) <= longest for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_the_two_models_together(tiny_tagger: str, tiny_luke: str) -> None:
    extractor = LukeTacred(EntityTagger(tiny_tagger, None, 2, "cpu"), RelationClassifier(tiny_luke, None, 5, "cpu"))
    texts = [" ".join(SENTENCES[:3]), "", SENTENCES[3], "Ada King " * 40]
    together = extractor.facts(texts)
    luke_tacred.release()
    assert together == [extractor.facts([text])[0] for text in texts]
    assert together[0] and together[1] == ()
    assert extractor.signature.startswith("LukeTacred tiny_tagger") and " tiny_luke" in extractor.signature


def test_both_models_are_needed_only_where_a_metric_takes_them() -> None:
    wanted = {"tner/deberta-v3-large-ontonotes5", "studio-ousia/luke-large-finetuned-tacred"}
    for metric, needed in (("factsumm", wanted), ("triple_overlap", wanted), ("rouge1", set())):
        config = compose(["scale=paper", f"metric=[{metric}]"]).config
        assert {model for model, _ in needed_models(config)} & wanted == needed
        assert set(missing_models(config)) & wanted == needed
    config = compose(["scale=sample", "metric=[factsumm]"]).config
    assert not {model for model, _ in needed_models(config)} & wanted  # spaCy stands in
    assert compose(["scale=sample"]).substitutions["fact_extractor"] == ("luke_tacred", "spacy")
    assert "LukeTacred" not in str([c["_target_"] for c in components(config["metric"])])
