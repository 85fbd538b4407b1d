"""Answers by a language model: what it is shown, and what becomes of failures."""

from __future__ import annotations

from graphcontext.component import fingerprint
from graphcontext.data.records import Context, Question, Unit
from graphcontext.generate.chat import ChatResponse
from graphcontext.generate.llm import LLMGenerator
from graphcontext.generate.prompt import Prompt

PROMPT = Prompt("", "{context}\n---\n{question}", "{question}")
QUESTIONS = [Question(i, f"question {i}?", "c", (f"gold {i}",)) for i in "abc"]


def test_units_are_joined_by_blank_lines_and_predictions_carry_the_references(stub):
    seen = {}

    def reply(request):
        seen[request.item] = request.messages[-1]["content"]
        return ChatResponse(request.item, f"answer {request.item}", "length", 5, 4)

    contexts = [
        Context("a", (Unit("1", "first", "p1"), Unit("2", "second", "spacy"))),
        Context("b", ()),
        Context("c", (), status="failed", reason="no such passage"),
    ]
    predictions = LLMGenerator(stub(reply), PROMPT, 16).generate(QUESTIONS, contexts)
    assert seen == {"a": "first\n\nsecond\n---\nquestion a?", "b": "question b?"}
    a, b, c = predictions
    assert (a.id, a.question, a.prediction, a.references) == ("a", "question a?", "answer a", ("gold a",))
    assert (a.n_tokens, a.finish, a.status) == (4, "length", "ok")
    assert b.prediction == "answer b"
    assert (c.status, c.prediction, c.reason) == ("failed", "", "context: no such passage")


def test_an_empty_answer_is_empty_and_a_failed_call_failed(stub):
    def reply(request):
        if request.item == "a":
            return ChatResponse("a", "", "stop")
        return ChatResponse(request.item, "", status="failed", reason="HTTP 503")

    contexts = [Context(i, ()) for i in "ab"]
    a, b = LLMGenerator(stub(reply), PROMPT, 16).generate(QUESTIONS[:2], contexts)
    assert (a.status, b.status, b.reason) == ("empty", "failed", "HTTP 503")


def test_passages_are_numbered_when_told_to_and_the_key_is_the_old_one_when_not(stub):
    context = Context("a", (Unit("1", "first", "p1"), Unit("2", "second", "p2")))
    generator = LLMGenerator(stub(None), PROMPT, 16, numbered=True)
    assert generator.request(QUESTIONS[0], context).messages[-1]["content"] == (
        "1. first\n\n2. second\n---\nquestion a?"
    )
    node = {"_target_": "graphcontext.generate.llm.LLMGenerator", "llm": None, "prompt": None, "max_new_tokens": 8}
    assert fingerprint(node) == fingerprint({**node, "numbered": False}) != fingerprint({**node, "numbered": True})
