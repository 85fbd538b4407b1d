"""No generation."""

from __future__ import annotations

from graphcontext.data.records import Context, Question
from graphcontext.generate.none import NoGeneration


def test_every_question_gets_an_empty_prediction():
    questions = [Question("a", "?", "c", ("gold",)), Question("b", "?", "c")]
    predictions = NoGeneration().generate(questions, [Context("a", ()), Context("b", ())])
    assert [(p.id, p.prediction, p.status) for p in predictions] == [("a", "", "empty"), ("b", "", "empty")]
    assert predictions[0].references == ("gold",)
