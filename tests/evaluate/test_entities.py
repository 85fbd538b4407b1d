"""Entity Jaccard on given entities: the formula, the names' normal form, several references."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Prediction, Question
from graphcontext.evaluate.entities import EntityJaccard, jaccard, normalise_entity


class Capitalised:
    """Every capitalised word is an entity."""

    signature = "Capitalised words_en@c0ffee"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def entities(self, text: str) -> list[str]:
        self.seen.append(text)
        return [word for word in text.split() if word[0].isupper()]


def score(prediction: str, *references: str, status: str = "ok") -> float:
    question = Question("q", "which?", "corpus", references)
    answer = Prediction("q", "which?", prediction, references, status=status)
    [scores] = EntityJaccard(Capitalised()).score([question], [answer], [], [])
    return scores["entity_jaccard"]


def test_shared_over_all_entities():
    # {ubuntu, debian} against {ubuntu, fedora, arch}: 1 shared of 4
    assert score("Ubuntu or Debian", "Ubuntu, Fedora or Arch") == 0.25


def test_the_best_reference_counts():
    assert score("Ubuntu", "Fedora", "Ubuntu and Debian", "Arch") == 0.5


@pytest.mark.parametrize("texts", [("no names", "none here"), ("Ubuntu", "none"), ("", "Ubuntu")])
def test_t15_a_side_without_entities_scores_zero(texts):
    assert score(*texts) == 0.0


def test_a_failed_prediction_scores_zero():
    assert score("Ubuntu", "Ubuntu", status="failed") == 0.0


def test_t19_names_keep_what_tells_them_apart():
    assert normalise_entity("C++") != normalise_entity("C#")
    assert normalise_entity("Beyoncé") != normalise_entity("Beyonce")
    assert normalise_entity("‘Debian’") == normalise_entity("DEBIAN.") == "debian"
    assert normalise_entity("Ｕｂｕｎｔｕ  Server") == "ubuntu server"


@given(st.lists(st.text()), st.lists(st.text()))
def test_jaccard_is_symmetric_and_at_most_one(a, b):
    assert jaccard(a, b) == jaccard(b, a)
    assert 0.0 <= jaccard(a, b) <= 1.0


def test_each_distinct_text_is_extracted_once():
    extractor = Capitalised()
    questions = [Question(str(i), "which?", "corpus", ("Ubuntu",)) for i in range(3)]
    answers = [Prediction(str(i), "which?", "Debian", ("Ubuntu",)) for i in range(3)]
    EntityJaccard(extractor).score(questions, answers, [], [])
    assert extractor.seen == ["Debian", "Ubuntu"]


def test_the_signature_is_the_extractors_own():
    assert EntityJaccard(Capitalised()).signature == "entity_jaccard|Capitalised words_en@c0ffee"
    assert EntityJaccard(object()).signature == "entity_jaccard|object"
