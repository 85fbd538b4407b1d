"""FactSumm on given facts: the formula by hand, several references, empty sides, what names the extractor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Prediction, Question
from graphcontext.enhance.triples import Triple
from graphcontext.evaluate.factsumm import FactSumm, comparable, fact_scores


class Lines:
    """A fact a line: subject relation object."""

    signature = "Lines lines_en@c0ffee"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def facts(self, texts) -> list[tuple[Triple, ...]]:
        self.seen += texts
        return [tuple(tuple(line.split()) for line in text.splitlines()) for text in texts]


def score(prediction: str, *references: str, status: str = "ok") -> dict[str, float]:
    question = Question("q", "which?", "corpus", references)
    answer = Prediction("q", "which?", prediction, references, status=status)
    [scores] = FactSumm(Lines()).score([question], [answer], [], [])
    return scores


ZEROS = {"factsumm": 0.0, "factsumm_f1": 0.0, "factsumm_comparable": 0.0}
GOLD = {("ada", "wrote", "notes"), ("ada", "wrote", "letters"), ("ada", "met", "babbage"), ("ibm", "in", "armonk")}
ANSWER = {("ada", "wrote", "notes"), ("ada", "wrote", "code"), ("ada", "met", "linus"), ("git", "by", "linus")}


def test_only_facts_with_a_common_subject_and_relation_are_compared():
    kept_gold, kept_answer = comparable(GOLD, ANSWER)
    assert kept_gold == GOLD - {("ibm", "in", "armonk")}
    assert kept_answer == ANSWER - {("git", "by", "linus")}
    # 1 common (ada wrote notes) of 3 kept of the answer; F1 = 2 · 1 / (3 kept of the gold + 3 kept of the answer)
    assert fact_scores(GOLD, ANSWER) == (1 / 3, 1 / 3, 1.0)


def test_the_packages_score_is_a_precision_and_f1_asks_for_the_gold_too():
    gold = [("ada", "wrote", work) for work in ("notes", "letters", "code")]
    assert fact_scores(gold, gold[:1]) == (1.0, 0.5, 1.0)  # 1 of 1 kept; 2 · 1 / (3 + 1)


def test_facts_are_compared_letter_for_letter_as_the_package_does():
    assert fact_scores([("Ada", "wrote", "notes")], [("ada", "wrote", "notes")]) == (0.0, 0.0, 0.0)


def test_a_zero_of_wrong_facts_is_told_from_one_without_any():
    assert score("ada wrote code", "ada wrote notes") == {**ZEROS, "factsumm_comparable": 1.0}
    assert score("ada wrote code", "ibm sells disks") == ZEROS


@pytest.mark.parametrize("texts", [("a b c", "x y z"), ("", "a b c"), ("a b c", ""), ("a b c",)])
def test_t15_without_comparable_facts_it_is_zero(texts):
    assert score(*texts) == ZEROS


def test_a_failed_prediction_scores_zero():
    assert score("a b c", "a b c", status="failed") == ZEROS


def test_the_reference_with_the_best_fact_score_counts():
    # first: 1 of 2 kept; second: 1 of 1 kept of the answer and 1 of 2 kept of the gold
    answer = "a b c\nd e f"
    found = score(answer, "a b c\nd e x", "a b c\na b y")
    assert found == {"factsumm": 1.0, "factsumm_f1": 2 / 3, "factsumm_comparable": 1.0}


def test_each_distinct_text_is_extracted_once():
    extractor = Lines()
    questions = [Question(str(i), "which?", "corpus", ("a b c",)) for i in range(3)]
    answers = [Prediction(str(i), "which?", "a b d", ("a b c",)) for i in range(3)]
    FactSumm(extractor).score(questions, answers, [], [])
    assert extractor.seen == ["a b c", "a b d"]


def test_the_signature_names_formula_and_extractor():
    assert FactSumm(Lines()).signature == "factsumm|factsumm 0.1.5|Lines lines_en@c0ffee"
    assert FactSumm(object()).signature == "factsumm|factsumm 0.1.5|object"


FACTS = st.sets(st.tuples(*[st.sampled_from("abc")] * 3))


@given(FACTS, FACTS)
def test_in_zero_to_one_and_whole_on_equal_facts(source, summary):
    assert all(0.0 <= value <= 1.0 for value in fact_scores(source, summary))
    assert fact_scores(source, source) == ((1.0, 1.0, 1.0) if source else (0.0, 0.0, 0.0))
    assert fact_scores(source, summary)[1] == fact_scores(summary, source)[1]
