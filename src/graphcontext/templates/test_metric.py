from graphcontext.data.records import Prediction, Question
from example import Example


def test_half_of_the_gold_words_are_there():
    questions = [Question("q", "?", "c", ("use ss",)), Question("r", "?", "c")]
    answers = [Prediction(q.id, q.text, "Use netstat", q.references) for q in questions]
    assert Example().score(questions, answers, [], []) == [{"example": 0.5}, {"example": 0.0}]
