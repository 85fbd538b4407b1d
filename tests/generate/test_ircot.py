"""The answer that ends a chain of thought."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Context, Question, Unit
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatResponse
from graphcontext.generate.ircot import IRCoT, answer_of
from graphcontext.generate.prompt import Prompt

QUESTION = Question("q", "Where?", "c", references=("Vardal",))
CONTEXT = Context("q", (Unit("p", "Solheim was born in Vardal.", "p"),))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("One. So the answer is: Vardal.", "Vardal"),
        ("The answer is unclear. So the answer is Vardal\nand more", "Vardal"),
        ('So the ANSWER IS: "St. Vardal".', "St. Vardal"),
        ("So the answer is:", ""),
        ("The answer isn't known", None),
    ],
)
def test_what_follows_answer_is(text, answer):
    assert answer_of(text) == ((text, False) if answer is None else (answer, True))


def generate(stub, text, context=CONTEXT, finish="stop"):
    llm = stub(lambda request: ChatResponse(request.item, text, finish, 10, 5))
    return IRCoT(llm, Prompt("", "{context} {question}"), 50).generate([QUESTION], [context])[0]


def test_the_prediction_is_the_answer_alone(stub):
    found = generate(stub, "He was born there. So the answer is: Vardal.")
    assert (found.prediction, found.status, found.reason, found.n_tokens) == ("Vardal", "ok", None, 5)
    assert found.references == ("Vardal",)


def test_without_answer_is_the_last_line_is_taken_and_counted(stub):
    found = generate(stub, "He was born there.\nVardal", finish="length")
    assert (found.prediction, found.reason, found.finish) == ("Vardal", "no 'answer is': the last line", "length")


def test_no_answer_is_empty_and_a_failed_context_a_failed_prediction(stub):
    assert generate(stub, "So the answer is: .").status == "empty"
    assert generate(stub, "").status == "empty"
    failed = generate(stub, "unasked", Context("q", (), status="failed", reason="NaN"))
    assert (failed.status, failed.reason) == ("failed", "context: NaN")


def test_a_prompt_without_the_question_is_refused(stub):
    with pytest.raises(InputError, match=r"lacks \{question\}"):
        IRCoT(stub(None), Prompt("", "{context}"), 50)
