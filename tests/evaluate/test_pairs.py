"""What answer metrics share: pairs, distinct texts, the best of several references."""

import pytest

from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError
from graphcontext.evaluate.pairs import Pair, answer_pairs, best_reference, distinct_texts


def test_the_reference_with_the_highest_first_value_gives_all_values():
    values = {"one": (0.2, 0.9), "two": (0.5, 0.1), "three": (0.5, 0.8)}
    found = best_reference(Pair("answer", tuple(values)), ("f", "p"), lambda prediction, reference: values[reference])
    assert found == {"f": 0.5, "p": 0.1}  # the first of equals


@pytest.mark.parametrize("pair", [Pair("", ("gold",)), Pair(" \n", ("gold",)), Pair("answer", ())])
def test_t18_an_empty_side_is_zero_and_never_compared(pair):
    def compare(prediction, reference):
        raise AssertionError("compared")

    assert best_reference(pair, ("f", "p"), compare) == {"f": 0.0, "p": 0.0}


def test_each_text_is_read_once_and_blank_ones_never():
    assert distinct_texts([Pair("b", ("a", " ")), Pair("a", ("b", "c")), Pair("", ())]) == ["a", "b", "c"]


def test_t49_as_many_predictions_as_questions_in_their_order():
    questions = [Question("1", "?", "c", ("gold",)), Question("2", "?", "c", ("gold",))]
    answers = [Prediction("1", "?", "x", ()), Prediction("2", "?", "y", (), status="failed")]
    assert answer_pairs(questions, answers) == [Pair("x", ("gold",)), Pair("", ("gold",))]
    with pytest.raises(InputError, match="got 1 predictions for 2 questions"):
        answer_pairs(questions, answers[:1])
    with pytest.raises(InputError, match="prediction 0 answers question '2'"):
        answer_pairs(questions, answers[::-1])
