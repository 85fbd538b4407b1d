"""Triple overlap on given facts: the formula, the normal form, several references, empty sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Prediction, Question
from graphcontext.enhance.triples import Triple
from graphcontext.evaluate.triple_overlap import TripleOverlap, triple_jaccard


class Lines:
    """A fact a line: subject | relation | object."""

    signature = "Lines lines_en@c0ffee"

    def facts(self, texts) -> list[tuple[Triple, ...]]:
        return [tuple(tuple(line.split("|")) for line in text.splitlines()) for text in texts]


def score(prediction: str, *references: str, status: str = "ok") -> float:
    question = Question("q", "which?", "corpus", references)
    answer = Prediction("q", "which?", prediction, references, status=status)
    [scores] = TripleOverlap(Lines()).score([question], [answer], [], [])
    return scores["triple_overlap"]


def test_shared_over_all_triples():
    # {abc, abd} against {abc, xyz, abe}: 1 shared of 4; unlike FactSumm's score, a (subject, relation) is not enough
    assert score("a|b|c\na|b|d", "a|b|c\nx|y|z\na|b|e") == 0.25


def test_the_parts_are_normalised_as_entity_names_are():
    assert score("The  Server|Runs on|Ubuntu.", "the server|runs on|ＵBUNTU") == 1.0
    assert score("a|in|C++", "a|in|C#") == 0.0


def test_the_best_reference_counts():
    assert score("a|b|c", "x|y|z", "a|b|c\na|b|d") == 0.5


@pytest.mark.parametrize("texts", [("", ""), ("a|b|c", ""), ("", "a|b|c"), ("a|b|c",)])
def test_t15_a_side_without_triples_scores_zero(texts):
    assert score(*texts) == 0.0


def test_a_failed_prediction_scores_zero():
    assert score("a|b|c", "a|b|c", status="failed") == 0.0


def test_the_signature_is_the_extractors_own():
    assert TripleOverlap(Lines()).signature == "triple_overlap|Lines lines_en@c0ffee"
    assert TripleOverlap(object()).signature == "triple_overlap|object"


TRIPLES = st.lists(st.tuples(st.text(), st.text(), st.text()))


@given(TRIPLES, TRIPLES)
def test_symmetric_and_at_most_one(a, b):
    assert triple_jaccard(a, b) == triple_jaccard(b, a)
    assert 0.0 <= triple_jaccard(a, b) <= 1.0
